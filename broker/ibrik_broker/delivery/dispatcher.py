"""All flows of this broker, and the destinations they go to. Lives on the event loop.

The catalogue opens, changes and closes subscriptions and channels here; topics wake their flows.
Nobody polls: a flow without news costs neither a task nor a timer.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial

from ibrik_api.errors import Refusal
from ibrik_api.resources.subscription import Mode
from ibrik_api.resources.topic import TopicSpec
from ibrik_broker.delivery.across import PublishAcross
from ibrik_broker.delivery.alarms import Alarms
from ibrik_broker.delivery.clocks import Clocks
from ibrik_broker.delivery.deadletters import DeadLetters, redriven_id
from ibrik_broker.delivery.flow import Flow
from ibrik_broker.delivery.flow_plan import Plan
from ibrik_broker.delivery.leases import Leases
from ibrik_broker.delivery.ledger import Ledger
from ibrik_broker.delivery.loading import attach, restore
from ibrik_broker.delivery.outlet import Outlet
from ibrik_broker.delivery.outlets import Outlets
from ibrik_broker.delivery.parts import Parts
from ibrik_broker.delivery.push import Push
from ibrik_broker.delivery.reading import RecordReader
from ibrik_broker.delivery.seek import SeekPlan
from ibrik_broker.delivery.senders.parcel import Sender
from ibrik_broker.delivery.wishes import ChannelWish, SubscriptionWish
from ibrik_broker.metadata.deliveries import DeliveryStore, FlowState
from ibrik_broker.partitions.engine import Engine
from ibrik_broker.partitions.topic import Topic
from ibrik_broker.telemetry.metrics import Histogram

SENDS_MAX = 2_048
"""Messages on their way over all destinations: each may hold a socket."""
LOOK_SECONDS = 5.0
"""How often flows that read nothing look whether retention passed them."""

HEADS_AT_ONCE = 100
"""Flows that rest, of which the oldest message is looked up at a time."""


class Dispatcher:
    def __init__(
        self,
        engine: Engine,
        store: DeliveryStore,
        tasks: asyncio.TaskGroup,
        *,
        make_sender: Callable[[ChannelWish], Sender],
        ensure_topic: Callable[[str, TopicSpec], Awaitable[None]],
        clock_ms: Callable[[], int],
        ticks_ms: Callable[[], int],
        sends_max: int = SENDS_MAX,
        across: PublishAcross | None = None,
    ) -> None:
        self.on_halt: Callable[[str, str, str], Awaitable[None]] = _nobody_listens
        """Told when a channel is gone or a subscription stopped at a gap: (kind, id, reason)."""
        self.store = store
        self.ledger = Ledger(store, clock_ms)
        self.alarms = Alarms(ticks_ms)
        self.dead_letters = DeadLetters(engine, ensure_topic, clock_ms, across)
        self.reader = RecordReader()
        self.latencies: dict[str, Histogram] = {}
        self._engine = engine
        self._tasks = tasks
        self._clocks = Clocks(clock_ms, ticks_ms)
        self._clock_ms = clock_ms
        self._ticks_ms = ticks_ms
        self._pushes: dict[str, Push] = {}
        self._leases: dict[str, Leases] = {}
        self._by_topic: dict[str, dict[str, Push | Leases]] = {}
        self._parts = Parts(
            ledger=self.ledger,
            dead_letters=self.dead_letters,
            alarms=self.alarms,
            tasks=tasks,
            clock_ms=clock_ms,
            ticks_ms=ticks_ms,
            random=random.random,
            sends_max=sends_max,
            latency=self._latency,
            on_halt=self._tell_halt,
        )
        self._outlets = Outlets(make_sender, self._parts)
        self._one_attaches = asyncio.Lock()
        self._looking: asyncio.TimerHandle | None = None

    async def start(self) -> None:
        """Begin to write, and to hear of topics. Subscriptions are opened by the catalogue."""
        self._tasks.create_task(self.ledger.run())
        self._engine.watch(self._on_topic, self._on_news)
        self._look()

    async def drain(self, seconds: float) -> None:
        """Hand out nothing new, and let what is on its way end; leases can still be settled."""
        for push in self._pushes.values():
            push.flow.halt = push.flow.halt or "closing"
        for leases in self._leases.values():
            leases.flow.halt = leases.flow.halt or "closing"
        if self._looking is not None:
            self._looking.cancel()
        self.alarms.close()
        await self._outlets.close(seconds)

    async def close(self) -> None:
        """Write what is known, and end; after `drain`."""
        for task in self._parts.background:
            task.cancel()
        with suppress(Refusal):
            await self.ledger.commit()
        self.ledger.close()

    # --- channels ---------------------------------------------------------------------------------

    async def put_channel(self, wish: ChannelWish) -> None:
        """Make or change a destination; flows that wait for it go on."""
        await self._outlets.put(wish)

    async def drop_channel(self, channel_id: str) -> None:
        """A destination goes; flows to it wait for another one."""
        await self._outlets.drop(channel_id)

    def outlet(self, channel_id: str) -> Outlet:
        """Raises Refusal `unknown-channel`."""
        return self._outlets.outlet(channel_id)

    def outlets(self) -> Iterable[Outlet]:
        return self._outlets.outlets()

    def sender(self, channel_id: str) -> Sender:
        """The very sender that deliveries use, for a probe. Raises Refusal `unknown-channel`."""
        return self._outlets.sender(channel_id)

    # --- subscriptions ----------------------------------------------------------------------------

    async def open(self, wish: SubscriptionWish, state: FlowState | None = None) -> None:
        """Serve a subscription, from where it was, or else durably from `wish.start`.

        `state` is what the database knows when the caller has loaded it already.
        """
        if state is None:
            state = await self.store.load(wish.id)
        flow = self._flow(wish)
        is_push = wish.mode is Mode.PUSH
        now_ms, now_ticks = self._clock_ms(), self._ticks_ms()
        restore(flow, self.ledger, state, is_push=is_push, now_ms=now_ms, now_ticks=now_ticks)
        if is_push:
            push = Push(wish, flow, self._parts)
            self._serve_push(push)
        else:
            self._serve_leases(wish, flow)
        await self._attach(wish, flow)

    async def change(self, wish: SubscriptionWish) -> None:
        """Take a new wish over; the cursor stays. Blocked messages are tried again."""
        served = self._served(wish.id)
        if served is None or _needs_new_carrier(served, wish):
            await self._close(wish.id)
            await self.ledger.commit()
            await self.open(wish)
            return
        flow = served.flow
        flow.plan = wish
        flow.halt = wish.halt
        if isinstance(served, Push):
            served.change(wish)
            self._outlets.join(served)
        else:
            served.wish = wish
            served.wake_all()
        flow.unblock()

    async def close_subscription(self, subscription_id: str, *, forget: bool) -> None:
        """Stop serving; with `forget` its cursor, retries and history go too."""
        served = self._served(subscription_id)
        await self._close(subscription_id)
        if forget:

            async def drop(store: DeliveryStore) -> None:
                if served is not None:
                    self.ledger.forget(subscription_id, served.flow.parts)
                await store.forget(subscription_id)
                await store.forget(redriven_id(subscription_id))

            await self.ledger.exclusively(drop)
        else:
            await self.ledger.commit()

    def flow(self, subscription_id: str) -> Flow:
        """Raises Refusal `unknown-subscription`."""
        served = self._served(subscription_id)
        if served is None:
            raise _unknown(subscription_id)
        return served.flow

    def flows(self) -> Iterator[Flow]:
        for served in self._all():
            yield served.flow

    def flows_of(self, topic: str) -> list[Flow]:
        """The flows of one topic's subscriptions and replays."""
        return [served.flow for served in self._by_topic.get(topic, {}).values()]

    def wish(self, subscription_id: str) -> SubscriptionWish:
        """What is served. Raises Refusal `unknown-subscription`."""
        served = self._served(subscription_id)
        if served is None:
            raise _unknown(subscription_id)
        return served.wish

    def leases(self, subscription_id: str) -> Leases:
        """Raises Refusal `unknown-subscription` or `wrong-mode`."""
        leases = self._leases.get(subscription_id)
        if leases is not None:
            return leases
        if subscription_id not in self._pushes:
            raise _unknown(subscription_id)
        name = self._pushes[subscription_id].wish.name
        raise Refusal(
            "wrong-mode",
            f"The subscription '{name}' is pushed to its destination, so there is nothing to "
            "lease. Create another subscription with mode pull.",
        )

    async def seek(self, subscription_id: str, plan: SeekPlan) -> None:
        """Move the cursor durably: what is in hand becomes meaningless, retries are dropped."""
        flow = self.flow(subscription_id)

        async def move(store: DeliveryStore) -> None:
            parts = flow.rewound(plan.offsets)
            await store.rewind(flow.id, [part.cursor_row(self._clock_ms()) for part in parts])
            self.ledger.forget(flow.id, flow.parts)
            flow.rewind(parts)

        await self.ledger.exclusively(move)
        flow.tell_ready()

    # --- flows of their own: replays --------------------------------------------------------------

    async def open_push(self, push: Push, state: FlowState) -> None:
        """Serve a flow that is no subscription's, such as a replay."""
        now_ms, now_ticks = self._clock_ms(), self._ticks_ms()
        restore(push.flow, self.ledger, state, is_push=True, now_ms=now_ms, now_ticks=now_ticks)
        self._serve_push(push)
        await self._attach(push.wish, push.flow)

    def make_push(self, wish: SubscriptionWish, plan: Plan, **options: object) -> Push:
        return Push(wish, self._make_flow(plan), self._parts, **options)  # type: ignore[arg-type]

    # --- parts ------------------------------------------------------------------------------------

    def _all(self) -> list[Push | Leases]:
        return [*self._pushes.values(), *self._leases.values()]

    def _served(self, subscription_id: str) -> Push | Leases | None:
        return self._pushes.get(subscription_id) or self._leases.get(subscription_id)

    def _flow(self, wish: SubscriptionWish) -> Flow:
        flow = self._make_flow(wish)
        flow.halt = wish.halt
        return flow

    def _make_flow(self, plan: Plan) -> Flow:
        return Flow(plan, self.ledger, self.reader, self._clocks)

    def _serve_push(self, push: Push) -> None:
        self._pushes[push.wish.id] = push
        self._by_topic.setdefault(push.flow.plan.topic, {})[push.wish.id] = push
        push.flow.carrier = push

    def _serve_leases(self, wish: SubscriptionWish, flow: Flow) -> None:
        leases = Leases(wish, flow, self._parts)
        self._leases[wish.id] = leases
        self._by_topic.setdefault(wish.topic, {})[wish.id] = leases
        flow.carrier = leases

    async def _close(self, subscription_id: str) -> None:
        push = self._pushes.pop(subscription_id, None)
        leases = self._leases.pop(subscription_id, None)
        served = push or leases
        if served is None:
            return
        flow = served.flow
        self._by_topic.get(flow.plan.topic, {}).pop(subscription_id, None)
        if push is not None:
            self._outlets.leave(push)
        flow.retire()
        if leases is not None:
            leases.wake_all()

    async def _attach(self, wish: SubscriptionWish, flow: Flow) -> None:
        """Connect a flow with its topic, if that is served; else `_on_topic` does it later."""
        async with self._one_attaches:
            try:
                topic = self._engine.topic(flow.plan.topic)
            except Refusal:
                return
            await attach(flow, topic, wish.start, self.ledger, self.reader)
        served = self._served(wish.id)
        if isinstance(served, Push):
            self._outlets.join(served)
        elif served is not None:
            served.on_ready()

    def _on_topic(self, topic: Topic | None, name: str) -> None:
        """A topic is served now, has more partitions, or (None) is not served any more."""
        for served in list(self._by_topic.get(name, {}).values()):
            if topic is not None:
                self._parts.insist(partial(self._attach, served.wish, served.flow))
                continue
            served.flow.topic = None
            if isinstance(served, Leases):
                served.wake_all()

    def _on_news(self, name: str) -> None:
        """Something was appended to a topic."""
        for served in self._by_topic.get(name, {}).values():
            served.on_ready()

    def _look(self) -> None:
        """Notice what retention took from flows that read nothing, and how old their backlog is."""
        waiting = []
        for served in self._all():
            served.flow.look_for_gaps()
            if served.flow.oldest_ms is None and served.flow.backlog:
                waiting.append(served.flow)
        if waiting:
            self._parts.insist(partial(_find_heads, waiting[:HEADS_AT_ONCE]))
        self._looking = asyncio.get_running_loop().call_later(LOOK_SECONDS, self._look)

    async def _tell_halt(self, kind: str, identity: str, reason: str) -> None:
        await self.on_halt(kind, identity, reason)

    def _latency(self, topic: str) -> Histogram:
        histogram = self.latencies.get(topic)
        if histogram is None:
            histogram = self.latencies[topic] = Histogram()
        return histogram


def _needs_new_carrier(served: Push | Leases, wish: SubscriptionWish) -> bool:
    """Other modes are carried by other objects; another order or topic begins with empty hands."""
    known = served.wish
    return (
        isinstance(served, Push) != (wish.mode is Mode.PUSH)
        or known.ordering is not wish.ordering
        or known.topic != wish.topic
    )


def _unknown(subscription_id: str) -> Refusal:
    return Refusal("unknown-subscription", f"There is no subscription {subscription_id}.")


async def _nobody_listens(_kind: str, _id: str, _reason: str) -> None:
    """Until the catalogue is there."""


async def _find_heads(flows: list[Flow]) -> None:
    for flow in flows:
        await flow.find_heads()
