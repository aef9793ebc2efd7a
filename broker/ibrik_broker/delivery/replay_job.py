"""One replay: what was asked for, how far it is, and its messages that had all their attempts."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from ibrik_broker.delivery.counters import FlowCounters
from ibrik_broker.delivery.deadletters import Reason
from ibrik_broker.delivery.flow import Flow
from ibrik_broker.delivery.ledger import Ledger
from ibrik_broker.delivery.message import Delivery
from ibrik_broker.delivery.progress import Progress
from ibrik_broker.delivery.replay_plan import Range
from ibrik_broker.delivery.wishes import SubscriptionWish
from ibrik_broker.metadata.deliveries import AttemptRow, FlowState
from ibrik_broker.metadata.replays import ReplayRow


class ReplayState(StrEnum):
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Counts(NamedTuple):
    """What became of the messages of a replay."""

    delivered: int = 0
    failed: int = 0
    """Had all their attempts."""
    filtered: int = 0
    missing: int = 0
    """Were taken by retention before they were delivered."""


NOTHING = Counts()


class Failures:
    """Stands where a subscription has its dead letters: failures are counted, and go nowhere."""

    def __init__(self, ledger: Ledger) -> None:
        self.count = 0
        self._ledger = ledger

    async def put(
        self, flow: Flow, wish: SubscriptionWish, delivery: Delivery, reason: Reason
    ) -> bool:
        """Settle a message that had all its attempts; the attempts stay to be read."""
        if flow.is_current(delivery):
            if reason.code == "crashed":  # the only end without an answer, so without an attempt
                self._ledger.add_attempt(_crashed(flow, wish, delivery, reason))
            flow.settle(delivery)
            self.count += 1
        return True


def _crashed(flow: Flow, wish: SubscriptionWish, delivery: Delivery, reason: Reason) -> AttemptRow:
    return AttemptRow(
        flow_id=flow.id,
        channel_id=wish.channel_id,
        partition=delivery.partition,
        offset=delivery.offset,
        attempt=delivery.attempt,
        at_ms=delivery.first_ms,
        duration_ms=0,
        status=None,
        error=reason.code,
        detail=reason.detail,
        next_ms=None,
    )


@dataclass(slots=True, eq=False)
class Job:
    row: ReplayRow
    failures: Failures
    counters: FlowCounters = field(default_factory=FlowCounters)
    """Of this run of the broker; what is on its way at the end is still counted."""
    base: Counts = NOTHING
    """What was counted before this run."""
    flow: Flow | None = None
    """While it is served."""
    is_dirty: bool = False
    """Whether the row does not say yet what was counted."""
    is_wrapped_up: bool = False
    """Whether someone saw already that it has ended."""

    @property
    def id(self) -> str:
        return self.row.id

    @property
    def state(self) -> ReplayState:
        return ReplayState(self.row.state)

    @property
    def is_running(self) -> bool:
        return self.row.state == ReplayState.RUNNING

    @property
    def has_ended(self) -> bool:
        flow = self.flow
        return flow is not None and flow.topic is not None and flow.has_ended

    @property
    def ranges(self) -> list[Range]:
        """The chosen ones, of partitions that held something of it."""
        wish = self.row.wish
        rows = enumerate(zip(wish["starts"], wish["ends"], strict=True))
        return [Range(index, start, end) for index, (start, end) in rows if end > start]

    @property
    def total(self) -> int:
        return sum(found.message_count for found in self.ranges)

    @property
    def counts(self) -> Counts:
        base, counters = self.base, self.counters
        return Counts(
            base.delivered + counters.delivered,
            base.failed + self.failures.count,
            base.filtered + counters.filtered,
            base.missing + counters.gaps,
        )

    @property
    def remaining(self) -> int:
        if self.state is ReplayState.DONE:
            return 0
        return max(0, self.total - sum(self.counts))


def counted_before(job: Job, state: FlowState, exhausted_count: int) -> Counts:
    """What is counted at a start: cursors and gaps are exact, the row may be some seconds old."""
    row = job.row
    missing = max(row.missing, sum(gap.count for gap in state.gaps))
    failed = max(row.failed, exhausted_count)
    rest = max(0, _settled_count(job.ranges, state) - missing - failed)
    delivered = rest if row.wish["filter"] is None else min(row.delivered, rest)
    return Counts(delivered, failed, rest - delivered, missing)


def _settled_count(ranges: list[Range], state: FlowState) -> int:
    """Messages that nobody has to deliver any more; parked ones are not among them."""
    cursors = {row.partition: row for row in state.cursors}
    count = -len(state.retries)
    for found in ranges:
        row = cursors.get(found.partition)
        if row is not None:
            progress = Progress(row.next_offset, row.settled)
            count += progress.next_offset - found.start + progress.settled_count
    return count
