"""Reading one segment: from an offset to whole, checked frames. Any thread; holds one file open.

The index is a hint: the frame it points to is verified, and a wrong or incomplete index is rebuilt.
"""

from collections.abc import Callable, Iterator
from struct import Struct

from .batch import HEADER_BYTES, PREFIX_BYTES, BatchHeader, read_header
from .epochs import Lineage
from .errors import CorruptRange, OffsetOutOfRange
from .files import ReadFile
from .scan import MAX_FRAME_BYTES, Damage, FrameScanner, fault_of
from .segment import Segment

SCAN_BYTES = 1024 * 1024
_LENGTH = Struct(">i")
_COUNT = Struct(">i")
_COUNT_AT = 57


class SegmentReader:
    """Reads one pinned segment, as it was when the reader was made."""

    def __init__(
        self,
        segment: Segment,
        lineage: Lineage,
        index_interval_bytes: int,
        *,
        is_active: bool,
        is_read_only: bool,
    ) -> None:
        self._segment = segment
        # The offset first: the writer moves it last, so the size covers it.
        self.next_offset = segment.next_offset
        self._size_bytes = segment.size_bytes
        self._lineage = lineage
        self._interval_bytes = index_interval_bytes
        self._is_active = is_active
        self._write_indexes = not is_read_only and not is_active

    def read(self, offset: int, max_bytes: int, end: int) -> list[bytes]:
        """Frames from the one with `offset` up to `end`, at most `max_bytes` but at least one.

        Raises CorruptRange when `offset` lies in a damaged range.
        """
        with self._segment.open() as file:
            walk = _Walk(file, self._size_bytes, self._lineage, max_bytes + self._interval_bytes)
            walk.move(*self._locate(file, offset))
            is_index_short = self._seek(walk, file, offset)
            frames = _take(walk, max_bytes, end)
        if is_index_short and not self._segment.is_index_trusted:
            self._rebuild()
        return frames

    def first_offset_before(self, timestamp_ms: int) -> int:
        """An offset from where a walk meets the first frame appended at or after `timestamp_ms`."""
        _, time_index = self._segment.indexes(
            self._lineage, self._interval_bytes, write=self._write_indexes
        )
        relative_offset = time_index.lookup(timestamp_ms)
        if relative_offset is None:
            return self._segment.base_offset
        offset = self._segment.base_offset + relative_offset
        if self._segment.is_index_trusted or self._was_reached(offset, timestamp_ms):
            return offset
        if self._is_active:  # its index is the writer's; a walk from the start is always right
            return self._segment.base_offset
        self._rebuild()
        relative_offset = self._segment.indexes(self._lineage, self._interval_bytes, write=False)[
            1
        ].lookup(timestamp_ms)
        return self._segment.base_offset + (relative_offset or 0)

    def _was_reached(self, offset: int, timestamp_ms: int) -> bool:
        """Whether the frame at `offset` really is older than `timestamp_ms`, as the index says."""
        if offset >= self.next_offset:
            return False
        try:
            frames = self.read(offset, 1, self.next_offset)
        except CorruptRange:
            return False
        return bool(frames) and read_header(frames[0]).max_timestamp_ms < timestamp_ms

    def _locate(self, file: ReadFile, offset: int) -> tuple[int, int]:
        """A position of a frame at or before `offset`, and its base offset."""
        place = self._indexed_place(file, offset)
        if place is None and not self._is_active:
            self._rebuild()
            place = self._indexed_place(file, offset)
        return place or (0, self._segment.base_offset)

    def _indexed_place(self, file: ReadFile, offset: int) -> tuple[int, int] | None:
        """What the index says, if the frame there agrees."""
        base_offset = self._segment.base_offset
        index, _ = self._segment.indexes(
            self._lineage, self._interval_bytes, write=self._write_indexes
        )
        entry = index.lookup(offset - base_offset)
        if entry is None:
            return 0, base_offset
        relative_offset, position = entry
        header_bytes = file.read(HEADER_BYTES, position)
        if len(header_bytes) < HEADER_BYTES:
            return None
        header = read_header(header_bytes)
        if header.last_offset != base_offset + relative_offset or header.record_count < 1:
            return None
        return position, header.base_offset

    def _seek(self, walk: "_Walk", file: ReadFile, offset: int) -> bool:
        """Walk to the frame with `offset`, over damage; True when the index should be longer."""
        is_index_short = False
        first_position = walk.position
        while True:
            fault = walk.look()
            if fault is not None:
                damage = self._damage(file, walk.position, walk.offset, fault)
                if offset < damage.to_offset:
                    raise CorruptRange(damage.from_offset, damage.to_offset, damage.reason)
                walk.move(damage.end_position, damage.to_offset)
                first_position = walk.position
            elif walk.next_offset > offset:
                return is_index_short
            else:
                # A whole index would have pointed behind a frame so far from the last entry.
                is_index_short |= walk.position - first_position > self._interval_bytes
                walk.advance()

    def _damage(self, file: ReadFile, position: int, expected: int, fault: str) -> Damage:
        known = self._segment.damage_at(position)
        if known is not None:
            return known
        scanner = FrameScanner(
            file,
            position=position,
            offset=expected,
            end_position=self._size_bytes,
            lineage=self._lineage,
        )
        scanner.fault = fault
        damage = scanner.resync() or Damage(  # to the segment's end
            position, self._size_bytes, expected, self.next_offset, fault
        )
        self._segment.note_damage(damage)
        return damage

    def _rebuild(self) -> None:
        if not self._is_active:
            self._segment.rebuild_indexes(
                self._lineage, self._interval_bytes, write=self._write_indexes
            )


def _take(walk: "_Walk", max_bytes: int, end: int) -> list[bytes]:
    """Copy good frames up to `end`; the first one even if it is larger than `max_bytes`."""
    frames: list[bytes] = []
    taken_bytes = 0
    while walk.look() is None and walk.next_offset <= end:
        taken_bytes += len(walk.frame)
        if frames and taken_bytes > max_bytes:
            break
        frames.append(bytes(walk.frame))
        walk.advance()
    return frames


class _Walk:
    """A cursor over frames in memory; `frame` holds `offset` up to `next_offset`."""

    def __init__(self, file: ReadFile, size_bytes: int, lineage: Lineage, read_bytes: int) -> None:
        self.position = 0
        self.offset = 0
        self.next_offset = 0
        self.frame = memoryview(b"")
        self._is_judged = False
        self._size_bytes = size_bytes
        self._lineage = lineage
        self._window = _Window(file, size_bytes, read_bytes)

    def move(self, position: int, offset: int) -> None:
        self.position, self.offset = position, offset
        self._is_judged = False

    def advance(self) -> None:
        self.move(self.position + len(self.frame), self.next_offset)

    def look(self) -> str | None:
        """Judge the frame here, once; what is wrong with it, or None."""
        if self._is_judged:
            return None
        if self.position >= self._size_bytes:
            return "the segment ends before it should"
        frame = self._window.frame_at(self.position)
        if frame is None:
            return self._window.fault
        fault = fault_of(frame, 0, self.offset, self._lineage.span_at(self.offset)[0])
        if fault is None:
            self.frame = frame
            self.next_offset = self.offset + _COUNT.unpack_from(frame, _COUNT_AT)[0]
            self._is_judged = True
        return fault


class _Window:
    """A part of the file in memory that moves forward; one read for most calls."""

    def __init__(self, file: ReadFile, size_bytes: int, read_bytes: int) -> None:
        self.fault: str | None = None
        self._file = file
        self._size_bytes = size_bytes
        self._read_bytes = min(max(read_bytes, 2 * HEADER_BYTES), MAX_FRAME_BYTES)
        self._start = 0
        self._view = memoryview(b"")

    def frame_at(self, position: int) -> memoryview | None:
        """The frame at `position` as long as it claims to be; None, with `fault`, if impossible."""
        if not self._holds(position, HEADER_BYTES):
            self._load(position, self._read_bytes)
        if not self._holds(position, HEADER_BYTES):
            self.fault = "the file ends inside a header"
            return None
        length = _LENGTH.unpack_from(self._view, position - self._start + 8)[0] + PREFIX_BYTES
        if not HEADER_BYTES <= length <= min(MAX_FRAME_BYTES, self._size_bytes - position):
            self.fault = f"a length of {length} bytes does not fit"
            return None
        if not self._holds(position, length):
            self._load(position, max(length, self._read_bytes))
        if not self._holds(position, length):
            self.fault = f"the file ends inside a batch of {length} bytes"
            return None
        return self._view[position - self._start : position - self._start + length]

    def _holds(self, position: int, length_bytes: int) -> bool:
        at = position - self._start
        return at >= 0 and at + length_bytes <= len(self._view)

    def _load(self, position: int, length_bytes: int) -> None:
        length_bytes = min(length_bytes, self._size_bytes - position)
        self._view = memoryview(self._file.read(length_bytes, position))
        self._start = position


def walk_headers(
    read: Callable[[int, int, int], list[bytes]], offset: int, end: int
) -> Iterator[BatchHeader]:
    """The headers of all readable frames from the one with `offset` on, over damage."""
    while offset < end:
        try:
            frames = read(offset, SCAN_BYTES, end)
        except CorruptRange as error:
            offset = error.to_offset
            continue
        except OffsetOutOfRange as error:
            if not error.is_below:
                return
            offset = error.earliest
            continue
        for frame in frames:
            header = read_header(frame)
            yield header
            offset = header.next_offset
