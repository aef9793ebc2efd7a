"""The brokers of a pool, and whose cluster they join."""

import asyncio

import pytest

from ibrik_api.errors import Refusal
from ibrik_broker.metadata.brokers import BrokerRow, BrokerRows
from ibrik_broker.metadata.database import Database
from ibrik_broker.metadata.keys import lease_key, pool_key
from tests.broker.metadata.conftest import CLUSTER

FIRST = BrokerRow(
    id="7d17946a-9a18-4514-abf6-3d9d8f745ba5",
    name="ibrik-0",
    host="ibrik-0.ibrik",
    http_port=8080,
    admin_port=8081,
    size_bytes=0,
    started_ms=1,
    updated_ms=1,
)


async def test_a_broker_writes_its_row_again_and_again(database: Database) -> None:
    rows = BrokerRows(database)
    await rows.put(FIRST)
    moved = BrokerRow(**{**_values(FIRST), "host": "10.0.0.7", "updated_ms": 2})
    await rows.put(moved)
    assert await rows.all() == [moved]


async def test_brokers_that_start_together_on_an_empty_database_agree_on_a_cluster(
    url: str,
) -> None:
    opened = await asyncio.gather(*(Database.open(url, None) for _ in range(3)))
    assert len({database.cluster_id for database in opened}) == 1
    for database in opened:
        await database.close()


async def test_a_new_broker_takes_the_cluster_of_the_database(url: str, database: Database) -> None:
    joined = await Database.open(url, None)
    assert joined.cluster_id == CLUSTER
    await joined.close()


async def test_a_broker_of_another_cluster_is_refused_after_others_joined(
    url: str, database: Database
) -> None:
    with pytest.raises(Refusal, match="belongs to cluster"):
        await Database.open(url, "3f0c5a62-0000-4000-8000-000000000009")


async def test_the_brokers_of_a_database_share_their_keys(url: str, database: Database) -> None:
    other = await Database.open(url, None)
    assert await pool_key(other) == await pool_key(database) != await lease_key(database)
    await other.close()


def _values(row: BrokerRow) -> dict[str, object]:
    return {name: getattr(row, name) for name in BrokerRow.__slots__}
