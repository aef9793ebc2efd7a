"""Waiting for what nothing tells of."""

import threading
import time
from collections.abc import Callable


def eventually(is_so: Callable[[], bool], timeout_s: int = 100, pause_s: float = 0.5) -> None:
    """Asked for until it is so."""
    pause, end = threading.Event(), time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < end, f"it is not so after {timeout_s} s"
        pause.wait(pause_s)
