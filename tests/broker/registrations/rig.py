"""The catalogue with a real registry and database; the dispatcher is a strict recorder.

    async with open_catalogue(tmp_path) as rig:
        await rig.topic("orders")
        await rig.catalogue.subscriptions.put("billing", subscription("orders"))
        assert rig.dispatcher.wish("billing").topic == "orders"

The recorder refuses what the dispatcher would find impossible, so that a wrong order fails a test.
Opening the same folder again is the next start.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from sqlalchemy import text

from ibrik_api.desired import Outcome
from ibrik_api.errors import Refusal
from ibrik_api.resources.channel import ChannelSpec, Circuit
from ibrik_api.resources.subscription import SubscriptionSpec
from ibrik_api.resources.topic import TopicSpec
from ibrik_broker.delivery.wishes import ChannelWish, SubscriptionWish
from ibrik_broker.metadata.deliveries import FlowState
from ibrik_broker.registrations.catalogue import Catalogue
from ibrik_broker.registrations.channels import CredentialFault
from tests.support.registry import NOW_MS, Parts, open_parts

HOOK = {"url": "http://127.0.0.1:9000/hook"}
DELETED = "2026-11-27T10:00:00Z"


def channel(**spec: Any) -> ChannelSpec:
    return ChannelSpec.parse({"http": HOOK} | spec)


def subscription(topic: str, **spec: Any) -> SubscriptionSpec:
    return SubscriptionSpec.parse({"topicRef": {"name": topic}} | spec)


def pushed(topic: str, to: str = "hooks", **spec: Any) -> SubscriptionSpec:
    return subscription(topic, mode="push", channelRef={"name": to}, **spec)


def resource(kind: str, name: str, *, metadata: Any = None, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "ibrik.dev/v1beta1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "shop"} | (metadata or {}),
        "spec": spec,
    }


@dataclass
class Recorder:
    """Delivering, without delivering anything."""

    calls: list[tuple[str, str]] = field(default_factory=list)
    subscriptions: dict[str, SubscriptionWish] = field(default_factory=dict)
    channels: dict[str, ChannelWish] = field(default_factory=dict)
    forgotten: list[str] = field(default_factory=list)
    states: dict[str, FlowState | None] = field(default_factory=dict)
    refusal: Refusal | None = None
    on_halt: Any = None

    def _note(self, call: str, name: str) -> None:
        self.calls.append((call, name))
        if self.refusal is not None:
            raise self.refusal

    async def open(self, wish: SubscriptionWish, state: FlowState | None = None) -> None:
        self._note("open", wish.name)
        assert wish.id not in self.subscriptions
        self.subscriptions[wish.id] = wish
        self.states[wish.name] = state

    async def change(self, wish: SubscriptionWish) -> None:
        self._note("change", wish.name)
        assert wish.id in self.subscriptions
        self.subscriptions[wish.id] = wish

    async def close_subscription(self, subscription_id: str, *, forget: bool) -> None:
        known = self.subscriptions.pop(subscription_id, None)
        self._note("forget" if forget else "close", "" if known is None else known.name)
        if forget:
            self.forgotten.append(subscription_id)

    async def put_channel(self, wish: ChannelWish) -> None:
        self._note("put_channel", wish.name)
        self.channels[wish.id] = wish

    async def drop_channel(self, channel_id: str) -> None:
        self._note("drop_channel", self.channels.pop(channel_id).name)

    def flow(self, subscription_id: str) -> Any:
        assert subscription_id in self.subscriptions
        return SimpleNamespace(
            state="active",
            backlog=3,
            in_flight_count=2,
            retrying_count=1,
            oldest_ms=NOW_MS,
            counters=SimpleNamespace(dead_lettered=4),
        )

    def outlet(self, channel_id: str) -> Any:
        halts = {"gone": Circuit.GONE, "paused": Circuit.PAUSED, None: Circuit.CLOSED}
        circuit = halts[self.channels[channel_id].halt]
        return SimpleNamespace(
            circuit=lambda _now: circuit, paused_until_ticks=lambda now: now + 1_000
        )

    def wish(self, name: str) -> SubscriptionWish:
        (found,) = (wish for wish in self.subscriptions.values() if wish.name == name)
        return found

    def channel(self, name: str) -> ChannelWish:
        (found,) = (wish for wish in self.channels.values() if wish.name == name)
        return found


@dataclass
class Rig:
    parts: Parts
    dispatcher: Recorder
    catalogue: Catalogue

    async def topic(self, name: str, **spec: Any) -> None:
        await self.parts.registry.create_topic(name, TopicSpec.parse(spec))

    async def apply(self, *documents: dict[str, Any]) -> list[Outcome]:
        return await self.catalogue.desired.apply(documents)

    async def settle(self) -> None:
        """What `run` does when it is woken."""
        await self.catalogue.catch_up()

    async def execute(self, statement: str) -> None:
        async with self.parts.database.transaction() as connection:
            await connection.execute(text(statement))

    def calls(self) -> list[tuple[str, str]]:
        """What the dispatcher was told since the last look."""
        calls = list(self.dispatcher.calls)
        self.dispatcher.calls.clear()
        return calls


@asynccontextmanager
async def open_catalogue(
    folder: Path,
    *,
    load: bool = True,
    states: dict[str, FlowState] | None = None,
    credential_fault: CredentialFault | None = None,
) -> AsyncIterator[Rig]:
    async with open_parts(folder) as parts:
        dispatcher = Recorder()
        catalogue = Catalogue(
            parts.registry,
            parts.database,
            dispatcher,
            clock_ms=lambda: NOW_MS,
            ticks_ms=lambda: 0,
            credential_fault=credential_fault,
        )
        if load:
            await catalogue.load(states)
        yield Rig(parts, dispatcher, catalogue)


def conditions(view: Any) -> dict[str, tuple[str, str]]:
    """Status and reason by type."""
    return {c.type: (c.status.value, c.reason) for c in view.status.conditions}
