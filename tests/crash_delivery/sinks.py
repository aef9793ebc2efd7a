"""The endpoints that the broker pushes to: a process of its own, which outlives the broker.

    with running_sinks(path) as sinks:      # POST {sinks.url}/<script>/<subscription>
        ...

It answers by script and writes a diary of what came. `PUT /healthy` makes every later answer a
success. It ends when its standard input does, so never later than who started it.
"""

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import BinaryIO

from tests.crash_delivery import scripts
from tests.crash_delivery.diary import Begun, Ended, Event, Place, encode
from tests.crash_delivery.values import name_of

STOP_TIMEOUT_S = 20.0
HEAD_END = b"\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Sinks:
    url: str
    diary: Path


@contextmanager
def running_sinks(diary: Path) -> Iterator[Sinks]:
    process = subprocess.Popen(
        (sys.executable, "-m", __name__, str(diary)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield Sinks(f"http://127.0.0.1:{int(process.stdout.readline())}", diary)
        process.stdin.close()
        assert process.wait(STOP_TIMEOUT_S) == 0, "the sinks broke"
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(STOP_TIMEOUT_S)
        process.stdin.close()
        process.stdout.close()


class Scribe:
    """What all connections share."""

    def __init__(self, diary: BinaryIO) -> None:
        self.is_healthy = False
        self.numbers = count()
        self._diary = diary

    def note(self, event: Event) -> None:
        self._diary.write(encode(event))


class Connection(asyncio.Protocol):
    """HTTP/1.1 as the broker speaks it: one request at a time, with a length."""

    def __init__(self, scribe: Scribe) -> None:
        self._scribe = scribe
        self._received = b""
        self._open: int | None = None
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._open is not None:
            self._scribe.note(Ended(self._open, None))

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, rest = self._received.partition(HEAD_END)
        if not end:
            return
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (x.partition(": ") for x in lines)}
        length = int(headers.get("content-length", "0"))
        if len(rest) < length:
            return
        assert len(rest) == length, "the broker does not pipeline"
        self._received = b""
        self._request(first.split(" ")[1], headers, rest)

    def _request(self, path: str, headers: dict[str, str], body: bytes) -> None:
        if path == "/healthy":
            self._scribe.is_healthy = True
            self._respond(204)
            return
        _, script, subscription = path.split("/")
        attempt = int(headers["ibrik-attempt"])
        place = Place(int(headers["ibrik-partition"]), int(headers["ibrik-offset"]))
        self._open = next(self._scribe.numbers)
        now_ms = time.time_ns() // 1_000_000
        message = name_of(body)
        self._scribe.note(Begun(self._open, now_ms, subscription, place, attempt, message))
        if self._scribe.is_healthy:
            script = "ok"
        reply = scripts.answer(script, f"{subscription} {message}", attempt)
        if reply is scripts.HANG:
            return
        if reply.delay_ms:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(reply.delay_ms / 1_000, self._end, reply.status)
        else:
            self._end(reply.status)

    def _end(self, status: int) -> None:
        assert self._open is not None
        # Noted first: from here on the broker may know.
        self._scribe.note(Ended(self._open, status))
        self._open = self._timer = None
        self._respond(status)

    def _respond(self, status: int) -> None:
        length = b"" if status == 204 else b"content-length: 0\r\n"
        self._transport.write(b"HTTP/1.1 %d .\r\n%s\r\n" % (status, length))


async def serve(diary: BinaryIO) -> None:
    scribe = Scribe(diary)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(scribe), "127.0.0.1", 0, backlog=1024)
    async with server:
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    with Path(sys.argv[1]).open("wb") as opened:
        asyncio.run(serve(opened))
