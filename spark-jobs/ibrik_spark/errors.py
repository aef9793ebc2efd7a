"""What ends a read of a volume. `exit_code` is how a job ends that cannot go on after it.

An offset outside the log is `ibrik_log.errors.OffsetOutOfRange`, a failing disk its StorageFailed.
"""

from pathlib import Path
from typing import ClassVar

CONFIGURATION = 64
RETRY = 75


class ReadError(Exception):
    """The base of what this package raises on purpose."""

    exit_code: ClassVar[int]


class WrongVolume(ReadError):
    """Fix the configuration: what is mounted is not the data folder, cluster or topic asked for."""

    exit_code = CONFIGURATION


class UnreadablePartition(ReadError):
    """Retry later: the list of sealed segments or the epochs of a partition cannot be read."""

    exit_code = RETRY


class SegmentDeleted(ReadError):
    """List the partition again: a segment was deleted between listing and reading it."""

    exit_code = RETRY

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} was deleted while it was to be read: the log start has moved; "
            "list the partition again and start from there"
        )
        self.path = path
