"""How far a flow has come in one partition: a cursor and the settled ranges beyond it. Pure.

A message is *settled* when nobody has to deliver it any more from here: it was delivered, it did
not fit the filter, it went to the dead letters, or it is parked for a later attempt and has a row
of its own. The cursor stands at the first offset that is not settled and never moves backwards.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

NO_RANGES: list[int] = []
"""Of every flow that is settled in the order of the log, which are most. Never changed: the first
range brings lists of its own."""


class Progress:
    __slots__ = ("_ends", "_starts", "next_offset")

    def __init__(self, next_offset: int, settled: Sequence[int] = ()) -> None:
        """`settled` as `encode` gives it: the lengths of hole and range in turn."""
        self.next_offset = next_offset
        self._starts = NO_RANGES
        self._ends = NO_RANGES
        if settled:
            self._decode(settled)

    def _decode(self, settled: Sequence[int]) -> None:
        self._starts, self._ends = [], []
        position = self.next_offset
        for hole, length in zip(settled[::2], settled[1::2], strict=True):
            self._starts.append(position + hole)
            position += hole + length
            self._ends.append(position)

    @property
    def range_count(self) -> int:
        return len(self._starts)

    @property
    def settled_count(self) -> int:
        """Settled offsets beyond the cursor."""
        return sum(self._ends) - sum(self._starts)

    def is_settled(self, offset: int) -> bool:
        if offset < self.next_offset:
            return True
        index = bisect_right(self._starts, offset) - 1
        return index >= 0 and offset < self._ends[index]

    def settled_between(self, start: int, end: int) -> int:
        """Settled offsets beyond the cursor, from `start` to before `end`."""
        return sum(
            max(0, min(range_end, end) - max(range_start, start))
            for range_start, range_end in zip(self._starts, self._ends, strict=True)
        )

    def reopened(self, offsets: Sequence[int]) -> "Progress":
        """The same, but that `offsets` are not settled; the cursor moves back to the first one."""
        again = sorted(offset for offset in offsets if self.is_settled(offset))
        opened = Progress(min([*again, self.next_offset]))
        start = opened.next_offset
        for offset in again:
            if offset < self.next_offset:
                opened.settle_if_any(start, offset)
                start = offset + 1
        opened.settle_if_any(start, self.next_offset)
        for range_start, range_end in zip(self._starts, self._ends, strict=True):
            start = range_start
            for offset in again:
                if range_start <= offset < range_end:
                    opened.settle_if_any(start, offset)
                    start = offset + 1
            opened.settle_if_any(start, range_end)
        return opened

    def settle_if_any(self, start: int, end: int) -> None:
        if start < end:
            self.settle(start, end)

    def settle(self, start: int, end: int | None = None) -> None:
        """Settle `start`, or the range `start` to before `end`; a repeat changes nothing."""
        end = start + 1 if end is None else end
        if end <= self.next_offset:
            return
        if start <= self.next_offset:
            self._advance(end)
        else:
            self._insert(start, end)

    def _advance(self, end: int) -> None:
        """Move the cursor to `end`, and over every range that begins there."""
        if not self._starts:
            self.next_offset = end
            return
        count = 0
        while count < len(self._starts) and self._starts[count] <= end:
            end = max(end, self._ends[count])
            count += 1
        del self._starts[:count]
        del self._ends[:count]
        self.next_offset = end

    def _insert(self, start: int, end: int) -> None:
        """Add a range beyond the cursor, joined with those that it touches."""
        if not self._starts:
            self._starts, self._ends = [start], [end]
            return
        first = bisect_left(self._ends, start)
        last = bisect_right(self._starts, end)
        if first < last:
            start = min(start, self._starts[first])
            end = max(end, self._ends[last - 1])
        self._starts[first:last] = [start]
        self._ends[first:last] = [end]

    def encode(self) -> list[int]:
        """The ranges as lengths of hole and range in turn, from the cursor on: small numbers."""
        lengths: list[int] = []
        position = self.next_offset
        for start, end in zip(self._starts, self._ends, strict=True):
            lengths += (start - position, end - start)
            position = end
        return lengths
