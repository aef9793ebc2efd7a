"""One segment file of a log and its index files: names, indexes loaded or rebuilt, pins.

A sealed segment keeps no file open. Readers pin it, so that retention empties it after the last.
"""

import threading
from pathlib import Path

from .checkpoint import SegmentSummary
from .epochs import Lineage
from .errors import StorageFull
from .files import Disk, ReadFile, read_file, replace_file
from .index import OffsetIndex
from .scan import Damage, SegmentScan, scan_segment
from .timeindex import TimeIndex

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
DELETED_SUFFIX = ".deleted"
MAX_LOADED_INDEXES = 8  # per log; half a megabyte each at most


def segment_name(base_offset: int, suffix: str = LOG_SUFFIX) -> str:
    return f"{base_offset:020d}{suffix}"


class Segment:
    """A segment as the log knows it. The active one grows: `next_offset` moves last."""

    def __init__(self, disk: Disk, folder: Path, summary: SegmentSummary) -> None:
        self.base_offset = summary.base_offset
        self.next_offset = summary.next_offset
        self.size_bytes = summary.size_bytes
        self.first_append_ms = summary.first_append_ms
        self.last_append_ms = summary.last_append_ms
        self.damages: list[Damage] = []
        self.pins = 0
        self.is_deleted = False
        self.is_index_trusted = False
        self._disk = disk
        self._folder = folder
        self._indexes: tuple[OffsetIndex, TimeIndex] | None = None

    @property
    def path(self) -> Path:
        return self._path(LOG_SUFFIX)

    @property
    def has_indexes(self) -> bool:
        return self._indexes is not None

    def summary(self) -> SegmentSummary:
        return SegmentSummary(
            self.base_offset,
            self.next_offset,
            self.size_bytes,
            self.first_append_ms,
            self.last_append_ms,
        )

    def open(self) -> ReadFile:
        return ReadFile(self._disk, self.path)

    def is_on_disk(self) -> bool:
        return self._disk.exists(self.path)

    def note_append(self, next_offset: int, size_bytes: int, append_ms: int) -> None:
        """Take over what was just written; the offset last, since readers look at it first."""
        self.first_append_ms = self.first_append_ms or append_ms
        self.last_append_ms = append_ms
        self.size_bytes = size_bytes
        self.next_offset = next_offset

    # --- indexes ------------------------------------------------------------------------------

    def indexes(
        self, lineage: Lineage, interval_bytes: int, *, write: bool
    ) -> tuple[OffsetIndex, TimeIndex]:
        """The indexes, from memory, from their files, or rebuilt from the log."""
        indexes = self._indexes or self._load_indexes()
        if indexes is None:
            return self.rebuild_indexes(lineage, interval_bytes, write=write)
        self._indexes = indexes
        return indexes

    def rebuild_indexes(
        self, lineage: Lineage, interval_bytes: int, *, write: bool
    ) -> tuple[OffsetIndex, TimeIndex]:
        """Walk the segment; `write` keeps the result on disk, as a cache that may fail."""
        with self.open() as file:
            scan = scan_segment(file, self.base_offset, self.size_bytes, lineage, interval_bytes)
        self.adopt_scan(scan)
        if write:
            self.write_indexes()
        return scan.index, scan.time_index

    def adopt_scan(self, scan: SegmentScan) -> None:
        self._indexes = (scan.index, scan.time_index)
        self.is_index_trusted = True
        for damage in scan.damages:
            self.note_damage(damage)

    def begin_indexes(self) -> tuple[OffsetIndex, TimeIndex]:
        """Start empty ones, for a new active segment."""
        self._indexes = (OffsetIndex(), TimeIndex())
        self.is_index_trusted = True
        return self._indexes

    def drop_indexes(self) -> None:
        """Free their memory; they are loaded again when needed."""
        self._indexes = None

    def write_indexes(self) -> None:
        """Write the index files. A full disk is no failure: they are caches."""
        if self._indexes is None:
            return
        offset_index, time_index = self._indexes
        try:
            replace_file(self._disk, self._path(INDEX_SUFFIX), offset_index.encode(), durable=False)
            replace_file(
                self._disk, self._path(TIME_INDEX_SUFFIX), time_index.encode(), durable=False
            )
        except StorageFull:
            return

    def _load_indexes(self) -> tuple[OffsetIndex, TimeIndex] | None:
        offsets = read_file(self._disk, self._path(INDEX_SUFFIX))
        times = read_file(self._disk, self._path(TIME_INDEX_SUFFIX))
        if offsets is None or times is None:
            return None
        offset_index = OffsetIndex.decode(offsets, self.size_bytes)
        time_index = TimeIndex.decode(times)
        if offset_index is None or time_index is None:
            return None
        return offset_index, time_index

    # --- damage -------------------------------------------------------------------------------

    def note_damage(self, damage: Damage) -> None:
        if damage not in self.damages:
            self.damages.append(damage)

    def damage_at(self, position: int) -> Damage | None:
        return next((damage for damage in self.damages if damage.position == position), None)

    def _path(self, suffix: str) -> Path:
        return self._folder / segment_name(self.base_offset, suffix)


class LoadedIndexes:
    """Bounds the memory of indexes: those of the sealed segments that were read last stay."""

    def __init__(self) -> None:
        self._segments: list[Segment] = []
        self._lock = threading.Lock()

    def note(self, segment: Segment) -> None:
        """A sealed segment was read just now."""
        if not segment.has_indexes:
            return
        with self._lock:
            if segment in self._segments:
                self._segments.remove(segment)
            self._segments.append(segment)
            if len(self._segments) > MAX_LOADED_INDEXES:
                self._segments.pop(0).drop_indexes()
