"""A second door beside the rig's, which serves consumers: a real dispatcher on the same parts.

async with running_consumers(tmp_path) as rig:
    await rig.subscribe("billing")
    leased = await rig.lease("billing")
"""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

from aiohttp import web

from ibrik_api.errors import Refusal
from ibrik_api.resources.subscription import GroupType, Mode, Retry
from ibrik_api.resources.topic import RetryPreset, TopicSpec
from ibrik_broker.delivery.dispatcher import Dispatcher
from ibrik_broker.delivery.retry import resolve_policy
from ibrik_broker.delivery.tokens import Tokens
from ibrik_broker.delivery.wishes import ChannelWish, SubscriptionWish
from ibrik_broker.http.consuming import ConsumerPlane, Subscriptions
from ibrik_broker.http.data import build_data_plane
from ibrik_broker.http.server import DoorRunner
from ibrik_broker.metadata.deliveries import DeliveryStore
from ibrik_broker.metadata.keys import lease_key
from ibrik_broker.settings import LimitSettings
from tests.broker.http.rig import Reply, Rig, running_doors


@dataclass
class Clocks:
    """The time of the machine, and what a test adds to it."""

    added_ms: int = 0

    def ticks_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000 + self.added_ms

    def clock_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self.added_ms


@dataclass
class ConsumerRig(Rig):
    dispatcher: Dispatcher | None = None
    clocks: Clocks | None = None
    runner: DoorRunner | None = None
    ids: Mapping[str, str] | None = None

    @property
    def delivery(self) -> Dispatcher:
        assert self.dispatcher is not None
        return self.dispatcher

    @property
    def consumers(self) -> ConsumerPlane:
        assert self.data.consumers is not None
        return self.data.consumers

    async def subscribe(self, name: str = "billing", **wish: Any) -> SubscriptionWish:
        """Serve a subscription of this name, as the catalogue does."""
        made = wish_of(name, **wish)
        await self.delivery.open(made)
        return made

    def forward(self, milliseconds: int) -> None:
        assert self.clocks is not None
        self.clocks.added_ms += milliseconds

    async def act(self, verb: str, body: Any = None, name: str = "billing") -> Reply:
        return await self.call("POST", f"/v1/subscriptions/{name}:{verb}", body)

    async def look(self, what: str, name: str = "billing") -> Any:
        reply = await self.call("GET", f"/v1/subscriptions/{name}/{what}")
        assert reply.status == 200, reply
        return reply.json

    async def lease(self, name: str = "billing", **wish: Any) -> list[Any]:
        """The messages of one lease; empty when there are none."""
        reply = await self.act("lease", wish, name)
        assert reply.status in (200, 204), reply
        return reply.json["messages"] if reply.status == 200 else []

    async def ack(self, *messages: Any, name: str = "billing") -> Any:
        reply = await self.act("ack", {"leases": [m["lease"] for m in messages]}, name)
        assert reply.status == 200, reply
        return reply.json

    async def publish_numbers(self, count: int, first: int = 0) -> None:
        for number in range(first, first + count):
            assert (await self.publish(b"%d" % number)).status == 201


def wish_of(name: str, **wish: Any) -> SubscriptionWish:
    known: dict[str, Any] = {
        "id": f"id-of-{name}",
        "name": name,
        "namespace": "default",
        "topic": "orders",
        "mode": Mode.PULL,
        "type": GroupType.SHARED,
        "retry": resolve_policy(Retry(), RetryPreset.IN_CLUSTER),
    }
    return SubscriptionWish(**(known | wish))


@asynccontextmanager
async def running_consumers(
    folder: Path, *, port: int = 0, heartbeat_ms: int = 15_000, **limits: Any
) -> AsyncIterator[ConsumerRig]:
    clocks = Clocks()
    async with running_doors(folder, creates=False, **limits) as rig:
        if rig.parts.registry.by_name("orders") is None:
            await rig.parts.registry.create_topic("orders", TopicSpec())
        rows = DeliveryStore(rig.parts.database)
        tokens = Tokens(await lease_key(rig.parts.database))
        async with asyncio.TaskGroup() as tasks:
            dispatcher = Dispatcher(
                rig.parts.engine,
                rows,
                tasks,
                make_sender=_nothing_is_sent,
                ensure_topic=partial(_ensure_topic, rig),
                clock_ms=clocks.clock_ms,
                ticks_ms=clocks.ticks_ms,
            )
            await dispatcher.start()
            subscriptions = Subscriptions(dispatcher, partial(_find, dispatcher), tokens)
            settings = LimitSettings(**limits)
            data = build_data_plane(
                rig.parts.engine,
                rig.parts.registry,
                settings,
                allocate_producer_id=rig.parts.database.allocate_producer_id,
                publishers=rig.parts.publishers,
                clients=rig.parts.clients,
                make_consumers=partial(ConsumerPlane, subscriptions),
                heartbeat_ms=heartbeat_ms,
            )
            runner = DoorRunner(data.app, settings, shutdown_timeout_s=2)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", port).start()
            known = {field.name: getattr(rig, field.name) for field in fields(rig)}
            known |= {"data": data, "data_port": runner.addresses[0][1]}
            try:
                yield ConsumerRig(**known, dispatcher=dispatcher, clocks=clocks, runner=runner)
            finally:
                await runner.cleanup()
                await dispatcher.close()


def _find(dispatcher: Dispatcher, name: str) -> str:
    for flow in dispatcher.flows():
        if flow.plan.name == name:
            return flow.id
    raise Refusal("unknown-subscription", f"There is no subscription '{name}'.")


async def _ensure_topic(rig: Rig, name: str) -> None:
    if rig.parts.registry.by_name(name) is None:
        await rig.parts.registry.create_topic(name, TopicSpec())


def _nothing_is_sent(_wish: ChannelWish) -> Any:
    raise AssertionError("consumers take messages, nothing is sent")
