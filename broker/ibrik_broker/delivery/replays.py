"""Range replays: a part of a topic once more to one channel or topic, touching nobody's cursor.

A replay is a flow with ends, whose id is the replay's: cursors, claims, retries and attempts are
kept as those of a subscription, so it goes on after a crash. The doors call this; rows are written
when a replay begins and ends, and in between at most every few seconds.
"""

import asyncio
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import structlog

from ibrik_api.errors import Refusal
from ibrik_api.resources.destination import Destination, TopicDestination
from ibrik_api.resources.subscription import GroupType, Mode, Retry
from ibrik_api.resources.topic import Ordering, RetryPreset
from ibrik_broker.delivery.across import is_elsewhere
from ibrik_broker.delivery.dispatcher import Dispatcher
from ibrik_broker.delivery.filters import Filter
from ibrik_broker.delivery.flow_plan import FlowPlan
from ibrik_broker.delivery.replay_job import Failures, Job, ReplayState, counted_before
from ibrik_broker.delivery.replay_plan import Place, ReplayPlan, plan_ranges, read_plan, spread
from ibrik_broker.delivery.retry import resolve_policy
from ibrik_broker.delivery.wishes import ChannelWish, SubscriptionWish
from ibrik_broker.metadata.attempts import AttemptHistory
from ibrik_broker.metadata.deliveries import AttemptRow, CursorRow, DeliveryStore, FlowState
from ibrik_broker.metadata.replays import ReplayKind, ReplayRow, ReplayRows
from ibrik_broker.metadata.rows import StaleRevision
from ibrik_broker.partitions.engine import Engine

RUNNING_MAX = 16
KEPT_COUNT = 1_000
KEPT_MS = 7 * 86_400_000
"""Replays that ended are kept so long, and so many of them."""
LOOK_TICKS = 2_000
"""How often replays that run are looked at, and what was counted is written."""
RETRY = resolve_policy(Retry(), RetryPreset.IN_CLUSTER)
"""Someone waits for a replay, so it never waits days for one message."""

logger = structlog.get_logger("delivery")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayWish:
    """What is asked for, as it was written."""

    topic: str
    start: Place
    end: Place | None = None
    partitions: Sequence[int] | None = None
    filter: Filter | None = None
    channel: str | None = None
    """Name of a channel; else `target_topic` is given."""
    target_topic: str | None = None
    rate: int | None = None


class Replays:
    def __init__(
        self,
        dispatcher: Dispatcher,
        engine: Engine,
        rows: ReplayRows,
        history: AttemptHistory,
        tasks: asyncio.TaskGroup,
        *,
        channel_id: Callable[[str], str],
        clock_ms: Callable[[], int],
        ticks_ms: Callable[[], int],
    ) -> None:
        """`channel_id` finds a channel by name; it raises Refusal `unknown-channel`."""
        self.alarm_ticks: int | None = None
        self._dispatcher = dispatcher
        self._engine = engine
        self._rows = rows
        self._history = history
        self._tasks = tasks
        self._channel_id = channel_id
        self._clock_ms = clock_ms
        self._ticks_ms = ticks_ms
        self._jobs: dict[str, Job] = {}
        self._one_changes = asyncio.Lock()
        self._is_stopped = False

    async def load(self) -> None:
        """Go on with every replay that had not ended. After the channels and topics are loaded.

        Raises Refusal `metadata-unavailable`.
        """
        for row in await self._rows.all():
            if row.kind is not ReplayKind.REPLAY or is_elsewhere(self._engine, row.topic):
                continue
            job = self._jobs[row.id] = self._job(row)
            if job.is_running:
                await self._resume(job)
        await self._trim()

    def stop(self) -> None:
        """Before the dispatcher closes: what has ended now ends at the next start."""
        self._is_stopped = True

    async def close(self) -> None:
        """Write what was counted, once the dispatcher is closed."""
        for job in self._jobs.values():
            if job.is_dirty:
                with suppress(Refusal):
                    await self._write(job)

    # --- look -------------------------------------------------------------------------------------

    def all(self) -> list[Job]:
        """The newest first."""
        jobs = self._jobs.values()
        return sorted(jobs, key=lambda job: (job.row.created_ms, job.id), reverse=True)

    def get(self, replay_id: str) -> Job:
        """Raises Refusal `unknown-replay`."""
        job = self._jobs.get(replay_id)
        if job is None:
            raise Refusal("unknown-replay", f"There is no replay {replay_id[:60]!r}.")
        return job

    async def positions(self, job: Job) -> dict[int, int]:
        """The cursor of each partition that has one."""
        if job.flow is not None:
            return {part.index: part.progress.next_offset for part in job.flow.parts}
        state = await self._dispatcher.store.load(job.id)
        return {row.partition: row.next_offset for row in state.cursors}

    async def attempts(
        self, replay_id: str, limit: int, before_id: int | None = None
    ) -> list[AttemptRow]:
        """Attempts that failed, the newest first. Raises Refusal `unknown-replay`."""
        return await self._history.by_flow(self.get(replay_id).id, limit, before_id=before_id)

    # --- change -----------------------------------------------------------------------------------

    async def plan(self, wish: ReplayWish) -> ReplayPlan:
        """What a replay would deliver; changes nothing.

        Raises Refusal: unknown-topic, unknown-channel, unknown-partition, invalid-offset,
        offset-below-start, offset-above-end …
        """
        topic = self._engine.topic(wish.topic)
        if wish.target_topic is not None and not is_elsewhere(self._engine, wish.target_topic):
            self._engine.topic(wish.target_topic)
        channel_id = None if wish.channel is None else self._channel_id(wish.channel)
        ranges = await plan_ranges(topic, wish.start, wish.end, wish.partitions)
        starts, ends = spread(topic, ranges)
        return ReplayPlan(
            topic=topic.name,
            topic_id=topic.id,
            starts=starts,
            ends=ends,
            channel=wish.channel,
            channel_id=channel_id,
            target_topic=wish.target_topic,
            rate=wish.rate,
            filter=wish.filter,
        )

    async def create(self, plan: ReplayPlan) -> Job:
        """Begin a replay; it is durable when this returns. Raises Refusal `too-many-replays`."""
        async with self._one_changes:
            if sum(job.is_running for job in self._jobs.values()) >= RUNNING_MAX:
                raise Refusal(
                    "too-many-replays",
                    f"{RUNNING_MAX} replays run, which is as many as may. Wait for one to end, or "
                    "cancel one with DELETE /v1/replays/{id}.",
                )
            now_ms = self._clock_ms()
            row = ReplayRow(
                id=str(uuid.uuid4()),
                kind=ReplayKind.REPLAY,
                topic=plan.topic,
                subscription_id=None,
                wish=plan.document(),
                state=ReplayState.RUNNING,
                created_ms=now_ms,
                updated_ms=now_ms,
            )
            job = self._jobs[row.id] = self._job(await self._rows.insert(row))
            await self._serve(job, plan, FlowState())
            with suppress(Refusal):
                await self._trim()
            return job

    async def cancel(self, replay_id: str) -> Job:
        """Send nothing more; what is on its way ends. A replay that has ended stays as it is."""
        job = self.get(replay_id)
        async with self._one_changes:
            if job.is_running:
                await self._write(job, state=ReplayState.CANCELLED)
                await self._stop(job)
        return job

    async def forget_topic(self, name: str) -> None:
        """A topic is deleted for good: what replays it cannot go on."""
        for job in list(self._jobs.values()):
            if job.row.topic == name:
                await self._end(job, ReplayState.FAILED, f"The topic '{name}' was deleted.")

    # --- run --------------------------------------------------------------------------------------

    def _job(self, row: ReplayRow) -> Job:
        job = Job(row, Failures(self._dispatcher.ledger))
        job.base = job.base._replace(
            delivered=row.delivered, failed=row.failed, filtered=row.filtered, missing=row.missing
        )
        return job

    async def _resume(self, job: Job) -> None:
        """Go on where the broker ended, unless that makes no sense any more."""
        fault = self._fault(job)
        if fault is None:
            try:
                plan = read_plan(job.row.topic, job.row.wish)
            except Refusal as refusal:
                fault = refusal.detail
        if fault is not None:
            await self._end(job, ReplayState.FAILED, fault)
            return
        state = await self._dispatcher.store.load(job.id)
        job.base = counted_before(job, state, await self._history.exhausted_count(job.id))
        await self._serve(job, plan, state)

    async def _serve(self, job: Job, plan: ReplayPlan, state: FlowState) -> None:
        if plan.target_topic is not None:
            await self._dispatcher.put_channel(_own_channel(job.id, plan.target_topic))
        push = self._dispatcher.make_push(
            _wish(job.id, plan),
            FlowPlan(
                id=job.id,
                name=job.id,
                topic=plan.topic,
                filter=plan.filter,
                ordering=Ordering.KEY,
                ends=plan.ends,
            ),
            replay=job.id,
            dead_letters=job.failures,
            on_progress=partial(self._on_progress, job),
        )
        job.flow, job.counters = push.flow, push.flow.counters
        await self._dispatcher.open_push(push, _begun(job.id, plan, state))
        self._on_progress(job)

    def _on_progress(self, job: Job) -> None:
        """Something was delivered, or failed, or there is nothing to do at the moment."""
        job.is_dirty = True
        self._arrange_look()
        if job.has_ended and not job.is_wrapped_up and not self._is_stopped:
            job.is_wrapped_up = True
            self._tasks.create_task(self._wrap_up(job))

    async def _wrap_up(self, job: Job) -> None:
        try:
            await self._end(job, ReplayState.DONE)
            await self._trim()
        except Refusal as refusal:
            logger.warning("the end of a replay not written", id=job.id, reason=refusal.detail)
            job.is_dirty = True
            self._arrange_look()

    async def _end(self, job: Job, state: ReplayState, detail: str = "") -> None:
        """The row is written last: after a crash in between the replay ends once more."""
        async with self._one_changes:
            if job.is_running:
                await self._dispatcher.ledger.commit()
                await self._write(job, state=state, detail=detail)
                await self._stop(job)

    async def _stop(self, job: Job) -> None:
        flow, job.flow = job.flow, None
        if flow is None:
            return
        with suppress(Refusal):  # what is noted is written as soon as the database is back
            await self._dispatcher.close_subscription(job.id, forget=False)
        if job.row.wish["target_topic"] is not None:
            await self._dispatcher.drop_channel(job.id)

    async def _write(self, job: Job, **changes: str) -> None:
        """What was counted, and what became of it. Raises Refusal `metadata-unavailable`."""
        job.is_dirty = False
        # What was on its way when a replay ended is counted, but its end stays where it was.
        now_ms = self._clock_ms() if job.is_running else job.row.updated_ms
        try:
            job.row = await self._rows.update(
                job.row, now_ms=now_ms, **job.counts._asdict(), **changes
            )
        except StaleRevision:
            logger.warning("the row of a replay is gone", id=job.id)
        except Refusal:
            job.is_dirty = True
            raise

    # --- look after them --------------------------------------------------------------------------

    def _arrange_look(self) -> None:
        if not self._is_stopped:
            self._dispatcher.alarms.arrange(self, self._ticks_ms() + LOOK_TICKS)

    def on_alarm(self) -> None:
        self._tasks.create_task(self.look())

    async def look(self) -> None:
        """Write what was counted, end what has ended, notice what cannot go on."""
        try:
            for job in list(self._jobs.values()):
                await self._look_at(job)
        except Refusal as refusal:
            logger.warning("replays not written", reason=refusal.detail)
        if any(job.is_running or job.is_dirty for job in self._jobs.values()):
            self._arrange_look()

    async def _look_at(self, job: Job) -> None:
        if job.is_running:
            fault = self._fault(job)
            if fault is not None:
                await self._end(job, ReplayState.FAILED, fault)
            elif job.has_ended:  # retention took the rest, or the database was away
                await self._end(job, ReplayState.DONE)
        if job.is_dirty:
            await self._write(job)

    def _fault(self, job: Job) -> str | None:
        """Why a replay can never go on: its topic or its channel is another one now."""
        wish, name = job.row.wish, job.row.topic
        try:
            if self._engine.topic(name).id != wish["topic_id"]:
                return f"The topic '{name}' was deleted and made anew."
        except Refusal as refusal:
            if refusal.code == "unknown-topic":
                return f"The topic '{name}' was deleted."
        if wish["channel"] is None:
            return None
        try:
            is_same = self._channel_id(wish["channel"]) == wish["channel_id"]
        except Refusal:
            is_same = False
        return None if is_same else f"The channel '{wish['channel']}' was deleted."

    async def _trim(self) -> None:
        """Forget replays that ended long ago, and the oldest of too many."""
        ended = [job for job in self._jobs.values() if not job.is_running]
        ended.sort(key=lambda job: job.row.updated_ms, reverse=True)
        oldest_ms = self._clock_ms() - KEPT_MS
        for place, job in enumerate(ended):
            if place < KEPT_COUNT and job.row.updated_ms >= oldest_ms:
                continue
            await self._dispatcher.ledger.exclusively(partial(_forget, job.id))
            await self._rows.delete(job.id)
            self._jobs.pop(job.id, None)


async def _forget(replay_id: str, store: DeliveryStore) -> None:
    await store.forget(replay_id)


def _own_channel(replay_id: str, topic: str) -> ChannelWish:
    """The way into a topic, for one replay."""
    return ChannelWish(
        id=replay_id,
        name="",
        namespace="",
        destination=Destination(topic=TopicDestination(name=topic)),
    )


def _wish(replay_id: str, plan: ReplayPlan) -> SubscriptionWish:
    return SubscriptionWish(
        id=replay_id,
        name="",
        namespace="",
        topic=plan.topic,
        mode=Mode.PUSH,
        type=GroupType.SHARED,
        channel_id=plan.channel_id or replay_id,
        filter=plan.filter,
        ordering=Ordering.KEY,
        retry=RETRY,
        rate=plan.rate,
    )


def _begun(replay_id: str, plan: ReplayPlan, state: FlowState) -> FlowState:
    """Partitions that have no row yet begin at their start."""
    rows = {row.partition: row for row in state.cursors}
    for index, start in enumerate(plan.starts):
        if index not in rows:
            rows[index] = CursorRow(replay_id, index, start, [], [], 0, 0, plan.topic_id)
    cursors = [rows[index] for index in sorted(rows)]
    return FlowState(cursors, state.retries, state.gaps)
