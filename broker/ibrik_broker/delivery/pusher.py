"""Sends what the push flows of one destination hand out.

While there is work one task feeds (takes, claims) and a few work (send, conclude); an idle
destination has neither. A batch of messages is claimed with one commit before the first is sent.
"""

import asyncio
from collections import deque
from collections.abc import Coroutine
from contextlib import suppress

import structlog

from ibrik_api.errors import Refusal
from ibrik_broker.delivery.answers import Answer, Verdict, failed, judge
from ibrik_broker.delivery.deadletters import Reason
from ibrik_broker.delivery.flow import Flow
from ibrik_broker.delivery.message import Delivery
from ibrik_broker.delivery.outlet import Outlet
from ibrik_broker.delivery.parts import Parts
from ibrik_broker.delivery.push import Push
from ibrik_broker.delivery.senders.parcel import Parcel, Sender
from ibrik_broker.metadata.deliveries import AttemptRow

CLAIM_BYTES = 4 * 2**20
"""Of one claim at most: what is claimed is in memory."""
DATABASE_AWAY_TICKS = 1_000

logger = structlog.get_logger("delivery")


class Pusher:
    def __init__(self, outlet: Outlet, sender: Sender, parts: Parts) -> None:
        self.outlet = outlet
        self.sender = sender
        self.alarm_ticks: int | None = None
        self._parts = parts
        self._ready: deque[Push] = deque()
        self._queue: deque[tuple[Push, Delivery]] = deque()
        self._is_feeding = False
        self._idle: deque[asyncio.Future[None]] = deque()
        """Workers that wait for what is being claimed: a new task each would cost more."""
        self._tasks: set[asyncio.Task[None]] = set()

    async def close(self, seconds: float) -> None:
        """Claim nothing new, send what is claimed, then give up.

        What is on its way keeps its claim, and is one made attempt at the next start.
        """
        self.outlet.is_closing = True
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._tasks:  # who claims at this moment still calls workers
                    await asyncio.wait(self._tasks)
        self._give_all_back()
        for task in self._tasks:
            task.cancel()
        await self.sender.close()

    # --- feed -------------------------------------------------------------------------------------

    def ready(self, push: Push) -> None:
        """A flow may have something to send."""
        if not push.is_ready:
            push.is_ready = True
            self._ready.append(push)
        self.go_on()

    def forget(self, push: Push) -> None:
        """A flow goes elsewhere, or ends. What is claimed and not sent is given back."""
        if push.is_ready:
            self._ready.remove(push)
            push.is_ready = False
        mine = [delivery for owner, delivery in self._queue if owner is push]
        self._queue = deque(entry for entry in self._queue if entry[0] is not push)
        self.outlet.queued = len(self._queue)
        if not push.is_once:
            push.flow.give_back(mine)

    def go_on(self) -> None:
        """Feed, if there is something to feed and room for it; else be called when there is."""
        if self._is_feeding or not self._ready or self.outlet.has_enough:
            return
        now_ticks = self._parts.ticks_ms()
        if self.outlet.room(self._parts.share(), now_ticks):
            self._is_feeding = True
            self._start(self._feed())
            return
        ticks = self.outlet.next_ticks(now_ticks)
        if ticks is not None:
            self._parts.alarms.arrange(self, ticks)
        if not self.outlet.is_open(now_ticks):
            for push in self._ready:
                push.flow.let_go()  # nothing leaves for a while: memory is for others

    def on_alarm(self) -> None:
        """The circuit, a pause or the rate may allow more."""
        self.go_on()

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = self._parts.tasks.create_task(work)
        self._tasks.add(task)
        self._parts.active.add(self)
        task.add_done_callback(self._on_done)

    def _on_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not self._tasks:
            self._parts.active.discard(self)

    async def _feed(self) -> None:
        try:
            while self._ready:
                now_ticks = self._parts.ticks_ms()
                room = self.outlet.room(self._parts.share(), now_ticks)
                if room == 0:
                    break
                push = self._ready.popleft()
                push.is_ready = False
                room = push.room(room, now_ticks)
                if room == 0 and push.rate is not None:
                    self._parts.alarms.arrange(push, push.rate.next_ms(now_ticks))
                    continue
                await self._claim(push, room, now_ticks)
        except Exception:
            logger.exception("feeding failed", channel=self.outlet.wish.name)
            self._parts.alarms.arrange(self, self._parts.ticks_ms() + DATABASE_AWAY_TICKS)
        finally:
            self._is_feeding = False
            self._wake(len(self._idle))
        if self._ready and self.outlet.workers == 0:
            self.go_on()

    async def _claim(self, push: Push, room: int, now_ticks: int) -> None:
        """Take up to `room` messages of a flow and queue them, claimed."""
        flow = push.flow
        taken = await flow.take(room, CLAIM_BYTES, push.hold_ms)
        if not taken:
            if not push.is_ready:
                push.rest()
            return
        if push.is_once:
            flow.take_for_good(taken)
        try:
            await self._parts.ledger.commit()
        except Refusal:
            self._on_no_database(push, taken)
            return
        except BaseException:
            if not push.is_once:
                flow.give_back(taken)
            raise
        self.outlet.claimed(len(taken), now_ticks)
        if push.rate is not None:
            push.rate.take(now_ticks, len(taken))
        self._queue.extend((push, delivery) for delivery in taken)
        self.outlet.queued = len(self._queue)
        if not push.is_ready:
            push.is_ready = True
            self._ready.append(push)
        self._wake(len(taken))
        self._staff()

    def _on_no_database(self, push: Push, taken: list[Delivery]) -> None:
        if push.is_once:
            push.flow.counters.lost += len(taken)
        else:
            push.flow.give_back(taken)
            if push.is_ready:
                self._ready.remove(push)
                push.is_ready = False
        self._parts.alarms.arrange(push, self._parts.ticks_ms() + DATABASE_AWAY_TICKS)

    # --- send -------------------------------------------------------------------------------------

    def _staff(self) -> None:
        """As many workers as there are messages, up to the concurrency."""
        outlet = self.outlet
        most = min(outlet.concurrency, self._parts.share())
        while outlet.workers < most and outlet.workers < outlet.in_flight + len(self._queue):
            outlet.workers += 1
            self._start(self._work())

    async def _work(self) -> None:
        try:
            while await self._has_work():
                push, delivery = self._queue.popleft()
                self.outlet.queued = len(self._queue)
                # What has one try was settled before: it is sent whatever is known by now.
                if not push.is_once and not self.outlet.may_send(self._parts.ticks_ms()):
                    self._queue.appendleft((push, delivery))
                    self._give_all_back()
                    break
                await self._deliver(push, delivery)
                self.go_on()
                self._staff()  # it may cope with more
        finally:
            self.outlet.workers -= 1
        self.go_on()

    async def _has_work(self) -> bool:
        """Wait for the next message, as long as some may come; also False for a worker too many."""
        while not self._queue and self._is_feeding:
            fed = asyncio.get_running_loop().create_future()
            self._idle.append(fed)
            await fed
        return bool(self._queue) and self.outlet.workers <= self.outlet.concurrency

    def _wake(self, count: int) -> None:
        """Let so many of the idle workers look for work again."""
        for _ in range(min(count, len(self._idle))):
            fed = self._idle.popleft()
            if not fed.done():  # its worker was cancelled
                fed.set_result(None)

    def _give_all_back(self) -> None:
        """The destination rests: what is claimed and not sent did not have its attempt."""
        queue, self._queue = self._queue, deque()
        self.outlet.queued = 0
        for push, delivery in queue:
            if push.is_once:
                push.flow.counters.lost += 1
            else:
                push.flow.give_back([delivery])

    async def _deliver(self, push: Push, delivery: Delivery) -> None:
        flow, wish = push.flow, push.wish
        if not push.is_once:
            if not flow.is_current(delivery):
                return
            if delivery.reason is not None or delivery.attempt > wish.retry.max_attempts:
                delivery.attempt -= 1  # this one is not made
                crashed = Reason("crashed", "the broker ended during the last attempt")
                reason = delivery.reason or crashed
                await push.dead_letters.put(flow, wish, delivery, reason)
                return
        topic = flow.topic
        if topic is None:
            flow.counters.lost += push.is_once
            flow.give_back([delivery])
            return
        parcel = Parcel(
            topic=topic.name,
            topic_id=topic.id,
            partition=delivery.partition,
            record=delivery.record,
            subscription=wish.name,
            channel=self.outlet.wish.name,
            attempt=delivery.attempt,
            max_attempts=wish.retry.max_attempts,
            replay=push.replay,
        )
        await self._conclude(push, delivery, await self._send(parcel))

    async def _send(self, parcel: Parcel) -> Answer:
        self.outlet.in_flight += 1
        try:
            return await self.sender.send(parcel)
        except Exception as error:
            # A defect of a sender costs this message an attempt, and nobody else anything.
            logger.exception("sender failed", channel=self.outlet.wish.name)
            return failed("broken-answer", type(error).__name__, duration_ms=0)
        finally:
            self.outlet.in_flight -= 1

    async def _conclude(self, push: Push, delivery: Delivery, answer: Answer) -> None:
        flow, parts = push.flow, self._parts
        now_ms, verdict = parts.clock_ms(), judge(answer)
        is_delivered = verdict is Verdict.DELIVERED
        self.outlet.learn(answer, is_delivered, parts.ticks_ms(), now_ms)
        flow.counters.retried += delivery.attempt > 1
        if is_delivered:
            flow.counters.delivered += 1
            if push.replay is None:  # the age of what is replayed says nothing
                seconds = (now_ms - delivery.record.timestamp_ms) / 1_000
                parts.latency(flow.plan.topic).observe(seconds)
        else:
            flow.counters.failed += 1
        if push.is_once:
            flow.counters.lost += not is_delivered
        elif flow.is_current(delivery):
            if is_delivered:
                flow.settle(delivery)
            else:
                await self._failed(push, delivery, answer, verdict, now_ms)
        push.settled()

    async def _failed(
        self, push: Push, delivery: Delivery, answer: Answer, verdict: Verdict, now_ms: int
    ) -> None:
        flow, parts, retry = push.flow, self._parts, push.wish.retry
        next_ms = None
        if verdict is not Verdict.DEAD:
            next_ms = retry.next_attempt_ms(
                delivery.attempt, delivery.first_ms, now_ms, parts.random
            )
        attempt = self._attempt(flow, delivery, answer, now_ms, next_ms)
        if verdict is Verdict.GONE:
            flow.park(delivery, parts.ticks_ms(), attempt)
            if self.outlet.halt("gone"):
                parts.halt("channel", self.outlet.id, "gone")
        elif next_ms is not None:
            flow.park(delivery, parts.ticks_ms() + next_ms - now_ms, attempt)
        else:
            parts.ledger.add_attempt(attempt)
            reason = Reason(answer.error or "status", answer.detail, answer.status)
            await push.dead_letters.put(flow, push.wish, delivery, reason)

    def _attempt(
        self, flow: Flow, delivery: Delivery, answer: Answer, now_ms: int, next_ms: int | None
    ) -> AttemptRow:
        return AttemptRow(
            flow_id=flow.id,
            channel_id=self.outlet.id,
            partition=delivery.partition,
            offset=delivery.offset,
            attempt=delivery.attempt,
            at_ms=now_ms,
            duration_ms=answer.duration_ms,
            status=answer.status,
            error=answer.error or "status",
            detail=answer.detail,
            next_ms=next_ms,
        )
