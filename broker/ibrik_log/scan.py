"""Walking the frames of a segment file: the only judge of where a log ends and what is damaged.

File size and zeros prove nothing: a frame counts when its length, magic, offset, epoch, count and
checksum fit. Memory is bounded by one chunk or one frame. Used by recovery, by the rebuild of
indexes and by verify.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from re import Pattern
from struct import Struct
from typing import NamedTuple

from crc32c import crc32c

from .batch import CRC_START, HEADER, HEADER_BYTES, MAGIC, MIN_RECORD_BYTES, PREFIX_BYTES, Buffer
from .checkpoint import SegmentSummary
from .epochs import EpochRun, Lineage
from .files import ReadFile
from .index import OffsetIndex
from .timeindex import TimeIndex

CHUNK_BYTES = 1024 * 1024
# No frame is longer: a damaged length must not make recovery read the rest of a large file at once.
MAX_FRAME_BYTES = 64 * 1024 * 1024

_LENGTH = Struct(">i")
_SMALLEST = HEADER_BYTES + MIN_RECORD_BYTES


class Damage(NamedTuple):
    """Bytes that are no frame, the offsets they held, and what is wrong with the first."""

    position: int
    end_position: int
    from_offset: int
    to_offset: int
    reason: str


# position, base offset, next offset, leader epoch, append time
Frame = tuple[int, int, int, int, int]


def fault_of(buffer: Buffer, at: int, offset: int, epoch: int | None) -> str | None:
    """What is wrong with the whole frame at `at`, which should start at `offset`; None: nothing.

    `epoch` None accepts every epoch, for the rebuild of a lost lineage.
    """
    base_offset, length_field, leader_epoch, magic, crc, _, last_delta, *_, count = (
        HEADER.unpack_from(buffer, at)
    )
    if magic != MAGIC:
        return f"magic is {magic}"
    if base_offset != offset:
        return f"base offset is {base_offset}, not {offset}"
    if epoch is not None and leader_epoch != epoch:
        return f"leader epoch is {leader_epoch}, not {epoch}"
    end = at + length_field + PREFIX_BYTES
    if crc32c(memoryview(buffer)[at + CRC_START : end]) != crc:
        return "the checksum is wrong"
    if count < 1 or last_delta != count - 1:
        return f"{count} records with a last offset delta of {last_delta}"
    return None


class FrameScanner:
    """A cursor over the frames of one file; `position` and `offset`: where the next must be."""

    def __init__(
        self,
        file: ReadFile,
        *,
        position: int,
        offset: int,
        end_position: int,
        lineage: Lineage | None,
    ) -> None:
        self.position = position
        self.offset = offset
        self.fault: str | None = None
        self._file = file
        self._end_position = end_position
        self._lineage = lineage

    @property
    def is_at_end(self) -> bool:
        return self.position >= self._end_position

    def frames(self) -> Iterator[Frame]:
        """Yield frames up to the end or to the first bad one; `fault` then says why."""
        self.fault = None
        while not self.is_at_end:
            chunk = self._load()
            if chunk is None:
                return
            yield from self._frames_of(chunk)
            if self.fault is not None:
                return

    def _load(self) -> bytes | None:
        """A chunk with at least one whole frame; None, with a fault, when there cannot be one."""
        wanted = min(CHUNK_BYTES, self._end_position - self.position)
        chunk = self._file.read(wanted, self.position)
        if len(chunk) < _SMALLEST:
            self.fault = f"{len(chunk)} bytes are no batch"
            return None
        length = _LENGTH.unpack_from(chunk, 8)[0] + PREFIX_BYTES
        if not _SMALLEST <= length <= min(MAX_FRAME_BYTES, self._end_position - self.position):
            self.fault = f"a length of {length} bytes does not fit"
            return None
        if length > len(chunk):
            chunk = self._file.read(length, self.position)
        if length > len(chunk):  # the file is shorter than it was said to be
            self.fault = f"the file ends inside a batch of {length} bytes"
            return None
        return chunk

    def _frames_of(self, chunk: bytes) -> Iterator[Frame]:
        """The whole frames of a chunk. One unpack a frame: a start walks millions of them."""
        at = 0
        start = self.position
        size_bytes = len(chunk)
        unpack = HEADER.unpack_from
        view = memoryview(chunk)
        offset = self.offset
        epoch, until = self._span()
        while at + _SMALLEST <= size_bytes:
            (
                base_offset,
                length,
                leader_epoch,
                magic,
                crc,
                _,
                last_delta,
                _,
                append_ms,
                *_,
                count,
            ) = unpack(chunk, at)
            end = at + length + PREFIX_BYTES
            if end > size_bytes or length < _SMALLEST - PREFIX_BYTES:
                return  # cut by the chunk, or impossible: the next load decides
            if (
                base_offset != offset
                or magic != MAGIC
                or (epoch is not None and leader_epoch != epoch)
                or count < 1
                or last_delta != count - 1
                or crc32c(view[at + CRC_START : end]) != crc
            ):
                self.fault = fault_of(view, at, offset, epoch)
                return
            offset += count
            self.position = start + end
            self.offset = offset
            yield start + at, base_offset, offset, leader_epoch, append_ms
            at = end
            if offset >= until:
                epoch, until = self._span()

    def _span(self) -> tuple[int | None, int]:
        return self._lineage.span_at(self.offset) if self._lineage else (None, 1 << 63)

    def resync(self) -> Damage | None:
        """Move to the next valid frame after a bad one; None when none follows (a torn tail).

        First where the bad frame itself ends, if one wrong bit explains it; then by searching. A
        candidate must fit in every field, and its offset must be one that the damaged bytes can
        have held, so that a batch inside a record's value is not taken for one of ours.
        """
        start, from_offset = self.position, self.offset
        for end_position in self._likely_ends(start):
            if end_position == self._end_position:
                return None
            header = self._file.read(HEADER_BYTES, end_position)
            base_offset = self._candidate(header, 0, end_position, start, from_offset)
            if base_offset is not None:
                return self._resume(end_position, base_offset)
        overlap = HEADER_BYTES - 1
        last_offset = from_offset + (self._end_position - start) // MIN_RECORD_BYTES
        looks_like_header = _header_pattern(from_offset + 1, last_offset, self._lineage)
        at = start + 1
        while at + _SMALLEST <= self._end_position:
            chunk = self._file.read(min(CHUNK_BYTES, self._end_position - at), at)
            if len(chunk) < _SMALLEST:
                return None
            match = looks_like_header.search(chunk)
            while match is not None:
                base_offset = self._candidate(chunk, match.start(), at, start, from_offset)
                if base_offset is not None:
                    return self._resume(at + match.start(), base_offset)
                match = looks_like_header.search(chunk, match.start() + 1)
            at += len(chunk) - overlap
        return None

    def _likely_ends(self, start: int) -> Iterator[int]:
        """Where the bad frame at `start` ends: with one bit of its length undone, or as it says.

        A wrong bit in the length leaves the checksum right, over the right length. A wrong bit
        elsewhere leaves the length right.
        """
        header = self._file.read(HEADER_BYTES, start)
        if len(header) < HEADER_BYTES:
            return
        _, length_field, _, _, crc, *_ = HEADER.unpack(header)
        room_bytes = min(MAX_FRAME_BYTES, self._end_position - start)
        for bit in range(32):
            length = (length_field & 0xFFFF_FFFF ^ 1 << bit) + PREFIX_BYTES
            if _SMALLEST <= length <= room_bytes:
                frame = self._file.read(length, start)
                if crc32c(memoryview(frame)[CRC_START:]) == crc:
                    yield start + length
        claimed = length_field + PREFIX_BYTES
        if _SMALLEST <= claimed <= room_bytes:
            yield start + claimed

    def _resume(self, position: int, base_offset: int) -> Damage:
        damage = Damage(self.position, position, self.offset, base_offset, self.fault or "no frame")
        self.position, self.offset = position, base_offset
        return damage

    def _candidate(
        self, chunk: bytes, at: int, chunk_position: int, start: int, from_offset: int
    ) -> int | None:
        if at + HEADER_BYTES > len(chunk):
            return None  # the next chunk overlaps and holds it whole
        base_offset, length_field, epoch, *_ = HEADER.unpack_from(chunk, at)
        position = chunk_position + at
        length = length_field + PREFIX_BYTES
        if not from_offset < base_offset <= from_offset + (position - start) // MIN_RECORD_BYTES:
            return None
        if not _SMALLEST <= length <= min(MAX_FRAME_BYTES, self._end_position - position):
            return None
        if self._lineage and self._lineage.span_at(base_offset)[0] != epoch:
            return None
        frame = self._file.read(length, position)
        if len(frame) < length or fault_of(frame, 0, base_offset, None):
            return None
        return int(base_offset)


def _header_pattern(first_offset: int, last_offset: int, lineage: Lineage | None) -> Pattern[bytes]:
    """What a header with an offset in this range looks like; finds candidates at the speed of C.

    Base offset, length below 128 MiB, epoch, magic 2, checksum, attributes 8.
    """
    low, high = first_offset.to_bytes(8, "big"), last_offset.to_bytes(8, "big")
    known = next((n for n in range(8) if low[n] != high[n]), 8)
    epoch = b".{4}"
    if lineage is not None:
        epochs = {lineage.span_at(first_offset)[0], lineage.span_at(last_offset)[0]}
        epochs.update(e for e, start in lineage.entries if first_offset <= start <= last_offset)
        epoch = b"|".join(re.escape(e.to_bytes(4, "big", signed=True)) for e in epochs)
    return re.compile(
        re.escape(low[:known]) + b".{%d}[\x00-\x07].{3}(?:%b)\x02.{4}\x00\x08" % (8 - known, epoch),
        re.DOTALL,
    )


@dataclass(slots=True)
class SegmentScan:
    """All that walking one segment found. `end_position` is that after the last frame."""

    base_offset: int
    next_offset: int
    end_position: int = 0
    first_append_ms: int = 0
    last_append_ms: int = 0
    damages: list[Damage] = field(default_factory=list)
    runs: list[EpochRun] = field(default_factory=list)
    index: OffsetIndex = field(default_factory=OffsetIndex)
    time_index: TimeIndex = field(default_factory=TimeIndex)
    fault: str | None = None

    def summary(self, size_bytes: int) -> SegmentSummary:
        return SegmentSummary(
            self.base_offset,
            self.next_offset,
            size_bytes,
            self.first_append_ms,
            self.last_append_ms,
        )


def scan_segment(
    file: ReadFile,
    base_offset: int,
    end_position: int,
    lineage: Lineage | None,
    index_interval_bytes: int,
) -> SegmentScan:
    """Walk a whole segment, over damage if frames follow it."""
    result = SegmentScan(base_offset, base_offset)
    scanner = FrameScanner(
        file, position=0, offset=base_offset, end_position=end_position, lineage=lineage
    )
    indexed = 0
    epoch, epoch_start, epoch_frames = -1, base_offset, 0
    while True:
        for position, frame_offset, next_offset, frame_epoch, append_ms in scanner.frames():
            if frame_epoch != epoch:
                if epoch_frames:
                    result.runs.append(EpochRun(epoch, epoch_start, epoch_frames))
                epoch, epoch_start, epoch_frames = frame_epoch, frame_offset, 0
            epoch_frames += 1
            if position - indexed > index_interval_bytes:
                result.index.add(next_offset - 1 - base_offset, position)
                result.time_index.add(append_ms, next_offset - 1 - base_offset)
                indexed = position
            result.first_append_ms = result.first_append_ms or append_ms
            result.last_append_ms = append_ms
        result.end_position, result.next_offset = scanner.position, scanner.offset
        result.fault = scanner.fault
        damage = scanner.resync() if scanner.fault is not None else None
        if damage is None:
            break
        result.damages.append(damage)
    if epoch_frames:
        result.runs.append(EpochRun(epoch, epoch_start, epoch_frames))
    return result
