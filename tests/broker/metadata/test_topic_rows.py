"""Rows of topics: what is written is read, and no one overwrites what they did not read."""

import asyncio
from dataclasses import replace

import pytest

from ibrik_broker.metadata.rows import NameTaken, Origin, StaleRevision
from ibrik_broker.metadata.topics import TopicRow, TopicRows, TopicState

ORDERS = TopicRow(
    id="00000000-0000-4000-8000-000000000001",
    name="orders",
    namespace="default",
    resource_name="orders",
    resource_uid=None,
    origin=Origin.API,
    generation=2**40,
    spec={"partitions": 4, "schema": {"subject": "ä"}},
    state=TopicState.CREATING,
    revision=1,
    created_ms=1_700_000_000_000,
    updated_ms=1_700_000_000_000,
)
OTHER_ID = "00000000-0000-4000-8000-000000000002"


async def test_a_row_is_read_as_it_was_written(rows: TopicRows) -> None:
    await rows.insert(ORDERS)
    assert await rows.get(ORDERS.id) == ORDERS
    assert await rows.all() == [ORDERS]
    assert await rows.get(OTHER_ID) is None


async def test_a_change_raises_the_revision_and_keeps_the_rest(rows: TopicRows) -> None:
    await rows.insert(ORDERS)
    changed = await rows.update(ORDERS, now_ms=1_700_000_000_009, state=TopicState.READY)
    assert changed == replace(
        ORDERS, state=TopicState.READY, revision=2, updated_ms=1_700_000_000_009
    )
    assert await rows.get(ORDERS.id) == changed


async def test_of_two_changes_to_one_revision_one_wins(rows: TopicRows) -> None:
    await rows.insert(ORDERS)
    results = await asyncio.gather(
        *(rows.update(ORDERS, now_ms=1, generation=n) for n in range(5)), return_exceptions=True
    )
    assert sum(isinstance(result, TopicRow) for result in results) == 1
    assert sum(isinstance(result, StaleRevision) for result in results) == 4


@pytest.mark.parametrize(
    "twin",
    [
        replace(ORDERS, id=OTHER_ID, resource_name="other"),
        replace(ORDERS, id=OTHER_ID, name="other"),
    ],
    ids=["topic name", "identity"],
)
async def test_a_name_belongs_to_one_row(rows: TopicRows, twin: TopicRow) -> None:
    await rows.insert(ORDERS)
    with pytest.raises(NameTaken):
        await rows.insert(twin)
    assert await rows.all() == [ORDERS]


async def test_a_row_that_changed_is_not_deleted(rows: TopicRows) -> None:
    await rows.insert(ORDERS)
    changed = await rows.update(ORDERS, now_ms=1, state=TopicState.READY)
    with pytest.raises(StaleRevision):
        await rows.delete(ORDERS)
    await rows.delete(changed)
    assert await rows.all() == []
