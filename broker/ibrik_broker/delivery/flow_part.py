"""One partition of a flow: its progress, what was read and not handed out yet, what is in hand.

There are ten thousand idle ones: what only passing messages need is there while they pass.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from ibrik_api.resources.topic import Ordering
from ibrik_broker.delivery.clocks import Clocks
from ibrik_broker.delivery.lanes import Lanes, lane_of
from ibrik_broker.delivery.message import Delivery
from ibrik_broker.delivery.progress import Progress
from ibrik_broker.metadata.deliveries import CursorRow
from ibrik_broker.partitions.partition import Partition
from ibrik_broker.partitions.topic import Topic

if TYPE_CHECKING:
    from ibrik_log.record import StoredRecord

RANGES_LIMIT = 10_000
"""Settled ranges beyond the cursor, which are written with each commit."""
NO_END = 2**63 - 1
NOTHING_IN_HAND: Mapping[int, Delivery] = MappingProxyType({})


class FlowPart:
    __slots__ = (
        "_clocks",
        "_in_hand",
        "_lanes",
        "end",
        "epoch",
        "flow_id",
        "fresh",
        "head",
        "index",
        "is_fenced",
        "progress",
        "read_offset",
        "topic_id",
    )

    def __init__(
        self,
        flow_id: str,
        index: int,
        progress: Progress,
        *,
        topic_id: str,
        end: int = NO_END,
        epoch: int = 0,
        clocks: Clocks,
    ) -> None:
        self.index = index
        self.topic_id = topic_id
        """Of the topic that the offsets belong to; one that is made anew has another."""
        self.progress = progress
        self.end = end
        self.epoch = epoch
        self.read_offset = progress.next_offset
        self.fresh: deque[Delivery] | None = None
        """Read, and free to go; None rather than empty, since a deque takes 0.7 KiB."""
        self._in_hand: dict[int, Delivery] | None = None
        self._lanes: Lanes | None = None
        """Made for the first message that has a lane."""
        self.is_fenced = False
        """Somebody else moved the cursor: nothing is handed out from here."""
        self.head: StoredRecord | None = None
        """What stood at the cursor when someone looked; to know its age."""
        self.flow_id = flow_id
        self._clocks = clocks

    @property
    def in_hand(self) -> Mapping[int, Delivery]:
        """What was handed out and is not settled, parked or given back, by offset."""
        return NOTHING_IN_HAND if self._in_hand is None else self._in_hand

    def source(self, topic: Topic | None) -> Partition:
        assert topic is not None, "only a flow whose topic is served reads"
        return topic.partitions[self.index]

    def may_read(self, topic: Topic | None) -> bool:
        """Whether there is more in the log, and room for it here."""
        if self.is_fenced or topic is None or self.index >= len(topic.partitions):
            return False
        return (
            self.read_offset < min(self.source(topic).latest, self.end)
            and (self._lanes is None or self._lanes.have_room)
            and self.progress.range_count < RANGES_LIMIT
        )

    def enter(self, delivery: Delivery, ordering: Ordering) -> None:
        """A record that was read: it may go, or waits for its lane."""
        delivery.lane = lane_of(ordering, delivery.record.key)
        if delivery.lane is None or self._some_lanes().enter(delivery):
            if self.fresh is None:
                self.fresh = deque()
            self.fresh.append(delivery)

    def take_lane(self, lane: bytes) -> None:
        """For a message that is parked already."""
        self._some_lanes().take(lane)

    def _some_lanes(self) -> Lanes:
        if self._lanes is None:
            self._lanes = Lanes()
        return self._lanes

    def take_fresh(self) -> Delivery | None:
        """The next one that may go, if any is read."""
        if self.fresh is None:
            return None
        delivery = self.fresh.popleft()
        if not self.fresh:
            self.fresh = None
        return delivery

    def hand_out(self, delivery: Delivery) -> None:
        if self._in_hand is None:
            self._in_hand = {}
        self._in_hand[delivery.offset] = delivery

    def take_back(self, delivery: Delivery) -> None:
        """It is in hand no more."""
        assert self._in_hand is not None, "it was handed out"
        del self._in_hand[delivery.offset]

    def leave(self, lane: bytes | None) -> bool:
        """A message of the lane is settled; whether another one may go now."""
        following = None if self._lanes is None else self._lanes.leave(lane)
        if following is None:
            return False
        self._put_first(following)
        return True

    def give_back(self, delivery: Delivery) -> None:
        """To its place among what may go, by offset; unless it is read again anyway."""
        if delivery.offset >= self.read_offset:
            return
        earlier = []
        while self.fresh and self.fresh[0].offset < delivery.offset:
            earlier.append(self.fresh.popleft())
        self._put_first(*earlier, delivery)

    def _put_first(self, *deliveries: Delivery) -> None:
        """Before all that may go, in this order."""
        if self.fresh is None:
            self.fresh = deque()
        self.fresh.extendleft(reversed(deliveries))

    def fence(self) -> None:
        self.is_fenced = True
        self.fresh = None

    def moved(self, progress: Progress, epoch: int) -> "FlowPart":
        """The same partition with another progress and nothing in hand."""
        return FlowPart(
            self.flow_id,
            self.index,
            progress,
            topic_id=self.topic_id,
            end=self.end,
            epoch=epoch,
            clocks=self._clocks,
        )

    def let_go(self) -> None:
        """Forget what was read, unless lanes hold messages in their order."""
        if self.fresh and (self._lanes is None or not self._lanes.is_used):
            self.read_offset = min(delivery.offset for delivery in self.fresh)
            self.fresh = None

    def unsettled_count(self, topic: Topic | None) -> int:
        """Neither settled nor parked, of what the log holds; of what was read while it is away."""
        latest = self.read_offset
        if topic is not None and self.index < len(topic.partitions):
            latest = min(self.source(topic).latest, self.end)
        return max(0, latest - self.progress.next_offset - self.progress.settled_count)

    def cursor_row(self, now_ms: int) -> CursorRow:
        return CursorRow(
            flow_id=self.flow_id,
            partition=self.index,
            topic_id=self.topic_id,
            next_offset=self.progress.next_offset,
            settled=self.progress.encode(),
            claimed=encode_claims(self.in_hand.values(), self._clocks.wall_ms),
            epoch=self.epoch,
            updated_ms=now_ms,
        )


def encode_claims(in_hand: Iterable[Delivery], wall_ms: Callable[[int], int]) -> list[list[int]]:
    """`[from, to, attempt, until, first]` for runs of neighbours that were handed out together."""
    claims: list[list[int]] = []
    last_run: tuple[int, int, int] | None = None
    for delivery in sorted(in_hand, key=lambda delivery: delivery.offset):
        offset = delivery.offset
        run = delivery.attempt, delivery.until_ticks, delivery.first_ms
        if run == last_run and claims[-1][1] == offset:
            claims[-1][1] = offset + 1
        else:
            until_ms = wall_ms(delivery.until_ticks)
            claims.append([offset, offset + 1, delivery.attempt, until_ms, delivery.first_ms])
            last_run = run
    return claims
