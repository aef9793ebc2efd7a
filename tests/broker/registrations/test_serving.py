"""The catalogue with the real dispatcher: wishes become deliveries, also after a restart."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import text

from ibrik_api.errors import Refusal
from ibrik_api.resources.channel import Circuit
from ibrik_broker.registrations.catalogue import Catalogue
from tests.broker.registrations.rig import HOOK, channel, conditions, pushed, resource, subscription
from tests.support.delivery import DeliveryParts, RecordingSender, open_delivery, status
from tests.support.postgres import Postgres, running_postgres


@dataclass
class Served:
    parts: DeliveryParts
    catalogue: Catalogue

    @property
    def values(self) -> list[bytes | None]:
        return sorted(self.parts.sender.values, key=str)

    async def arrives(self, *values: bytes) -> None:
        await self.parts.until(lambda: len(self.parts.sender.parcels) >= len(values))
        await self.nothing_is_left()
        assert self.values == sorted(values)

    async def nothing_is_left(self) -> None:
        flows = self.parts.dispatcher.flows
        await self.parts.until(lambda: all(flow.backlog == 0 for flow in flows()))


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    with running_postgres() as server:
        yield server


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/metadata.db"
    server: Postgres = request.getfixturevalue("postgres")
    return server.new_database()


@asynccontextmanager
async def serving(
    folder: Path, database_url: str, sender: RecordingSender | None = None
) -> AsyncIterator[Served]:
    async with open_delivery(folder, database_url=database_url, sender=sender) as parts:
        catalogue = Catalogue(
            parts.registry,
            parts.database,
            parts.dispatcher,
            clock_ms=parts.clock,
            ticks_ms=parts.clock,
        )
        await catalogue.load(await parts.store.load_all())
        yield Served(parts, catalogue)


async def test_an_endpoint_that_registers_fifty_times_gets_each_message_once(
    tmp_path: Path, database_url: str
) -> None:
    async with serving(tmp_path, database_url) as served:
        await served.parts.topic("orders")
        subscribe = served.catalogue.endpoints.subscribe
        await asyncio.gather(*(subscribe("orders", HOOK["url"]) for _ in range(50)))
        await served.parts.publish("orders", b"1", b"2")
        await served.arrives(b"1", b"2")
    sender = RecordingSender()
    async with serving(tmp_path, database_url, sender) as served:
        again = await served.catalogue.endpoints.subscribe("orders", HOOK["url"])
        assert not again.created
        await served.parts.publish("orders", b"3")
        await served.arrives(b"3")


async def test_a_detached_subscription_goes_on_where_it_was_after_a_restart(
    tmp_path: Path, database_url: str
) -> None:
    async with serving(tmp_path, database_url) as served:
        await served.parts.topic("orders")
        await served.catalogue.channels.put("hooks", channel())
        await served.catalogue.subscriptions.put("billing", pushed("orders"))
        await served.parts.publish("orders", b"1")
        await served.arrives(b"1")
        await served.catalogue.subscriptions.delete("billing")
        await served.parts.publish("orders", b"2")
    sender = RecordingSender()
    async with serving(tmp_path, database_url, sender) as served:
        assert list(served.parts.dispatcher.flows()) == []
        await served.catalogue.subscriptions.put("billing", pushed("orders"))
        await served.arrives(b"2")


async def test_a_forgotten_subscription_begins_anew(tmp_path: Path, database_url: str) -> None:
    async with serving(tmp_path, database_url) as served:
        await served.parts.topic("orders")
        await served.catalogue.channels.put("hooks", channel())
        spec = pushed("orders", deletionPolicy="Delete")
        await served.catalogue.subscriptions.put("billing", spec)
        await served.parts.publish("orders", b"1")
        await served.arrives(b"1")
        await served.catalogue.subscriptions.delete("billing")
        await served.parts.dispatcher.ledger.commit()
        assert await served.parts.store.load_all() == {}
        await served.catalogue.subscriptions.put("billing", spec)
        await served.arrives(b"1", b"1")


async def test_a_backlog_waits_for_its_topic_and_its_channel(tmp_path: Path) -> None:
    async with serving(tmp_path, f"sqlite:///{tmp_path}/metadata.db") as served:
        apply = served.catalogue.desired.apply
        await apply(
            [
                resource(
                    "Subscription",
                    "billing",
                    topicRef={"name": "orders"},
                    mode="push",
                    channelRef={"name": "hooks"},
                )
            ]
        )
        await apply([resource("Topic", "orders", topicName="shop-orders")])
        await served.catalogue.catch_up()
        await served.parts.publish("shop-orders", b"1")
        (flow,) = served.parts.dispatcher.flows()
        await served.parts.until(lambda: flow.backlog == 1)
        hooks = resource("Channel", "hooks", http=HOOK)
        await apply([hooks])
        await served.arrives(b"1")
        hooks["metadata"]["deletionTimestamp"] = "2026-11-27T10:00:00Z"
        await apply([hooks])
        await served.parts.publish("shop-orders", b"2")
        await served.parts.until(lambda: flow.backlog == 1)
        del hooks["metadata"]["deletionTimestamp"]
        await apply([hooks])
        await served.arrives(b"1", b"2")


async def test_an_endpoint_that_is_gone_stays_so_until_it_is_resumed(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/metadata.db"
    async with serving(tmp_path, url) as served:
        await served.parts.topic("orders")
        served.parts.sender.answer = lambda _: status(410)
        await served.catalogue.channels.put("hooks", channel())
        await served.catalogue.subscriptions.put("billing", pushed("orders"))
        await served.parts.publish("orders", b"1")
        (entry,) = served.catalogue.channels.entries
        await served.parts.until(lambda: entry.row.halt == "gone")
    async with serving(tmp_path, url, RecordingSender()) as served:
        view = served.catalogue.channels.describe("hooks")
        assert view.status is not None
        assert view.status.circuit is Circuit.GONE
        await served.catalogue.channels.resume("hooks")
        (flow,) = served.parts.dispatcher.flows()
        await served.parts.until(lambda: flow.backlog == 0 or flow.parked)
        await served.parts.advance(60_000)
        await served.nothing_is_left()
        assert served.values == [b"1"]


async def test_a_topic_made_again_is_delivered_from_its_start(tmp_path: Path) -> None:
    async with serving(tmp_path, f"sqlite:///{tmp_path}/metadata.db") as served:
        await served.parts.topic("orders", deletionPolicy="Delete")
        await served.catalogue.channels.put("hooks", channel())
        await served.catalogue.subscriptions.put("billing", pushed("orders"))
        await served.parts.publish("orders", b"1", b"2")
        await served.arrives(b"1", b"2")
        await served.parts.registry.delete_topic("orders")
        await served.parts.topic("orders")
        await served.catalogue.catch_up()
        await served.parts.publish("orders", b"3")
        await served.arrives(b"1", b"2", b"3")


async def test_an_opening_that_the_database_broke_off_is_whole_after_the_next(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, f"sqlite:///{tmp_path}/metadata.db") as served:
        await served.parts.topic("orders")
        await served.catalogue.channels.put("hooks", channel())
        async with served.parts.database.transaction() as connection:
            await connection.execute(text("ALTER TABLE cursors RENAME TO away"))
        with pytest.raises(Refusal) as caught:
            await served.catalogue.subscriptions.put("billing", pushed("orders"))
        assert caught.value.code == "metadata-unavailable"
        view = served.catalogue.subscriptions.describe("billing")
        assert conditions(view)["DataPlaneReady"] == ("False", "NotConfirmed")
        async with served.parts.database.transaction() as connection:
            await connection.execute(text("ALTER TABLE away RENAME TO cursors"))
        await served.parts.publish("orders", b"1", b"2")
        await served.catalogue.catch_up()
        await served.arrives(b"1", b"2")
        view = served.catalogue.subscriptions.describe("billing")
        assert conditions(view)["Ready"] == ("True", "Ready")


async def test_the_status_is_that_of_the_flow(tmp_path: Path) -> None:
    async with serving(tmp_path, f"sqlite:///{tmp_path}/metadata.db") as served:
        await served.parts.topic("orders")
        await served.catalogue.subscriptions.put("billing", subscription("orders"))
        await served.parts.publish("orders", b"1", b"2")
        view = served.catalogue.subscriptions.describe("billing")
        assert view.status is not None
        assert (view.status.backlog, view.status.state) == (2, "active")
        assert conditions(view)["Ready"] == ("True", "Ready")
        paused = await served.catalogue.subscriptions.pause("billing")
        assert paused.status is not None
        assert paused.status.backlog == 2
