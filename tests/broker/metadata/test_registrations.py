"""Rows of publishers and clients, and keys that the broker made for itself."""

import asyncio
from dataclasses import replace

import pytest

from ibrik_broker.metadata.clients import ClientRow, ClientRows
from ibrik_broker.metadata.database import Database
from ibrik_broker.metadata.keys import KEY_BYTES, lease_key
from ibrik_broker.metadata.publishers import PublisherRow, PublisherRows
from ibrik_broker.metadata.rows import NameTaken, StaleRevision
from tests.broker.metadata.conftest import CLUSTER

SHOP = PublisherRow(
    id="pub_1", topic="orders", name="shop", token_hash=bytes(range(32)), revision=1,
    created_ms=1, updated_ms=1,
)  # fmt: skip
LAPTOP = ClientRow(
    id="cli_1", name="laptop", description="Grüße", revision=1, created_ms=1, updated_ms=1
)


@pytest.fixture
def publishers(database: Database) -> PublisherRows:
    return PublisherRows(database)


@pytest.fixture
def clients(database: Database) -> ClientRows:
    return ClientRows(database)


async def test_a_publisher_is_read_as_it_was_written(publishers: PublisherRows) -> None:
    await publishers.insert(SHOP)
    assert await publishers.all() == [SHOP]
    assert await publishers.get(SHOP.id) == SHOP


async def test_a_publisher_has_its_name_within_its_topic(publishers: PublisherRows) -> None:
    await publishers.insert(SHOP)
    with pytest.raises(NameTaken):
        await publishers.insert(replace(SHOP, id="pub_2"))
    await publishers.insert(replace(SHOP, id="pub_2", topic="returns"))


async def test_of_two_rotations_of_one_token_one_wins(publishers: PublisherRows) -> None:
    await publishers.insert(SHOP)
    rotated = await publishers.rotate(SHOP, b"\xff" * 32, now_ms=2)
    assert rotated == replace(SHOP, token_hash=b"\xff" * 32, revision=2, updated_ms=2)
    with pytest.raises(StaleRevision):
        await publishers.rotate(SHOP, bytes(32), now_ms=3)
    assert await publishers.all() == [rotated]


async def test_with_a_topic_its_publishers_go(publishers: PublisherRows) -> None:
    elsewhere = replace(SHOP, id="pub_3", topic="returns")
    for row in (SHOP, replace(SHOP, id="pub_2", name="till"), elsewhere):
        await publishers.insert(row)
    assert await publishers.delete_topic("orders") == 2
    assert await publishers.all() == [elsewhere]
    await publishers.delete(elsewhere)
    assert await publishers.all() == []


async def test_a_client_is_read_as_it_was_written_and_changed(clients: ClientRows) -> None:
    await clients.insert(LAPTOP)
    with pytest.raises(NameTaken):
        await clients.insert(replace(LAPTOP, id="cli_2"))
    assert await clients.all() == [LAPTOP]
    changed = await clients.update(LAPTOP, now_ms=2, description="")
    assert await clients.get(LAPTOP.id) == changed
    await clients.delete(changed)
    assert await clients.all() == []


async def test_brokers_that_start_together_sign_leases_with_one_key(url: str) -> None:
    databases = [await Database.open(url, CLUSTER) for _ in range(4)]
    keys = await asyncio.gather(*map(lease_key, databases))
    assert len(set(keys)) == 1
    assert len(keys[0]) == KEY_BYTES
    for database in databases:
        await database.close()


async def test_the_key_of_leases_outlives_a_restart_and_is_no_one_elses(url: str) -> None:
    keys = []
    for _ in range(2):
        database = await Database.open(url, CLUSTER)
        keys.append(await lease_key(database))
        await database.close()
    assert keys[0] == keys[1]
    assert keys[0] != bytes(KEY_BYTES)
