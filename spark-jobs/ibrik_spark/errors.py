"""What ends a job or a read of a volume, by what to do next: `exit_code` is how the job ends.

An offset outside the log is `ibrik_log.errors.OffsetOutOfRange`, a failing disk its StorageFailed.
"""

from enum import IntEnum
from pathlib import Path
from typing import ClassVar


class ExitCode(IntEnum):
    """How a job ends."""

    DONE = 0
    NOTHING_TO_DO = 2
    SUPERSEDED = 3
    CONFIGURATION = 64
    RETRY = 75

    @classmethod
    def worst(cls, codes: "list[ExitCode]") -> "ExitCode":
        """The one that somebody has to know of, of several; without any there was no work."""
        return max(codes, key=_SEVERITY.index, default=cls.NOTHING_TO_DO)


_SEVERITY = [
    ExitCode.NOTHING_TO_DO,
    ExitCode.DONE,
    ExitCode.SUPERSEDED,
    ExitCode.RETRY,
    ExitCode.CONFIGURATION,
]


class JobError(Exception):
    """The base of what this package raises on purpose."""

    exit_code: ClassVar[ExitCode]


class WrongOption(JobError):
    """Fix the call: what was asked for cannot be done."""

    exit_code = ExitCode.CONFIGURATION


class ReadError(JobError):
    """A volume or a segment cannot be read."""


class WrongVolume(ReadError):
    """Fix the configuration: what is mounted is not the data folder, cluster or topic asked for."""

    exit_code = ExitCode.CONFIGURATION


class UnreadablePartition(ReadError):
    """Retry later: the list of sealed segments or the epochs of a partition cannot be read."""

    exit_code = ExitCode.RETRY


class SegmentDeleted(ReadError):
    """List the partition again: a segment was deleted between listing and reading it."""

    exit_code = ExitCode.RETRY

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} was deleted while it was to be read: the log start has moved; "
            "list the partition again and start from there"
        )
        self.path = path


class WrongTable(JobError):
    """Somebody has to look: the table is not the topic's, or does not hold what it claims."""

    exit_code = ExitCode.CONFIGURATION


class TableFailed(JobError):
    """Retry later: the table's storage does not take or give what it should."""

    exit_code = ExitCode.RETRY


class Superseded(JobError):
    """Another run has committed the same offsets first; what this one wrote is not visible."""

    exit_code = ExitCode.SUPERSEDED


class ScratchFailed(JobError):
    """Retry later: there is no room for what a job keeps while it runs."""

    exit_code = ExitCode.RETRY


class DamageFound(JobError):
    """Somebody has to decide: offsets cannot be read, and no gap may be recorded without a word."""

    exit_code = ExitCode.CONFIGURATION


class BrokerRefused(JobError):
    """Fix the configuration: the broker does not take the request."""

    exit_code = ExitCode.CONFIGURATION


class BrokerAway(JobError):
    """Retry later: the broker does not answer."""

    exit_code = ExitCode.RETRY
