"""The time index of a segment, in Kafka's format (docs/formats/timeindex.md). A cache of the log.

An entry says: of all index points, the frame that ends with `offset` was the first to reach this
time.
Append times never fall, so timestamps rise. Values only, no disk.
"""

from array import array
from bisect import bisect_left
from itertools import chain
from operator import lt
from struct import Struct, iter_unpack, pack

ENTRY = Struct(">qi")


class TimeIndex:
    """Pairs of append time and relative last offset. One thread adds, any thread looks up."""

    def __init__(self) -> None:
        self._timestamps = array("q")
        self._offsets = array("i")

    def __len__(self) -> int:
        return len(self._timestamps)

    def add(self, timestamp_ms: int, relative_offset: int) -> None:
        """Add an entry, unless this time was reached before."""
        if not self._timestamps or timestamp_ms > self._timestamps[-1]:
            self._offsets.append(relative_offset)
            self._timestamps.append(timestamp_ms)

    def lookup(self, timestamp_ms: int) -> int | None:
        """The relative last offset of the last entry before `timestamp_ms`; None: start at 0."""
        number = bisect_left(self._timestamps, timestamp_ms) - 1
        return None if number < 0 else self._offsets[number]

    def encode(self) -> bytes:
        count = len(self)
        pairs = chain.from_iterable(zip(self._timestamps, self._offsets, strict=True))
        return pack(">" + "qi" * count, *pairs)

    @classmethod
    def decode(cls, content: bytes) -> "TimeIndex | None":
        """Read a time index; None when it cannot be one."""
        if len(content) % ENTRY.size:
            return None
        index = cls()
        for timestamp_ms, relative_offset in iter_unpack(ENTRY.format, content):
            index._timestamps.append(timestamp_ms)
            index._offsets.append(relative_offset)
        return index if index._is_plausible() else None

    def _is_plausible(self) -> bool:
        timestamps, offsets = self._timestamps, self._offsets
        return not len(self) or (
            offsets[0] >= 0
            and all(map(lt, timestamps, timestamps[1:]))
            and all(map(lt, offsets, offsets[1:]))
        )
