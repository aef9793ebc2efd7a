"""Rows of replays: what was asked for stays, progress and state are written apart."""

import asyncio
from dataclasses import replace

import pytest

from ibrik_broker.metadata.database import Database
from ibrik_broker.metadata.replays import ReplayKind, ReplayRow, ReplayRows
from ibrik_broker.metadata.rows import StaleRevision

REPLAY = ReplayRow(
    id="00000000-0000-4000-8000-000000000001",
    kind=ReplayKind.REPLAY,
    topic="orders",
    subscription_id=None,
    wish={"from": [0, 5], "to": [10, 2**53], "filter": "key == 'ä'"},
    state="running",
    created_ms=1,
    updated_ms=1,
)
REDRIVE = replace(REPLAY, id="another", kind=ReplayKind.REDRIVE, subscription_id="s", created_ms=2)


@pytest.fixture
def replays(database: Database) -> ReplayRows:
    return ReplayRows(database)


async def test_replays_are_read_as_they_were_written_oldest_first(replays: ReplayRows) -> None:
    await replays.insert(REDRIVE)
    await replays.insert(REPLAY)
    assert await replays.all() == [REPLAY, REDRIVE]
    assert await replays.get(REDRIVE.id) == REDRIVE
    assert await replays.get("nobody") is None


async def test_progress_and_state_do_not_undo_each_other(replays: ReplayRows) -> None:
    await replays.insert(REPLAY)
    await asyncio.gather(
        replays.update(REPLAY, now_ms=5, delivered=7, failed=1),
        replays.update(REPLAY, now_ms=5, state="cancelled", detail="by ops"),
    )
    assert await replays.get(REPLAY.id) == replace(
        REPLAY, delivered=7, failed=1, state="cancelled", detail="by ops", updated_ms=5
    )


async def test_a_replay_that_is_gone_is_not_changed(replays: ReplayRows) -> None:
    await replays.insert(REPLAY)
    for _ in range(2):
        await replays.delete(REPLAY.id)
    with pytest.raises(StaleRevision):
        await replays.update(REPLAY, now_ms=2, delivered=1)
    assert await replays.all() == []
