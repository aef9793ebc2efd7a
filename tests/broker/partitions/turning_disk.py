"""The real disk with switches: a flush that waits, fails or finds no room when a test says so."""

import errno
import os
import threading
from collections.abc import Sequence
from pathlib import Path

from ibrik_log.files import Buffer, RealDisk


class TurningDisk(RealDisk):
    def __init__(self) -> None:
        self.may_flush = threading.Event()
        self.may_flush.set()
        self.fails_flush = False
        self.has_no_room_for: bytes | None = None
        self.free: int | None = None
        self.flush_count = 0

    def flush(self, handle: int) -> None:
        self.flush_count += 1
        assert self.may_flush.wait(30), "a test forgot to let the disk go on"
        if self.fails_flush:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        super().flush(handle)

    def pwritev(self, handle: int, buffers: Sequence[Buffer], position: int) -> int:
        if self.has_no_room_for and any(self.has_no_room_for in bytes(b) for b in buffers):
            super().pwritev(handle, [bytes(buffers[0])[:10]], position)  # a short write, then none
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().pwritev(handle, buffers, position)

    def free_bytes(self, path: Path) -> int:
        return super().free_bytes(path) if self.free is None else self.free
