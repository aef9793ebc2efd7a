"""Messages that failed and wait for their next attempt. Pure.

References only, never payloads: a message is read again when its time comes. Times are monotonic
milliseconds (ticks), so that a jump of the clock brings no storm of attempts.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ibrik_broker.delivery.deadletters import Reason


@dataclass(slots=True, eq=False)
class Parked:
    partition: int
    offset: int
    attempts: int
    """Made so far."""
    first_ms: int
    """When the first one began (wall clock)."""
    due_ticks: int | None
    """None: blocked until someone resumes the subscription."""
    lane: bytes | None = None
    reason: "Reason | None" = None
    """Why it is a dead letter that could not be written yet; None: it is to be delivered."""


_numbers = count()
"""Counted over all flows: only which of two is higher matters."""


class ParkedMessages:
    """The parked messages of one flow, the one that is due first at hand."""

    __slots__ = ("_by_place", "_heap")

    def __init__(self) -> None:
        self._by_place: dict[tuple[int, int], Parked] = {}
        # The second number keeps entries of one time apart, in the order of their coming.
        self._heap: list[tuple[int, int, Parked]] = []

    def __len__(self) -> int:
        return len(self._by_place)

    def __iter__(self) -> Iterator[Parked]:
        return iter(self._by_place.values())

    @property
    def blocked_count(self) -> int:
        return sum(parked.due_ticks is None for parked in self._by_place.values())

    def get(self, partition: int, offset: int) -> Parked | None:
        return self._by_place.get((partition, offset))

    def add(self, parked: Parked) -> None:
        assert self is not NOTHING_PARKED, "a flow that parks something has messages of its own"
        self._by_place[parked.partition, parked.offset] = parked
        self._schedule(parked)

    def remove(self, partition: int, offset: int) -> Parked | None:
        return self._by_place.pop((partition, offset), None)

    def due_ticks(self) -> int | None:
        """When the first one is due; None: nothing will ever be."""
        self._drop_stale()
        return self._heap[0][0] if self._heap else None

    def take_due(self, now_ticks: int, max_count: int) -> list[Parked]:
        """Those that are due, oldest first; they stay known until they are removed."""
        due: list[Parked] = []
        while len(due) < max_count:
            self._drop_stale()
            if not self._heap or self._heap[0][0] > now_ticks:
                break
            due.append(heappop(self._heap)[2])
        return due

    def unblock(self, now_ticks: int) -> list[Parked]:
        """What is blocked becomes due now, with all its attempts."""
        blocked = [parked for parked in self._by_place.values() if parked.due_ticks is None]
        for parked in blocked:
            parked.due_ticks, parked.attempts = now_ticks, 0
            self._schedule(parked)
        return blocked

    def _schedule(self, parked: Parked) -> None:
        if parked.due_ticks is not None:
            heappush(self._heap, (parked.due_ticks, next(_numbers), parked))

    def _drop_stale(self) -> None:
        """Entries whose message was removed, or has another time by now."""
        heap = self._heap
        while heap:
            due_ticks, _, parked = heap[0]
            known = self._by_place.get((parked.partition, parked.offset))
            if known is parked and parked.due_ticks == due_ticks:
                return
            heappop(heap)


NOTHING_PARKED = ParkedMessages()
"""Of every flow that never parked a message, which are most; it stays empty."""
