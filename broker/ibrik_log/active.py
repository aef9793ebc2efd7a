"""The active segment: the only one that is written, by one thread."""

from collections.abc import Sequence
from struct import Struct

from .batch import stamp
from .config import LogConfig
from .epochs import Lineage
from .errors import StorageFull
from .files import AppendFile, Disk, remove_file, storage_errors
from .index import OffsetIndex
from .scan import MAX_FRAME_BYTES
from .segment import Segment
from .timeindex import TimeIndex

MAX_RELATIVE_OFFSET = (1 << 31) - 1
_COUNT = Struct(">i")
_COUNT_AT = 57


class ActiveSegment:
    """A segment with its file open for appending and its indexes in memory."""

    def __init__(
        self, disk: Disk, segment: Segment, index_interval_bytes: int, *, create: bool = False
    ) -> None:
        self.segment = segment
        self._file = AppendFile(disk, segment.path, create=create)
        self._interval_bytes = index_interval_bytes
        self._index = OffsetIndex()
        self._time_index = TimeIndex()

    @property
    def has_failed(self) -> bool:
        return self._file.has_failed

    def file_descriptor(self) -> int:
        return self._file.file_descriptor()

    def prepare(self, lineage: Lineage) -> None:
        """Take over the indexes of a segment that was written before."""
        self._index, self._time_index = self.segment.indexes(
            lineage, self._interval_bytes, write=False
        )

    def begin(self) -> None:
        """Start with empty indexes, in a new segment."""
        self._index, self._time_index = self.segment.begin_indexes()

    def is_roll_due(self, config: LogConfig, now_ms: int, more_bytes: int) -> bool:
        """Whether it is full, or so old that retention would wait for it."""
        segment = self.segment
        return segment.size_bytes > 0 and (
            segment.size_bytes + more_bytes > config.segment_bytes
            or now_ms - segment.first_append_ms >= config.segment_ms
            or segment.next_offset - segment.base_offset > MAX_RELATIVE_OFFSET // 2
        )

    def append(self, batches: Sequence[bytearray], leader_epoch: int, append_ms: int) -> int:
        """Stamp each batch in place, write all at once; the offset after the last record."""
        segment = self.segment
        offset = segment.next_offset
        position = self._file.end
        points = []
        for batch in batches:
            assert len(batch) <= MAX_FRAME_BYTES, "a batch fits into a frame"
            stamp(batch, base_offset=offset, leader_epoch=leader_epoch, append_time_ms=append_ms)
            offset += _COUNT.unpack_from(batch, _COUNT_AT)[0]
            points.append((offset - 1 - segment.base_offset, position))
            position += len(batch)
        self._file.append(batches)
        for relative_offset, at in points:
            if at - self._index.last_position > self._interval_bytes:
                self._index.add(relative_offset, at)
                self._time_index.add(append_ms, relative_offset)
        segment.note_append(offset, position, append_ms)
        return offset

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def create_active(disk: Disk, segment: Segment, index_interval_bytes: int) -> ActiveSegment:
    """Create the segment's file and make its name durable.

    On a full disk nothing is left behind: an empty file would be taken for the active segment.
    """
    active = ActiveSegment(disk, segment, index_interval_bytes, create=True)
    try:
        active.flush()
        with storage_errors(f"flush the folder of {segment.path}"):
            disk.flush_folder(segment.path.parent)
    except StorageFull:
        active.close()
        remove_file(disk, segment.path)
        raise
    active.begin()
    return active
