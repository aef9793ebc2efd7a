"""Sealed segments of one partition to Arrow record batches, with every damaged range named.

The batches and damaged ranges that come out tile the range asked for. The log's own scanner judges
the frames. Files are read, not mapped: the broker gives a deleted segment's bytes back in steps,
and a mapping that shrinks kills its process.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

import pyarrow as pa

from ibrik_log.checkpoint import SegmentSummary
from ibrik_log.errors import CorruptRecord, OffsetOutOfRange
from ibrik_log.files import Disk, ReadFile, RealDisk
from ibrik_log.scan import Frame, FrameScanner
from ibrik_log.segment import segment_name

from .errors import SegmentDeleted
from .records import Block, decode_frames
from .volume import SealedPartition

MIN_ROWS = 4096
MAX_ROWS = 65_536
MAX_PENDING_BYTES = 16 * 1024 * 1024  # large records make smaller batches


class DamagedRange(NamedTuple):
    """Offsets from `from_offset` up to and without `to_offset` cannot be read, and why."""

    from_offset: int
    to_offset: int
    reason: str


Piece: TypeAlias = pa.RecordBatch | DamagedRange


def read(
    partition: SealedPartition, start: int, end: int, *, disk: Disk | None = None
) -> Iterator[Piece]:
    """Read the records from `start` up to and without `end`, in order.

    Raises OffsetOutOfRange at once, when a part of the range is below the log start or not sealed,
    and SegmentDeleted on the way, when retention was faster.
    """
    earliest, latest = partition.start_offset, partition.end_offset
    for offset in (start, end):
        if not earliest <= offset <= latest:
            raise OffsetOutOfRange(offset, earliest, latest)
    if end < start:
        raise OffsetOutOfRange(end, start, latest)
    return _coalesced(_pieces(partition, start, end, disk or RealDisk()))


def _pieces(partition: SealedPartition, start: int, end: int, disk: Disk) -> Iterator[Piece]:
    """Decoded blocks and damage, cut to the range; what no segment holds is damage too."""
    offset = start
    for segment in partition.segments:
        if segment.next_offset <= offset:
            continue
        if segment.base_offset >= end:
            break
        if segment.base_offset > offset:
            yield DamagedRange(offset, segment.base_offset, "no segment holds these offsets")
        first, last = max(offset, segment.base_offset), min(end, segment.next_offset)
        yield from _SegmentWalk(partition, segment, disk).pieces(first, last)
        offset = last
    if offset < end:
        yield DamagedRange(offset, end, "no segment holds these offsets")


class _SegmentWalk:
    """One pass over one segment file."""

    def __init__(self, partition: SealedPartition, segment: SegmentSummary, disk: Disk) -> None:
        self._partition = partition
        self._segment = segment
        self._disk = disk
        self._path = partition.path / segment_name(segment.base_offset)

    def pieces(self, first: int, last: int) -> Iterator[Piece]:
        """All that lies between the offsets `first` and `last`."""
        try:
            file = _BlockFile(self._disk, self._path)
        except FileNotFoundError as error:
            raise SegmentDeleted(self._path) from error
        with file:
            for piece in self._walk(file, first, last):
                if isinstance(piece, DamagedRange):
                    self._refuse_if_deleted()
                    from_offset, to_offset = max(piece[0], first), min(piece[1], last)
                    if from_offset < to_offset:
                        yield DamagedRange(from_offset, to_offset, piece.reason)
                else:
                    base = piece.column("offset")[0].as_py()
                    from_row = max(first - base, 0)
                    yield piece.slice(from_row, last - base - from_row)

    def _walk(self, file: "_BlockFile", first: int, last: int) -> Iterator[Piece]:
        scanner = FrameScanner(
            file,
            position=0,
            offset=self._segment.base_offset,
            end_position=file.size(),
            lineage=self._partition.lineage,
        )
        while True:
            for block, frames in _blocks(file, scanner, first, last):
                yield from _decode(block, frames, self._partition.number)
            if scanner.offset >= last:
                return
            damage = scanner.resync() if scanner.fault is not None else None
            if damage is None:
                reason = scanner.fault or "the segment ends before it should"
                yield DamagedRange(scanner.offset, last, reason)
                return
            yield DamagedRange(damage.from_offset, damage.to_offset, damage.reason)

    def _refuse_if_deleted(self) -> None:
        """What looks like damage may be a file whose bytes retention gives back: its name tells."""
        if not self._disk.exists(self._path):
            raise SegmentDeleted(self._path)


class _BlockFile(ReadFile):
    """Keeps what was read last: the frames that the scanner yields next lie in it."""

    def __init__(self, disk: Disk, path: Path) -> None:
        super().__init__(disk, path)
        self.last = Block(0, b"")

    def read(self, length_bytes: int, position: int) -> bytes:
        self.last = Block(position, super().read(length_bytes, position))
        return self.last.content


def _blocks(
    file: _BlockFile, scanner: FrameScanner, first: int, last: int
) -> Iterator[tuple[Block, list[Frame]]]:
    """Good frames that touch the range, those of one block together."""
    block = file.last
    frames: list[Frame] = []
    for frame in scanner.frames():
        if file.last is not block:
            if frames:
                yield block, frames
            block, frames = file.last, []
        _, _, next_offset, *_ = frame
        if next_offset > first:
            frames.append(frame)
        if next_offset >= last:
            break
    if frames:
        yield block, frames


def _decode(block: Block, frames: list[Frame], partition: int) -> Iterator[Piece]:
    """One batch of all frames; if one is damaged, one batch or damaged range for each."""
    try:
        yield decode_frames(block, frames, partition)
    except CorruptRecord as error:
        if len(frames) == 1:
            _, base_offset, next_offset, *_ = frames[0]
            yield DamagedRange(base_offset, next_offset, str(error))
            return
        for frame in frames:
            yield from _decode(block, [frame], partition)


def _coalesced(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Small batches joined and large ones cut, in order; damage stands between them."""
    pending: list[pa.RecordBatch] = []
    rows = size_bytes = 0
    for piece in pieces:
        if isinstance(piece, DamagedRange):
            yield from _cut(pending)
            pending, rows, size_bytes = [], 0, 0
            yield piece
            continue
        pending.append(piece)
        rows += piece.num_rows
        size_bytes += piece.nbytes
        if rows >= MIN_ROWS or size_bytes >= MAX_PENDING_BYTES:
            yield from _cut(pending)
            pending, rows, size_bytes = [], 0, 0
    yield from _cut(pending)


def _cut(pending: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    if pending:
        batch = pa.concat_batches(pending)
        for row in range(0, batch.num_rows, MAX_ROWS):
            yield batch.slice(row, MAX_ROWS)
