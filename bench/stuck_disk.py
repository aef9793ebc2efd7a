"""`python -m bench.stuck_disk`: the broker as it is, on a disk that SIGUSR1 stops for ever.

The flush is held at the log's one door to the disk, so all that waits above it is the real program.
"""

import signal
import threading
from pathlib import Path

from ibrik_broker.__main__ import main
from ibrik_log.files import RealDisk

is_stuck = threading.Event()


def hold() -> None:
    if is_stuck.is_set():
        threading.Event().wait()


def hold_flushes() -> None:
    flush, flush_filesystem = RealDisk.flush, RealDisk.flush_filesystem

    def held_flush(disk: RealDisk, handle: int) -> None:
        hold()
        flush(disk, handle)

    def held_flush_filesystem(disk: RealDisk, path: Path) -> None:
        hold()
        flush_filesystem(disk, path)

    RealDisk.flush = held_flush  # type: ignore[method-assign, assignment]
    RealDisk.flush_filesystem = held_flush_filesystem  # type: ignore[method-assign, assignment]


if __name__ == "__main__":
    hold_flushes()
    signal.signal(signal.SIGUSR1, lambda *_: is_stuck.set())
    main()
