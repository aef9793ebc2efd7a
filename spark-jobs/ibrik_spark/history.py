"""Whether a log and a table are of one history: the newest record that both hold is the same one.

A volume that was brought back to an older copy gives its offsets a second time. What it takes in
below the table's end would never be archived, and be deleted as if it were.
"""

from collections.abc import Callable
from typing import NamedTuple

from ibrik_log.batch import decode
from ibrik_log.errors import CorruptRange, CorruptRecord
from ibrik_log.files import Disk, RealDisk
from ibrik_log.reader import SegmentReader
from ibrik_log.record import StoredRecord
from ibrik_log.segment import Segment

from .errors import SegmentDeleted
from .volume import SealedPartition

INDEX_INTERVAL_BYTES = 4096  # of an index that is made in memory when a segment has none


class ArchivedRecord(NamedTuple):
    """What a table says of one offset, as far as it tells one record from another."""

    timestamp_ms: int
    key: bytes | None
    value: bytes | None


def divergence(
    partition: SealedPartition,
    end: int,
    archived: Callable[[int, int], ArchivedRecord | None],
    *,
    disk: Disk | None = None,
) -> str | None:
    """How a log differs from its table, which holds it up to `end`; None as far as both tell.

    `archived` is what the table holds at a partition and an offset, None for a gap. The append time
    is the log's own, so what a producer sends again is another record.
    """
    sealed = partition.end_offset
    if sealed < end:
        return f"the log is sealed up to offset {sealed}, and the table ends at {end}"
    stored = newest_record(partition, end, disk=disk)
    known = stored and archived(partition.number, stored.offset)
    if stored is None or known is None:
        return None
    if known == ArchivedRecord(stored.timestamp_ms, stored.key, stored.value):
        return None
    return f"offset {stored.offset} is another record in the log than in the table"


def newest_record(
    partition: SealedPartition, below: int, *, disk: Disk | None = None
) -> StoredRecord | None:
    """The newest sealed record below an offset that can be read; damage is stepped over.

    None when the log holds none. Raises SegmentDeleted when retention was faster.
    """
    disk = disk or RealDisk()
    offset = below - 1
    for summary in reversed(partition.segments):
        segment = Segment(disk, partition.path, summary)
        reader = SegmentReader(
            segment, partition.lineage, INDEX_INTERVAL_BYTES, is_active=False, is_read_only=True
        )
        offset = min(offset, summary.next_offset - 1)
        while offset >= max(summary.base_offset, partition.start_offset):
            try:
                return _record(reader, offset)
            except CorruptRange as damage:
                offset = damage.from_offset - 1
            except CorruptRecord:
                offset -= 1
            except FileNotFoundError as error:
                raise SegmentDeleted(segment.path) from error
    return None


def _record(reader: SegmentReader, offset: int) -> StoredRecord:
    (frame, *_) = reader.read(offset, 1, offset + 1)
    return next(record for record in decode(frame) if record.offset == offset)
