"""A real broker process for tests: own folder, free ports, ended by its own id.

    with running_broker(tmp_path) as broker:
        ...
        broker.kill()                      # SIGKILL
    with running_broker(tmp_path) as broker:   # the same data again
        ...

Ports are taken from the first line of the broker's output, so any number of tests run at once.
"""

import os
import queue
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

START_TIMEOUT_S = 90.0
STOP_TIMEOUT_S = 30.0
BANNER = re.compile(r"^ibrik \S+ .*\bhttp (\S+)\s+tcp (\S+)\s+admin (\S+)")
COMMAND = (sys.executable, "-m", "ibrik_broker")
LOG_NAME = "broker.log"
FREE_PORTS = {
    "IBRIK_HTTP__PORT": "0",
    "IBRIK_TCP__PORT": "0",
    "IBRIK_ADMIN__PORT": "0",
}


@dataclass
class Broker:
    process: subprocess.Popen[str]
    data: Path
    http_url: str
    admin_url: str
    tcp_address: tuple[str, int]
    banner: str
    errors: Path
    """What the broker wrote to standard error (its log)."""
    output: list[str] = field(default_factory=list)
    """Lines of standard output so far, the banner first."""

    def kill(self) -> int:
        """End it the hard way, as a power cut of the process would."""
        self.process.kill()
        return self.process.wait(STOP_TIMEOUT_S)

    def terminate(self) -> int:
        """Ask it to end (SIGTERM: drain, flush, clean markers); its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(STOP_TIMEOUT_S)


def launch(folder: Path, command: Sequence[str] = COMMAND, **env: str) -> subprocess.Popen[str]:
    """Start a broker on `folder / "data"` and return at once, before it is ready."""
    folder.mkdir(parents=True, exist_ok=True)
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("IBRIK_")}
    settings = {"IBRIK_DATA": str(folder / "data")} | FREE_PORTS | env
    with (folder / LOG_NAME).open("a") as log:
        return subprocess.Popen(
            command,
            env=inherited | settings,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )


@contextmanager
def running_broker(folder: Path, command: Sequence[str] = COMMAND, **env: str) -> Iterator[Broker]:
    """Start a broker on `folder / "data"`; SIGKILL at the end when it still runs.

    `env` are settings by the names of their variables: IBRIK_LOG__SEGMENT_BYTES="1Mi".
    """
    process = launch(folder, command, **env)
    errors = folder / LOG_NAME
    output: list[str] = []
    try:
        banner = _wait_for_banner(process, output, errors)
        match = BANNER.match(banner)
        assert match is not None
        http, tcp, admin = match.groups()
        host, _, port = tcp.rpartition(":")
        yield Broker(
            process=process,
            data=Path(env.get("IBRIK_DATA", folder / "data")),
            http_url=f"http://{http}",
            admin_url=f"http://{admin}",
            tcp_address=(host, int(port) if port else 0),
            banner=banner,
            errors=errors,
            output=output,
        )
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(STOP_TIMEOUT_S)


def _wait_for_banner(process: subprocess.Popen[str], output: list[str], errors: Path) -> str:
    """The banner; a thread goes on reading, so that the broker never blocks on a full pipe."""
    assert process.stdout is not None
    lines: queue.Queue[str | None] = queue.Queue()

    def drain(stream: IO[str]) -> None:
        with stream:
            for line in stream:
                output.append(line.rstrip("\n"))
                lines.put(line.rstrip("\n"))
        lines.put(None)

    threading.Thread(target=drain, args=(process.stdout,), daemon=True).start()
    while True:
        try:
            line = lines.get(timeout=START_TIMEOUT_S)
        except queue.Empty:
            line = None
        if line is None:
            process.kill()
            code = process.wait(STOP_TIMEOUT_S)
            raise AssertionError(f"the broker did not start (exit {code}):\n{errors.read_text()}")
        if BANNER.match(line):
            return line
