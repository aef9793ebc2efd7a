"""A `kubectl` for tests without a cluster: answers from a folder, and forwards ports for real.

    world/<arguments, joined by blanks>     what it prints for these arguments (flags left out)
    world/ports/<target>:<port>             address that a forward leads to
    world/calls                             the arguments of each call, one a line
    world/forwards                          process id of each forward, one a line

What the real kubectl says and does is tested with a real cluster.
"""

import asyncio
import os
import sys
from contextlib import suppress
from pathlib import Path

WORLD = Path(os.environ["FAKE_KUBECTL_WORLD"])


def note(file: str, text: str) -> None:
    with (WORLD / file).open("a") as stream:
        stream.write(text + "\n")


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while content := await reader.read(65_536):
            writer.write(content)
            await writer.drain()
    writer.close()


async def forward(target: str, ports: str) -> None:
    local, _, port = ports.partition(":")
    host, _, remote = (
        (WORLD / "ports" / f"{target}:{port}".replace("/", "_")).read_text().partition(":")
    )

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(host, int(remote))
        await asyncio.gather(pump(reader, back), pump(there, writer))

    server = await asyncio.start_server(connect, "127.0.0.1", int(local or 0))
    note("forwards", str(os.getpid()))
    bound = server.sockets[0].getsockname()[1]
    print(f"Forwarding from 127.0.0.1:{bound} -> {port}", flush=True)
    await server.serve_forever()


def main() -> int:
    note("calls", " ".join(sys.argv[1:]))
    words = [a for a in sys.argv[1:] if not a.startswith("-")]
    if words[0] == "port-forward":
        asyncio.run(forward(words[1], words[2]))
        return 0
    answer = WORLD / " ".join(words).replace("/", "_")
    if not answer.exists():
        sys.stderr.write(f'Error from server (NotFound): {words[1]} "{words[-1]}" not found\n')
        return 1
    sys.stdout.write(answer.read_text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
