"""Pull and stream: messages are leased to consumers, who settle them before the deadline.

A lease is valid when its message is still in hand with the same attempt, or when it was in hand
before a restart (then the message is parked until the lease's deadline). Whatever else comes is
reported as expired and settles nothing.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple

from ibrik_api.errors import Refusal
from ibrik_api.resources.subscription import GroupType
from ibrik_broker.delivery.deadletters import Reason
from ibrik_broker.delivery.flow import Flow
from ibrik_broker.delivery.message import Delivery
from ibrik_broker.delivery.parked import Parked
from ibrik_broker.delivery.parts import Parts
from ibrik_broker.delivery.wishes import SubscriptionWish
from ibrik_broker.metadata.deliveries import AttemptRow
from ibrik_broker.partitions.refusals import shutting_down

EXPIRED = "lease-expired"
MAX_REASON_CHARACTERS = 1_024
_numbers = count()
"""Keeps deadlines of one time apart. Counted over all: only which of two is higher matters."""


class LeaseRef(NamedTuple):
    """What a lease token says."""

    partition: int
    offset: int
    attempt: int
    epoch: int


class Leases:
    """The consumers of one subscription."""

    __slots__ = (
        "_deadlines",
        "_holder",
        "_holder_until_ticks",
        "_news_count",
        "_open_streams",
        "_parts",
        "_waiting",
        "alarm_ticks",
        "flow",
        "wish",
    )

    def __init__(self, wish: SubscriptionWish, flow: Flow, parts: Parts) -> None:
        self.wish = wish
        self.flow = flow
        self.alarm_ticks: int | None = None
        self._parts = parts
        self._deadlines: list[tuple[int, int, list[Delivery]]] = []
        # Lists, since both are empty nearly always and a deque then takes 0.7 KiB.
        self._waiting: list[asyncio.Future[None]] = []
        self._news_count = 0
        self._holder: str | None = None
        self._holder_until_ticks = 0
        self._open_streams = 0

    # --- lease ------------------------------------------------------------------------------------

    async def lease(
        self, *, consumer: str, max_count: int, max_bytes: int, wait_s: float
    ) -> list[Delivery]:
        """Up to `max_count` messages, claimed durably; none when `wait_s` passes without any.

        Raises Refusal: consumer-conflict, subscription-paused, unknown-topic, metadata-unavailable.
        """
        deadline = asyncio.get_running_loop().time() + wait_s
        while True:
            try:
                self._check(consumer)
            except Refusal:
                self.wake()  # not for this one: perhaps for the next
                raise
            news_count = self._news_count
            taken = await self._take(max_count, max_bytes)
            if taken:
                self._hold(consumer)
                if self.flow.may_have_more:
                    self.wake()
                return taken
            remaining_s = deadline - asyncio.get_running_loop().time()
            if remaining_s <= 0:
                return []
            if self._news_count > news_count:
                continue  # something came while this consumer looked, and nobody waited for it
            if not await self.wait(remaining_s):
                return []

    async def wait(self, timeout_s: float) -> bool:
        """Wait until there may be something to lease; False when the time passes first."""
        news: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(news)
        try:
            async with asyncio.timeout(timeout_s):
                await news
        except TimeoutError:
            return news.done() and not news.cancelled()  # both at once: it came
        except asyncio.CancelledError:
            if news.done() and not news.cancelled():
                self.wake()  # this one goes: the next one looks
            raise
        finally:
            with suppress(ValueError):
                self._waiting.remove(news)
        return True

    def wake(self) -> None:
        """There may be something: let the one who waits longest look.

        Who takes something and leaves more wakes the next one: a thousand idle readers do not all
        look for each message.
        """
        self._news_count += 1
        while self._waiting:
            news = self._waiting.pop(0)
            if not news.done():
                news.set_result(None)
                return

    def wake_all(self) -> None:
        """Something changed for everybody: the subscription, or its topic."""
        self._news_count += 1
        waiting, self._waiting = self._waiting, []
        for news in waiting:
            if not news.done():
                news.set_result(None)

    async def _take(self, max_count: int, max_bytes: int) -> list[Delivery]:
        flow, wish = self.flow, self.wish
        room = wish.max_in_flight - flow.in_flight_count
        if room <= 0:
            return []
        taken = await flow.take(min(room, max_count), max_bytes, self._hold_ms)
        try:
            taken = await self._without_exhausted(taken)
            await self._parts.ledger.commit()
        except BaseException:
            flow.give_back(taken)
            raise
        taken = [delivery for delivery in taken if flow.is_current(delivery)]
        if taken:
            entry = (taken[0].until_ticks, next(_numbers), taken)
            heappush(self._deadlines, entry)
            self._parts.alarms.arrange(self, taken[0].until_ticks)
            flow.counters.retried += sum(delivery.attempt > 1 for delivery in taken)
        return taken

    async def _without_exhausted(self, taken: list[Delivery]) -> list[Delivery]:
        """Messages that had all their attempts go to the dead letters instead."""
        limit = self.wish.retry.max_attempts
        exhausted = [each for each in taken if each.reason is not None or each.attempt > limit]
        if not exhausted:
            return taken
        late = Reason("deadline-passed", "no consumer acknowledged it in time")
        for delivery in exhausted:
            delivery.attempt -= 1  # this one is not made
            reason = delivery.reason or late
            await self._parts.dead_letters.put(self.flow, self.wish, delivery, reason)
        return [delivery for delivery in taken if self.flow.is_current(delivery)]

    def _hold_ms(self, _attempt: int, _first_ms: int) -> int:
        return self.wish.ack_deadline_ms

    def _check(self, consumer: str) -> None:
        flow, name = self.flow, self.wish.name
        if flow.halt is not None:
            raise _halted(flow.halt, name)
        if flow.topic is None:
            raise Refusal(
                "unknown-topic",
                f"The topic '{flow.plan.topic}' of '{name}' is not served. Create it, or apply it "
                "again; the subscription goes on where it was.",
            )
        if self._is_taken(consumer):
            raise self._conflict()

    # --- who --------------------------------------------------------------------------------------

    def enter(self, consumer: str) -> None:
        """A stream opens: it holds an exclusive subscription until it leaves."""
        if self.wish.type is GroupType.EXCLUSIVE and self._open_streams:
            raise self._conflict()
        self._check(consumer)
        self._open_streams += 1
        self._hold(consumer)

    def leave(self) -> None:
        """A stream ends; another consumer may come at once."""
        self._open_streams -= 1
        self._holder_until_ticks = 0

    def _hold(self, consumer: str) -> None:
        self._holder = consumer
        self._holder_until_ticks = self._parts.ticks_ms() + self.wish.ack_deadline_ms

    def _is_taken(self, consumer: str) -> bool:
        if self.wish.type is not GroupType.EXCLUSIVE or self._holder in (None, consumer):
            return False
        if self._open_streams:
            return True
        # Who has nothing in hand holds nothing: the next consumer need not wait.
        return self._parts.ticks_ms() < self._holder_until_ticks and self.flow.in_flight_count > 0

    def _conflict(self) -> Refusal:
        return Refusal(
            "consumer-conflict",
            f"The exclusive subscription '{self.wish.name}' is held by consumer "
            f"'{self._holder}'. Stop it, wait until its leases end, or make the subscription "
            "shared.",
        )

    # --- settle -----------------------------------------------------------------------------------

    async def ack(self, refs: Sequence[LeaseRef]) -> list[str | None]:
        """Settle durably; for each lease None, or the code `lease-expired`. A repeat is fine."""
        codes = [self._ack(ref) for ref in refs]
        await self._parts.ledger.commit()
        self.wake()
        return codes

    def _ack(self, ref: LeaseRef) -> str | None:
        flow = self.flow
        delivery = self._leased(ref)
        if delivery is not None:
            flow.settle(delivery)
            flow.counters.delivered += 1
            return None
        if self._parked(ref) is not None:
            flow.settle_parked(ref.partition, ref.offset)
            flow.counters.delivered += 1
            return None
        is_same = ref.epoch == flow.epoch and ref.partition < len(flow.parts)
        if is_same and flow.parked.get(ref.partition, ref.offset) is None:
            part = flow.parts[ref.partition]
            if part.progress.is_settled(ref.offset) and ref.offset not in part.in_hand:
                return None
        return EXPIRED

    async def nack(
        self, refs: Sequence[LeaseRef], *, delay_ms: int | None, reason: str
    ) -> list[str | None]:
        """Give up on messages: they come again, after `delay_ms` or as the retry schedule says."""
        codes: list[str | None] = []
        for ref in refs:
            delivery = self._leased(ref)
            codes.append(EXPIRED if delivery is None else None)
            if delivery is not None:
                await self._fail(delivery, Reason("nacked", reason), delay_ms)
        await self._parts.ledger.commit()
        self.wake()
        return codes

    async def extend(
        self, refs: Sequence[LeaseRef], *, deadline_ms: int | None
    ) -> list[str | None]:
        """Begin the deadline anew, of the given length or of the subscription's."""
        until_ticks = self._parts.ticks_ms() + (deadline_ms or self.wish.ack_deadline_ms)
        codes: list[str | None] = []
        extended: list[Delivery] = []
        for ref in refs:
            delivery, parked = self._leased(ref), self._parked(ref)
            codes.append(EXPIRED if delivery is None and parked is None else None)
            if delivery is not None:
                delivery.until_ticks = until_ticks
                extended.append(delivery)
                self._parts.ledger.touch(self.flow.parts[delivery.partition])
            elif parked is not None:
                self.flow.put_off(parked, until_ticks)
        if extended:
            heappush(self._deadlines, (until_ticks, next(_numbers), extended))
            self._parts.alarms.arrange(self, until_ticks)
        await self._parts.ledger.commit()
        return codes

    def release(self, deliveries: Sequence[Delivery]) -> None:
        """As if they had never been leased."""
        self.flow.give_back(deliveries)
        self.wake()

    def deadline_ms(self, delivery: Delivery) -> int:
        """The deadline as time of day."""
        return self.flow.wall_ms(delivery.until_ticks)

    def _leased(self, ref: LeaseRef) -> Delivery | None:
        flow = self.flow
        if ref.epoch != flow.epoch or ref.partition >= len(flow.parts):
            return None
        delivery = flow.parts[ref.partition].in_hand.get(ref.offset)
        if delivery is None or delivery.attempt != ref.attempt:
            return None
        return delivery if self._parts.ticks_ms() < delivery.until_ticks else None

    def _parked(self, ref: LeaseRef) -> Parked | None:
        """The message of a lease from before a restart."""
        parked = self.flow.parked.get(ref.partition, ref.offset)
        if parked is None or ref.epoch != self.flow.epoch or parked.attempts != ref.attempt:
            return None
        is_dead = parked.reason is not None
        is_over = is_dead or parked.due_ticks is None or parked.due_ticks <= self._parts.ticks_ms()
        return None if is_over or self.flow.is_in_hand(ref.partition, ref.offset) else parked

    # --- called by the flow and by the alarms -----------------------------------------------------

    @property
    def trouble(self) -> str | None:
        return None

    def on_ready(self) -> None:
        self.wake()
        self._arrange()

    def on_due(self, ticks: int) -> None:
        self._parts.alarms.arrange(self, ticks)

    def on_gap_pause(self) -> None:
        self._parts.halt("subscription", self.wish.id, "gap")

    def on_alarm(self) -> None:
        """A deadline passed, or a parked message is due."""
        if self._deadlines and self._deadlines[0][0] <= self._parts.ticks_ms():
            self._parts.insist(self._expire)
        else:
            self.on_ready()

    def _arrange(self) -> None:
        due = self.flow.due_ticks()
        if due is not None and due > self._parts.ticks_ms() and self.flow.is_open:
            self._parts.alarms.arrange(self, due)
        if self._deadlines:
            self._parts.alarms.arrange(self, self._deadlines[0][0])

    async def _expire(self) -> None:
        """Take back what was not settled in time; it may be leased again at once."""
        now_ticks = self._parts.ticks_ms()
        while self._deadlines and self._deadlines[0][0] <= now_ticks:
            for delivery in heappop(self._deadlines)[2]:
                if self.flow.is_current(delivery) and delivery.until_ticks <= now_ticks:
                    reason = Reason("deadline-passed", "not acknowledged in time")
                    await self._fail(delivery, reason, 0)
        self.on_ready()

    async def _fail(self, delivery: Delivery, reason: Reason, delay_ms: int | None) -> None:
        flow, retry = self.flow, self.wish.retry
        now_ms = self._parts.clock_ms()
        flow.counters.failed += 1
        next_ms = retry.next_attempt_ms(delivery.attempt, delivery.first_ms, now_ms, lambda: 1.0)
        if next_ms is None:
            await self._parts.dead_letters.put(flow, self.wish, delivery, reason)
            return
        delay = delay_ms if delay_ms is not None else next_ms - now_ms
        attempt = AttemptRow(
            flow_id=flow.id,
            channel_id=None,
            partition=delivery.partition,
            offset=delivery.offset,
            attempt=delivery.attempt,
            at_ms=now_ms,
            duration_ms=0,
            status=None,
            error=reason.code,
            detail=reason.detail[:MAX_REASON_CHARACTERS],
            next_ms=now_ms + delay,
        )
        flow.park(delivery, self._parts.ticks_ms() + delay, attempt)


def _halted(halt: str, name: str) -> Refusal:
    """Why nothing is leased now."""
    match halt:
        case "closing":
            return shutting_down()
        case "closed":
            return Refusal(
                "not-ready", f"The subscription '{name}' changed at this moment. Try again."
            )
    why = "stopped at a gap" if halt == "gap" else "is paused"
    return Refusal(
        "subscription-paused",
        f"The subscription '{name}' {why}. Resume it with POST /v1/subscriptions/{name}:resume.",
    )
