"""The newest batches of every partition in memory, encoded once and shared by all readers.

One budget in bytes for the whole broker: the oldest batch leaves first, whichever partition has it.
Lives on the event loop.
"""

from bisect import bisect_right
from collections import deque
from dataclasses import dataclass, field

ENTRY_OVERHEAD_BYTES = 128
"""What a cached batch costs besides its bytes: two objects, two slots in deques."""


@dataclass(slots=True, eq=False)
class Tail:
    """A contiguous run of encoded batches that ends at the partition's high watermark."""

    base_offsets: deque[int] = field(default_factory=deque)
    batches: deque[bytes] = field(default_factory=deque)
    next_offset: int = 0

    def read(self, offset: int, max_bytes: int) -> list[bytes] | None:
        """The batches from the one that holds `offset`; None when it is older than the tail."""
        if not self.base_offsets or offset < self.base_offsets[0]:
            return None
        index = bisect_right(self.base_offsets, offset) - 1
        found: list[bytes] = []
        size = 0
        while index < len(self.batches):
            batch = self.batches[index]
            size += len(batch)
            if found and size > max_bytes:
                break
            found.append(batch)
            index += 1
        return found


class TailCache:
    """The byte budget over all tails."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self.size_bytes = 0
        self._age: deque[Tail] = deque()  # one entry per cached batch, oldest first

    def extend(self, tail: Tail, base_offset: int, next_offset: int, batch: bytes) -> None:
        """Add the next batch of a partition."""
        if base_offset != tail.next_offset:
            self.clear(tail)  # a gap: what was cached no longer reaches the high watermark
        tail.base_offsets.append(base_offset)
        tail.batches.append(batch)
        tail.next_offset = next_offset
        self._age.append(tail)
        self.size_bytes += len(batch) + ENTRY_OVERHEAD_BYTES
        while self.size_bytes > self._limit_bytes:
            self._drop_oldest()

    def clear(self, tail: Tail) -> None:
        """Forget a partition (closed, purged); its places in the age queue become empty."""
        self.size_bytes -= sum(len(batch) + ENTRY_OVERHEAD_BYTES for batch in tail.batches)
        tail.base_offsets.clear()
        tail.batches.clear()

    def _drop_oldest(self) -> None:
        tail = self._age.popleft()
        if tail.batches:
            self.size_bytes -= len(tail.batches.popleft()) + ENTRY_OVERHEAD_BYTES
            tail.base_offsets.popleft()
