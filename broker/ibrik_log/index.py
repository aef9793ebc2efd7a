"""The offset index of a segment, in Kafka's format (docs/formats/index.md). A cache of the log.

An entry says: the frame at `position` ends with the record at `offset`. Values only, no disk.
"""

import sys
from array import array
from bisect import bisect_right
from operator import lt

ENTRY_BYTES = 8


class OffsetIndex:
    """Sparse pairs of relative last offset and position. One thread adds, any thread looks up."""

    def __init__(self) -> None:
        self._offsets = array("i")
        self._positions = array("i")

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def last_position(self) -> int:
        return self._positions[-1] if self._positions else 0

    def add(self, relative_offset: int, position: int) -> None:
        # The position first: a reader finds an entry by its offset.
        self._positions.append(position)
        self._offsets.append(relative_offset)

    def lookup(self, relative_offset: int) -> tuple[int, int] | None:
        """The last entry (relative last offset, position) at or below; None: start at 0."""
        number = bisect_right(self._offsets, relative_offset) - 1
        return None if number < 0 else (self._offsets[number], self._positions[number])

    def encode(self) -> bytes:
        pairs = array("i", bytes(ENTRY_BYTES * len(self)))
        pairs[0::2] = self._offsets
        pairs[1::2] = self._positions
        if sys.byteorder == "little":
            pairs.byteswap()
        return pairs.tobytes()

    @classmethod
    def decode(cls, content: bytes, size_bytes: int) -> "OffsetIndex | None":
        """Read an index of a segment of `size_bytes`; None when it cannot be one."""
        if len(content) % ENTRY_BYTES:
            return None
        pairs = array("i", content)
        if sys.byteorder == "little":
            pairs.byteswap()
        index = cls()
        index._offsets, index._positions = pairs[0::2], pairs[1::2]
        return index if index._is_plausible(size_bytes) else None

    def _is_plausible(self, size_bytes: int) -> bool:
        offsets, positions = self._offsets, self._positions
        return not len(self) or (
            offsets[0] >= 0
            and positions[0] >= 0
            and positions[-1] < size_bytes
            and all(map(lt, offsets, offsets[1:]))
            and all(map(lt, positions, positions[1:]))
        )
