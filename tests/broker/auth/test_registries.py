"""Publishers and clients over a real database, also when the outcome of a commit is unknown."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ibrik_api.errors import Refusal
from ibrik_broker.auth.clients import Clients
from ibrik_broker.auth.publishers import Publishers
from ibrik_broker.metadata.clients import ClientRows
from ibrik_broker.metadata.database import Database
from ibrik_broker.metadata.publishers import PublisherRows
from ibrik_broker.metadata.topics import TopicState
from tests.support.registry import open_parts, row_of


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    database = await Database.open(f"sqlite:///{tmp_path}/metadata.db", "cluster")
    yield database
    await database.close()


async def publishers_of(database: Database) -> Publishers:
    """One process's view, as read at its start."""
    publishers = Publishers(PublisherRows(database), clock_ms=lambda: 1_000)
    await publishers.load()
    return publishers


async def clients_of(database: Database) -> Clients:
    clients = Clients(ClientRows(database), clock_ms=lambda: 1_000)
    await clients.load()
    return clients


async def test_publishers_are_known_after_a_restart(database: Database) -> None:
    row, token = await (await publishers_of(database)).register("orders", "shop")
    assert token is not None
    again = await publishers_of(database)
    assert again.by_token("orders", token) == row
    assert again.by_token("bills", token) is None


async def test_registrations_at_the_same_time_give_one_publisher(database: Database) -> None:
    publishers = await publishers_of(database)
    made = await asyncio.gather(*(publishers.register("orders", "shop") for _ in range(20)))
    assert len({row.id for row, _ in made}) == 1
    assert sum(token is not None for _, token in made) == 1


async def test_a_registration_whose_answer_got_lost_is_found(database: Database) -> None:
    """As when the connection breaks between the commit and its confirmation."""
    stale = await publishers_of(database)
    row, _ = await (await publishers_of(database)).register("orders", "shop")
    assert await stale.register("orders", "shop") == (row, None)


async def test_a_removal_whose_answer_got_lost_can_be_repeated(database: Database) -> None:
    publishers = await publishers_of(database)
    await publishers.register("orders", "shop")
    await (await publishers_of(database)).remove("orders", "shop")
    await publishers.remove("orders", "shop")
    assert publishers.find("orders", "shop") is None


async def test_a_rotation_whose_answer_got_lost_is_not_overwritten(database: Database) -> None:
    publishers = await publishers_of(database)
    await publishers.register("orders", "shop")
    _, token = await (await publishers_of(database)).rotate("orders", "shop")
    with pytest.raises(Refusal) as refused:
        await publishers.rotate("orders", "shop")
    assert refused.value.code == "precondition-failed"
    assert publishers.by_token("orders", token) is not None
    await publishers.rotate("orders", "shop")
    assert publishers.by_token("orders", token) is None


async def test_a_deleted_topic_leaves_nobody_behind(database: Database) -> None:
    publishers = await publishers_of(database)
    _, token = await publishers.register("orders", "shop")
    await publishers.register("bills", "shop")
    await publishers.forget_topic("orders")
    for view in (publishers, await publishers_of(database)):
        assert [row.topic for row in view.list()] == ["bills"]
        assert view.by_token("orders", token or "") is None


async def test_a_removal_that_a_crash_interrupted_takes_the_publishers_too(tmp_path: Path) -> None:
    async with open_parts(tmp_path, load=False) as parts:
        await parts.rows.insert(row_of("orders", TopicState.DELETING))
        await parts.publishers.register("orders", "shop")
    async with open_parts(tmp_path) as parts:
        assert parts.publishers.list() == []
    async with open_parts(tmp_path) as parts:
        assert parts.publishers.list() == []


async def test_clients_are_known_after_a_restart(database: Database) -> None:
    row, is_new = await (await clients_of(database)).put("till", "In the hall")
    assert is_new
    assert (await clients_of(database)).describe("till") == row


async def test_a_client_whose_answer_got_lost_is_found(database: Database) -> None:
    stale = await clients_of(database)
    row, _ = await (await clients_of(database)).put("till", "In the hall")
    with pytest.raises(Refusal) as refused:
        await stale.put("till", "Upstairs")
    assert refused.value.code == "precondition-failed"
    assert (await stale.put("till", "Upstairs"))[0].id == row.id
    await (await clients_of(database)).remove("till")
    await stale.remove("till")
    assert stale.find("till") is None
