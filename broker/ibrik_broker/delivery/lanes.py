"""Order: one message of a lane on its way at a time, the others wait their turn. Pure.

With ordering `key` a lane is the digest of a key, with `strict` it is the whole partition. A lane
is taken from the first hand-out of a message until it is settled, also while it waits for its next
attempt. After a dead letter the lane goes on at once.
"""

from collections import deque
from hashlib import blake2b

from ibrik_api.resources.topic import Ordering
from ibrik_broker.delivery.message import Delivery

LANE_BYTES = 16
HELD_COUNT_LIMIT = 10_000
HELD_BYTES_LIMIT = 4 * 2**20
"""Messages that wait for their lane are held in memory; at the limit reading stops until one of
the lanes goes on."""


def lane_of(ordering: Ordering, key: bytes | None) -> bytes | None:
    """The lane of a message; None: it goes without waiting for others."""
    match ordering:
        case Ordering.STRICT:
            return b""
        case Ordering.KEY if key is not None:
            return blake2b(key, digest_size=LANE_BYTES).digest()
    return None


class Lanes:
    """The taken lanes of one partition, each with the messages that wait behind."""

    __slots__ = ("_waiting", "held_bytes", "held_count")

    def __init__(self) -> None:
        self._waiting: dict[bytes, deque[Delivery]] = {}
        self.held_count = 0
        self.held_bytes = 0

    @property
    def is_used(self) -> bool:
        return bool(self._waiting)

    @property
    def have_room(self) -> bool:
        """Whether more messages may wait."""
        return self.held_count < HELD_COUNT_LIMIT and self.held_bytes < HELD_BYTES_LIMIT

    def take(self, lane: bytes) -> None:
        """Take a free lane, for a message that is parked already."""
        self._waiting.setdefault(lane, deque())

    def enter(self, delivery: Delivery) -> bool:
        """Whether the message may go now; otherwise it is held until its lane is free."""
        lane = delivery.lane
        if lane is None:
            return True
        waiting = self._waiting.get(lane)
        if waiting is None:
            self._waiting[lane] = deque()
            return True
        waiting.append(delivery)
        self.held_count += 1
        self.held_bytes += delivery.size_bytes
        return False

    def leave(self, lane: bytes | None) -> Delivery | None:
        """The message of this lane is settled: the next one that may go, if one waits."""
        if lane is None or lane not in self._waiting:
            return None
        waiting = self._waiting[lane]
        if not waiting:
            del self._waiting[lane]
            return None
        following = waiting.popleft()
        self.held_count -= 1
        self.held_bytes -= following.size_bytes
        return following
