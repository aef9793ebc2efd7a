"""A flow: one delivery of one topic's messages to one place. Reads, filters, orders, hands out.

Whoever carries the messages on (the pusher, the leases) takes them here and says what became of
each: settled, parked for another attempt, or given back. What that means for the cursor and the
rows in the database is noted in the ledger; nothing is let out before its claim is committed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ibrik_api.resources.subscription import OnGap
from ibrik_broker.delivery.clocks import Clocks
from ibrik_broker.delivery.counters import FlowCounters
from ibrik_broker.delivery.flow_part import FlowPart
from ibrik_broker.delivery.flow_plan import Carrier, Plan
from ibrik_broker.delivery.intake import Intake
from ibrik_broker.delivery.lag import PartitionLag, lag_of, oldest_ms, state_of
from ibrik_broker.delivery.ledger import Ledger
from ibrik_broker.delivery.message import Delivery
from ibrik_broker.delivery.parked import NOTHING_PARKED, Parked, ParkedMessages
from ibrik_broker.delivery.progress import Progress
from ibrik_broker.delivery.reading import RecordReader
from ibrik_broker.metadata.deliveries import AttemptRow, GapRow, RetryRow
from ibrik_log.record import StoredRecord

if TYPE_CHECKING:
    from ibrik_broker.delivery.deadletters import Reason
    from ibrik_broker.partitions.topic import Topic

GAPS_SHOWN = 100
READ_AGAIN_TICKS = 1_000
"""When a parked message could not be read, or its dead letter not be written."""


class Flow:
    """Ten thousand of them are idle: what only messages need is made when the first one comes."""

    __slots__ = (
        "__weakref__",
        "_intake",
        "_ledger",
        "_reader",
        "carrier",
        "clocks",
        "counters",
        "epoch",
        "gaps",
        "halt",
        "parked",
        "parts",
        "plan",
        "topic",
    )

    def __init__(self, plan: Plan, ledger: Ledger, reader: RecordReader, clocks: Clocks) -> None:
        self.plan: Plan = plan
        self.carrier: Carrier | None = None
        self.topic: Topic | None = None
        self.parts: tuple[FlowPart, ...] = ()
        self.parked = NOTHING_PARKED
        """To look, and to remove; `keep_parked` adds."""
        self.epoch = 0
        self.halt: str | None = None
        """Why nothing is handed out (paused, gap); None: it is."""
        self.counters = FlowCounters()
        self.gaps: tuple[GapRow, ...] = ()
        """Those noticed last, for readers who listen right now."""
        self.clocks = clocks
        self._ledger = ledger
        self._reader = reader
        self._intake: Intake | None = None

    # --- look -------------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        return self.plan.id

    @property
    def is_open(self) -> bool:
        """Whether messages are handed out at all."""
        return self.topic is not None and self.halt is None

    @property
    def backlog(self) -> int:
        """Messages that are not settled: not read yet, held, in hand or parked."""
        return len(self.parked) + sum(p.unsettled_count(self.topic) for p in self.parts)

    @property
    def has_ended(self) -> bool:
        """A flow with an end has nothing left to do."""
        return self.plan.ends is not None and self.backlog == 0

    @property
    def in_flight_count(self) -> int:
        return sum(len(part.in_hand) for part in self.parts)

    @property
    def retrying_count(self) -> int:
        return len(self.parked)

    @property
    def filter_errors(self) -> int:
        """Messages on which the filter failed."""
        return 0 if self.plan.filter is None else self.plan.filter.error_count

    @property
    def state(self) -> str:
        """active, retrying, blocked, circuit-open, paused or stopped."""
        return state_of(self)

    @property
    def oldest_ms(self) -> int | None:
        return oldest_ms(self)

    def lag(self) -> list[PartitionLag]:
        return lag_of(self)

    @property
    def may_have_more(self) -> bool:
        """Whether a taker might find something at this moment."""
        due = self.parked.due_ticks()
        if due is not None and due <= self.clocks.ticks_ms():
            return True
        return any(part.fresh or part.may_read(self.topic) for part in self.parts)

    def due_ticks(self) -> int | None:
        """When the next parked message is due."""
        return self.parked.due_ticks()

    async def find_heads(self) -> None:
        """Look what stands at the cursor of partitions that nothing is read of now."""
        intake = self._some_intake()
        for part in self.parts:
            await intake.find_head(part)

    def fits(self, partition: int, record: StoredRecord) -> bool:
        """Whether the filter lets the message through; the topic is served."""
        return self._some_intake().fits(self.parts[partition], record)

    def _some_intake(self) -> Intake:
        if self._intake is None:
            self._intake = Intake(self, self._reader, self.clocks.ticks_ms)
        return self._intake

    # --- take -------------------------------------------------------------------------------------

    async def take(
        self, max_count: int, max_bytes: int, hold_ms: Callable[[int, int], int]
    ) -> list[Delivery]:
        """Messages that may go now, in hand from here on; the caller commits, then lets them out.

        `hold_ms(attempt, first_ms)` is how long they stay in hand at most. Parked messages that
        are due come first, then those that wait in the log.
        """
        if self._intake is None and not self.may_have_more:
            return []  # everybody looks once when it begins, and most find nothing
        intake = self._some_intake()
        async with intake.one_taker:
            if not self.is_open:
                return []
            taken: list[Delivery] = []
            try:
                await intake.take_due(taken, max_count)
                await intake.take_fresh(taken, max_count, max_bytes)
            except BaseException:  # the taker was cancelled: nobody has these
                self.give_back(self._hand_out(taken, hold_ms))
                raise
            return self._hand_out(taken, hold_ms)

    def take_for_good(self, deliveries: Iterable[Delivery]) -> None:
        """Settle what was just taken before it is sent: it has one try (fire and forget)."""
        for delivery in deliveries:
            self.settle(delivery)

    def _hand_out(
        self, taken: Sequence[Delivery], hold_ms: Callable[[int, int], int]
    ) -> list[Delivery]:
        """Those that a seek did not overtake are in hand now."""
        now_ms, now_ticks = self.clocks.now_ms(), self.clocks.ticks_ms()
        current = [delivery for delivery in taken if delivery.epoch == self.epoch]
        for delivery in current:
            delivery.first_ms = delivery.first_ms or now_ms
            delivery.until_ticks = now_ticks + hold_ms(delivery.attempt, delivery.first_ms)
            part = self.parts[delivery.partition]
            part.hand_out(delivery)
            self._ledger.touch(part)
        return current

    def pass_gap(self, part: FlowPart, start: int, end: int, reason: str) -> None:
        """Go on behind messages that the log does not hold any more, and record that."""
        end = min(end, part.end)
        count = end - start
        self.counters.gaps += count
        row = GapRow(self.id, part.index, start, end, count, reason, self.clocks.now_ms())
        self.gaps = (*self.gaps, row)[-GAPS_SHOWN:]
        self._ledger.add_gap(row)
        part.progress.settle(start, end)
        part.read_offset = max(part.read_offset, end)
        self._ledger.touch(part)
        if self.plan.on_gap is OnGap.PAUSE:
            self.halt = "gap"
            if self.carrier is not None:
                self.carrier.on_gap_pause()

    def let_go(self) -> None:
        """Forget what was read and nobody took: it is read again when it is needed."""
        for part in self.parts:
            part.let_go()

    def look_for_gaps(self) -> None:
        """Notice what retention took from a flow that reads nothing at the moment."""
        is_taking = self._intake is not None and self._intake.one_taker.locked()
        for part in self.parts:
            if self.topic is None or part.index >= len(self.topic.partitions):
                continue
            earliest = min(self.topic.partitions[part.index].earliest, part.end)
            if part.read_offset < earliest and not is_taking:
                self.pass_gap(part, part.read_offset, earliest, "offset-below-start")

    # --- what became of it ------------------------------------------------------------------------

    def is_current(self, delivery: Delivery) -> bool:
        """Whether it is still in hand: not settled, not expired, and nobody moved the cursor."""
        if delivery.epoch != self.epoch:
            return False
        return self.parts[delivery.partition].in_hand.get(delivery.offset) is delivery

    def touch(self, part: FlowPart) -> None:
        """The partition changed: its row is written with the next commit."""
        self._ledger.touch(part)

    def is_in_hand(self, partition: int, offset: int) -> bool:
        return offset in self.parts[partition].in_hand

    def settle(self, delivery: Delivery) -> None:
        """It is done with: delivered, or in the dead letters."""
        part = self._take_back(delivery)
        part.progress.settle(delivery.offset)
        if delivery.is_parked:
            self._unpark(part, delivery.offset)
        self._go_on(part, delivery.lane)

    def park(
        self, delivery: Delivery, due_ticks: int | None, attempt: AttemptRow | None = None
    ) -> None:
        """It failed: try again at `due_ticks`, or None: when someone resumes the subscription."""
        part = self._take_back(delivery)
        part.progress.settle(delivery.offset)
        parked = Parked(
            part.index,
            delivery.offset,
            delivery.attempt,
            delivery.first_ms,
            due_ticks,
            delivery.lane,
        )
        self.keep_parked(parked)
        self._ledger.keep_retry(self.retry_row(parked))
        if attempt is not None:
            self._ledger.add_attempt(attempt)
        if due_ticks is not None and self.carrier is not None:
            self.carrier.on_due(due_ticks)

    def give_back(self, deliveries: Iterable[Delivery]) -> None:
        """As if they had never been taken: the attempts do not count."""
        for delivery in deliveries:
            if not self.is_current(delivery):
                continue
            part = self._take_back(delivery)
            if delivery.is_parked:
                parked = self.parked.get(part.index, delivery.offset)
                assert parked is not None, "a parked message stays known while it is in hand"
                self.keep_parked(replace(parked, due_ticks=self.clocks.ticks_ms()))
            else:
                delivery.first_ms = 0
                part.give_back(delivery)
        self.tell_ready()

    def postpone(self, delivery: Delivery, reason: "Reason") -> None:
        """Its dead letter could not be written: that is tried again a little later, no more."""
        self.park(delivery, self.clocks.ticks_ms() + READ_AGAIN_TICKS)
        parked = self.parked.get(delivery.partition, delivery.offset)
        assert parked is not None, "it was parked just now"
        parked.reason = reason

    def keep_parked(self, parked: Parked) -> None:
        """Know a parked message, or that it is due at another time."""
        if self.parked is NOTHING_PARKED:
            self.parked = ParkedMessages()
        self.parked.add(parked)

    def settle_parked(self, partition: int, offset: int) -> None:
        """A parked message was done by someone who held it before a restart."""
        part = self.parts[partition]
        parked = self.parked.get(partition, offset)
        self._unpark(part, offset)
        self._go_on(part, None if parked is None else parked.lane)

    def lose_parked(self, part: FlowPart, parked: Parked, reason: str) -> None:
        """A parked message is not in the log any more: a gap of one."""
        self.pass_gap(part, parked.offset, parked.offset + 1, reason)
        self._unpark(part, parked.offset)
        self._go_on(part, parked.lane)

    def put_off(self, parked: Parked, due_ticks: int) -> None:
        """A parked message is due later."""
        later = replace(parked, due_ticks=due_ticks)
        self.keep_parked(later)
        self._ledger.keep_retry(self.retry_row(later))

    # --- move -------------------------------------------------------------------------------------

    def rewound(self, offsets: Mapping[int, int]) -> list[FlowPart]:
        """The partitions as a seek to `offsets` (by partition) leaves them; changes nothing yet.

        Where nobody seeks, parked messages are due again from the log: their rows go.
        """
        parts = []
        for part in self.parts:
            target = offsets.get(part.index)
            if target is None:
                parked = [p.offset for p in self.parked if p.partition == part.index]
                progress = part.progress.reopened(parked)
            else:
                progress = Progress(target)
            parts.append(part.moved(progress, self.epoch + 1))
        return parts

    def rewind(self, parts: Sequence[FlowPart]) -> None:
        """Go on with `parts`, as `rewound` made them: nothing is in hand or parked any more."""
        self.epoch += 1
        self.parked = NOTHING_PARKED
        self.parts = tuple(parts)

    def retire(self) -> None:
        """Nobody serves it any more; what is in hand is not its own business."""
        self.halt = "closed"
        self.carrier = None
        self.epoch += 1

    def redrive(self, partition: int, offset: int, due_ticks: int) -> bool:
        """Deliver a dead letter again, with all its attempts; False: it is on its way already."""
        if partition >= len(self.parts) or self.is_in_hand(partition, offset):
            return False
        if self.parked.get(partition, offset) is not None:
            return False
        parked = Parked(partition, offset, 0, self.wall_ms(due_ticks), due_ticks)
        self.keep_parked(parked)
        self._ledger.keep_retry(self.retry_row(parked))
        if self.carrier is not None:
            self.carrier.on_due(due_ticks)
        return True

    def unblock(self) -> None:
        """Blocked messages are due now."""
        for parked in self.parked.unblock(self.clocks.ticks_ms()):
            self._ledger.keep_retry(self.retry_row(parked))
        self.tell_ready()

    def _take_back(self, delivery: Delivery) -> FlowPart:
        part = self.parts[delivery.partition]
        part.take_back(delivery)
        self._ledger.touch(part)
        return part

    def _unpark(self, part: FlowPart, offset: int) -> None:
        self.parked.remove(part.index, offset)
        self._ledger.drop_retry(self.id, part.index, offset)

    def _go_on(self, part: FlowPart, lane: bytes | None) -> None:
        """The next message of the lane may go."""
        if part.leave(lane):
            self.tell_ready()

    def tell_ready(self) -> None:
        if self.carrier is not None:
            self.carrier.on_ready()

    def retry_row(self, parked: Parked) -> RetryRow:
        due = parked.due_ticks
        return RetryRow(
            flow_id=self.id,
            partition=parked.partition,
            offset=parked.offset,
            attempts=parked.attempts,
            first_ms=parked.first_ms,
            next_ms=None if due is None else self.wall_ms(due),
            lane=None if parked.lane is None else parked.lane.hex(),
        )

    def wall_ms(self, ticks: int) -> int:
        """The time of day at `ticks`, as it is written to the database."""
        return self.clocks.wall_ms(ticks)
