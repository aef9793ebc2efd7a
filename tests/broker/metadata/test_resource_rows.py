"""Rows of channels and subscriptions: two tables, one way to change them, and halts."""

import asyncio
from dataclasses import replace

import pytest

from ibrik_broker.metadata.database import Database
from ibrik_broker.metadata.resources import ResourceKind, ResourceRow, ResourceRows, ResourceState
from ibrik_broker.metadata.rows import NameTaken, Origin, StaleRevision

BILLING = ResourceRow(
    id="00000000-0000-4000-8000-000000000001",
    namespace="default",
    name="billing",
    resource_uid=None,
    origin=Origin.RESOURCE,
    generation=2**40,
    spec={"http": {"url": "https://billing/ä"}, "limits": {"rate": 2**53 - 1}},
    state=ResourceState.READY,
    halt=None,
    revision=1,
    created_ms=1_700_000_000_000,
    updated_ms=1_700_000_000_000,
)
OTHER_ID = "00000000-0000-4000-8000-000000000002"


@pytest.fixture(params=list(ResourceKind))
def rows(request: pytest.FixtureRequest, database: Database) -> ResourceRows:
    return ResourceRows(database, request.param)


async def test_a_row_is_read_as_it_was_written(rows: ResourceRows) -> None:
    await rows.insert(BILLING)
    assert await rows.get(BILLING.id) == BILLING
    assert await rows.all() == [BILLING]
    assert await rows.get(OTHER_ID) is None


async def test_channels_and_subscriptions_do_not_meet(database: Database) -> None:
    channels = ResourceRows(database, ResourceKind.CHANNEL)
    subscriptions = ResourceRows(database, ResourceKind.SUBSCRIPTION)
    await channels.insert(BILLING)
    await subscriptions.insert(replace(BILLING, spec={}))
    assert await channels.all() == [BILLING]
    assert await subscriptions.all() == [replace(BILLING, spec={})]


async def test_a_change_raises_the_revision_and_keeps_the_rest(rows: ResourceRows) -> None:
    await rows.insert(BILLING)
    changed = await rows.update(BILLING, now_ms=9, state=ResourceState.DETACHED)
    assert changed == replace(BILLING, state=ResourceState.DETACHED, revision=2, updated_ms=9)
    assert await rows.get(BILLING.id) == changed


async def test_of_two_changes_to_one_revision_one_wins(rows: ResourceRows) -> None:
    await rows.insert(BILLING)
    results = await asyncio.gather(
        *(rows.update(BILLING, now_ms=1, generation=n) for n in range(5)), return_exceptions=True
    )
    assert sum(isinstance(result, ResourceRow) for result in results) == 1
    assert sum(isinstance(result, StaleRevision) for result in results) == 4


async def test_a_name_belongs_to_one_row_of_a_namespace(rows: ResourceRows) -> None:
    elsewhere = replace(BILLING, id=OTHER_ID, namespace="prod")
    await rows.insert(BILLING)
    with pytest.raises(NameTaken):
        await rows.insert(replace(BILLING, id=OTHER_ID))
    await rows.insert(elsewhere)
    with pytest.raises(NameTaken):
        await rows.update(elsewhere, now_ms=1, namespace="default")
    assert await rows.all() == [BILLING, elsewhere]


async def test_a_row_that_changed_is_not_deleted(rows: ResourceRows) -> None:
    await rows.insert(BILLING)
    changed = await rows.update(BILLING, now_ms=1, generation=1)
    with pytest.raises(StaleRevision):
        await rows.delete(BILLING)
    await rows.delete(changed)
    assert await rows.all() == []


async def test_a_halt_changes_the_revision_and_not_the_generation(rows: ResourceRows) -> None:
    await rows.insert(BILLING)
    halted = await rows.set_halt(BILLING.id, "gone", now_ms=9)
    assert halted == replace(BILLING, halt="gone", revision=2, updated_ms=9)
    assert await rows.get(BILLING.id) == halted
    with pytest.raises(StaleRevision):
        await rows.update(BILLING, now_ms=10, generation=1)
    assert (await rows.set_halt(BILLING.id, None, now_ms=11)).halt is None


async def test_a_row_that_is_gone_is_not_halted(rows: ResourceRows) -> None:
    with pytest.raises(StaleRevision):
        await rows.set_halt(OTHER_ID, "paused", now_ms=1)
