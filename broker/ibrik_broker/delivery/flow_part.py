"""One partition of a flow: its progress, what was read and not handed out yet, what is in hand."""

from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ibrik_api.resources.topic import Ordering
from ibrik_broker.delivery.lanes import Lanes, lane_of
from ibrik_broker.delivery.message import Delivery
from ibrik_broker.delivery.progress import Progress
from ibrik_broker.metadata.deliveries import CursorRow
from ibrik_broker.partitions.partition import Partition
from ibrik_broker.partitions.topic import Topic

if TYPE_CHECKING:
    from ibrik_log.record import StoredRecord

HELD_COUNT_LIMIT = 10_000
HELD_BYTES_LIMIT = 4 * 2**20
"""Messages that wait for their lane are held in memory; at the limit reading stops until one of
the lanes goes on."""
RANGES_LIMIT = 10_000
"""Settled ranges beyond the cursor, which are written with each commit."""
NO_END = 2**63 - 1


class FlowPart:
    def __init__(
        self,
        flow_id: str,
        index: int,
        progress: Progress,
        *,
        topic_id: str,
        end: int = NO_END,
        epoch: int = 0,
        wall_ms: Callable[[int], int],
    ) -> None:
        self.index = index
        self.topic_id = topic_id
        """Of the topic that the offsets belong to; one that is made anew has another."""
        self.progress = progress
        self.end = end
        self.epoch = epoch
        self.read_offset = progress.next_offset
        self.fresh: deque[Delivery] = deque()
        """Read, and free to go."""
        self.in_hand: dict[int, Delivery] = {}
        self.lanes = Lanes()
        self.is_fenced = False
        """Somebody else moved the cursor: nothing is handed out from here."""
        self.head: StoredRecord | None = None
        """What stood at the cursor when someone looked; to know its age."""
        self.flow_id = flow_id
        self._wall_ms = wall_ms

    def source(self, topic: Topic | None) -> Partition:
        assert topic is not None, "only a flow whose topic is served reads"
        return topic.partitions[self.index]

    def may_read(self, topic: Topic | None) -> bool:
        """Whether there is more in the log, and room for it here."""
        if self.is_fenced or topic is None or self.index >= len(topic.partitions):
            return False
        return (
            self.read_offset < min(self.source(topic).latest, self.end)
            and self.lanes.held_count < HELD_COUNT_LIMIT
            and self.lanes.held_bytes < HELD_BYTES_LIMIT
            and self.progress.range_count < RANGES_LIMIT
        )

    def enter(self, delivery: Delivery, ordering: Ordering) -> None:
        """A record that was read: it may go, or waits for its lane."""
        delivery.lane = lane_of(ordering, delivery.record.key)
        if self.lanes.enter(delivery):
            self.fresh.append(delivery)

    def leave(self, lane: bytes | None) -> bool:
        """A message of the lane is settled; whether another one may go now."""
        following = self.lanes.leave(lane)
        if following is None:
            return False
        self.fresh.appendleft(following)
        return True

    def give_back(self, delivery: Delivery) -> None:
        """To its place among what may go, by offset; unless it is read again anyway."""
        if delivery.offset >= self.read_offset:
            return
        later = []
        while self.fresh and self.fresh[0].offset < delivery.offset:
            later.append(self.fresh.popleft())
        self.fresh.appendleft(delivery)
        self.fresh.extendleft(reversed(later))

    def fence(self) -> None:
        self.is_fenced = True
        self.fresh.clear()

    def moved(self, progress: Progress, epoch: int) -> "FlowPart":
        """The same partition with another progress and nothing in hand."""
        return FlowPart(
            self.flow_id,
            self.index,
            progress,
            topic_id=self.topic_id,
            end=self.end,
            epoch=epoch,
            wall_ms=self._wall_ms,
        )

    def let_go(self) -> None:
        """Forget what was read, unless lanes hold messages in their order."""
        if self.fresh and not self.lanes.is_used:
            self.read_offset = min(delivery.offset for delivery in self.fresh)
            self.fresh.clear()

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
            claimed=encode_claims(self.in_hand.values(), self._wall_ms),
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
