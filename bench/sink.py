"""The receiver of deliveries, a C program (`sink.c`) in its own process, and what it has seen."""

import json
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench import peers
from bench.framework import NotMeasured
from bench.load import compiled

SOURCE = Path(__file__).with_name("sink.c")
COMPILER_HINT = "needs a C compiler (Debian: apt-get install gcc)"
TIMEOUT_S = 60.0
LOOK_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Taken:
    """What came since the last reset; times are of the monotonic clock, as `time.monotonic()`."""

    taken: int
    """Requests that were answered 204."""
    held: int
    """Requests that are never answered."""
    timed: int
    """Of those taken, how many had a `ce-time` that a latency is counted from."""
    first_s: float
    last_s: float
    p50_ms: float
    p99_ms: float


@dataclass(frozen=True, slots=True)
class Sink:
    port: int
    pid: int

    def url(self, path: str = "/taken") -> str:
        """Requests to a path that begins with /hang are never answered."""
        return f"http://127.0.0.1:{self.port}{path}"

    def look(self) -> Taken:
        return Taken(**json.loads(self._get("/stats")))

    def reset(self) -> None:
        self._get("/reset")

    def wait_for(self, count: int, timeout_s: float = TIMEOUT_S) -> Taken:
        """Return when so many requests were taken since the reset."""
        pause = threading.Event()
        deadline = time.monotonic() + timeout_s
        while (seen := self.look()).taken < count:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{seen.taken} of {count} deliveries in {timeout_s:.0f} s")
            pause.wait(LOOK_SECONDS)
        return seen

    def _get(self, path: str) -> bytes:
        with urllib.request.urlopen(self.url(path), timeout=TIMEOUT_S) as answer:
            content: bytes = answer.read()
        return content


@contextmanager
def running_sink() -> Iterator[Sink]:
    program = compiled(SOURCE)
    if program is None:
        raise NotMeasured(COMPILER_HINT)
    port = peers.free_port()
    with peers.process([program, str(port)], port) as running:
        yield Sink(port, running.pid)
