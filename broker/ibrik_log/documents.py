"""Writing a log's small files, and remembering which could not be written for want of room.

A full disk must not stop a log from opening, rolling or deleting: each of these files only saves
the next start some work, except the lineage, which must be durable before the first append of an
epoch.
"""

from pathlib import Path

from .checkpoint import (
    Checkpoint,
    CleanMarker,
    SealedSegments,
    encode_checkpoint,
    encode_clean_marker,
    encode_sealed,
)
from .epochs import Lineage, encode_epochs
from .errors import StorageFull
from .files import Disk, replace_file
from .recovery import CHECKPOINT, CLEAN, EPOCHS, SEALED


class Documents:
    """The small files of one log. `is_complete`: all were written as last asked."""

    def __init__(self, disk: Disk, folder: Path) -> None:
        self._disk = disk
        self._folder = folder
        self._pending: set[str] = set()

    @property
    def is_complete(self) -> bool:
        return not self._pending

    @property
    def needs_epochs(self) -> bool:
        return EPOCHS in self._pending

    def write_epochs(self, lineage: Lineage) -> bool:
        return self._write(EPOCHS, encode_epochs(lineage))

    def write_checkpoint(self, checkpoint: Checkpoint) -> bool:
        return self._write(CHECKPOINT, encode_checkpoint(checkpoint))

    def write_sealed(self, sealed: SealedSegments) -> bool:
        return self._write(SEALED, encode_sealed(sealed))

    def write_clean_marker(self, marker: CleanMarker) -> bool:
        return self._write(CLEAN, encode_clean_marker(marker))

    def _write(self, name: str, content: bytes) -> bool:
        """Write durably; False when there is no room. Any other failure is StorageFailed."""
        try:
            replace_file(self._disk, self._folder / name, content)
        except StorageFull:
            self._pending.add(name)
            return False
        self._pending.discard(name)
        return True
