"""What can go wrong in a log, one class for each thing a caller can do about it.

Attributes hold the facts, the text is for people. Nothing else escapes this library on bad input
or a bad disk.
"""


class LogError(Exception):
    """The base of every error this library raises on purpose."""


class OffsetOutOfRange(LogError):
    """Fix the request: the offset is below the log start or above the log end."""

    def __init__(self, offset: int, earliest: int, latest: int) -> None:
        super().__init__(f"offset {offset} is outside the log, which holds {earliest} to {latest}")
        self.offset = offset
        self.earliest = earliest
        self.latest = latest

    @property
    def is_below(self) -> bool:
        return self.offset < self.earliest


class CorruptRange(LogError):
    """The records from `from_offset` up to and without `to_offset` cannot be read any more."""

    def __init__(self, from_offset: int, to_offset: int, reason: str = "damaged on disk") -> None:
        super().__init__(f"offsets {from_offset} to {to_offset - 1} are unreadable: {reason}")
        self.from_offset = from_offset
        self.to_offset = to_offset
        self.reason = reason


class CorruptRecord(LogError):
    """The bytes of a batch are not what its writer wrote."""


class InvalidBatch(LogError):
    """Fix the request: a whole batch, but not one this log accepts."""


class CompressedBatch(LogError):
    """Fix the request: batches are stored as they come, and readers are promised plain ones."""


class UnreadableDocument(LogError):
    """A small file (checkpoint, lineage, list of segments) is damaged or of another kind."""


class StorageFull(LogError):
    """Retry later: there is no room. What was written of the failed write is cut off again."""


class StorageFailed(LogError):
    """Give up: a write or a flush failed, what the disk holds is unknown. The process must end."""


class VolumeInUse(LogError):
    """Another process holds the data folder."""

    def __init__(self, path: str, pid: int | None) -> None:
        holder = "another process" if pid is None else f"process {pid}"
        super().__init__(f"{path} is in use by {holder}; stop it or choose another data folder")
        self.path = path
        self.pid = pid


class UnknownFormat(LogError):
    """The data folder was written by a version with another format."""

    def __init__(self, path: str, found: str, supported: str) -> None:
        super().__init__(f"{path} has format {found}; this program reads and writes {supported}")
        self.path = path
        self.found = found
        self.supported = supported


class ForeignFile(LogError):
    """The data folder holds a file that is not ours, so it may not be ours either."""

    def __init__(self, path: str, name: str) -> None:
        super().__init__(
            f"{path} holds {name!r}, which is no file of a data folder; "
            "move it away or choose another folder"
        )
        self.path = path
        self.name = name
