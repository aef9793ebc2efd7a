"""What Ibrik is compared with: Redis that flushes every append, a bare HTTP handler, the disk.

Each runs on a free loopback port and is ended by its own process id.
"""

import os
import shutil
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from bench.framework import NotMeasured

REDIS_HINT = "needs redis-server (Debian: apt-get install redis-server)"
START_TIMEOUT_S = 20.0
PROBE_BYTES = 4096


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def process(command: Sequence[str | Path], port: int) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a server, yield when it takes connections, end it."""
    running = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _wait_for_port(running, port)
        yield running
    finally:
        running.terminate()
        try:
            running.wait(10)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()


def _wait_for_port(running: "subprocess.Popen[bytes]", port: int) -> None:
    pause = threading.Event()
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        if running.poll() is not None:
            raise RuntimeError(f"{running.args!r} ended with {running.returncode}")
        with socket.socket() as attempt:
            if attempt.connect_ex(("127.0.0.1", port)) == 0:
                return
        pause.wait(0.02)
    raise RuntimeError(f"{running.args!r} does not listen on {port}")


class Redis(NamedTuple):
    port: int
    pid: int


@contextmanager
def redis(folder: Path) -> Iterator["Redis"]:
    """Redis that flushes its append-only file before it answers."""
    program = shutil.which("redis-server")
    if program is None:
        raise NotMeasured(REDIS_HINT)
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    options = {
        "port": port,
        "bind": "127.0.0.1",
        "dir": folder.resolve(),
        "appendonly": "yes",
        "appendfsync": "always",
        "save": "",
        "daemonize": "no",
    }
    flags = [str(word) for name, value in options.items() for word in (f"--{name}", value)]
    with process([program, *flags], port) as running:
        yield Redis(port, running.pid)


def xadd(stream: str, value: bytes) -> bytes:
    """XADD stream * v <value> in Redis's protocol; the reply has two newlines."""
    words = (b"XADD", stream.encode(), b"*", b"v", value)
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


@contextmanager
def bare_handler() -> Iterator[int]:
    """An aiohttp handler that reads the body and answers: what the HTTP library itself costs."""
    port = free_port()
    with process([sys.executable, "-m", "bench.bare_handler", str(port)], port):
        yield port


def probe_disk(folder: Path, count: int = 400) -> float:
    """The median time in ms of a 4 KiB append and its fdatasync."""
    path = folder / "probe"
    block = os.urandom(PROBE_BYTES)
    took = []
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    try:
        for _ in range(count):
            begun = time.perf_counter()
            os.write(descriptor, block)
            os.fdatasync(descriptor)
            took.append(time.perf_counter() - begun)
    finally:
        os.close(descriptor)
        path.unlink()
    return statistics.median(took) * 1000
