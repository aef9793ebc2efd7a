"""The state of flows: written in groups, read back, never moved backwards by a late writer."""

import asyncio
from dataclasses import replace

import pytest

from ibrik_api.errors import Refusal
from ibrik_broker.metadata.attempts import AttemptHistory
from ibrik_broker.metadata.database import Database
from ibrik_broker.metadata.deliveries import (
    KEPT_GAPS,
    AttemptRow,
    Changes,
    CursorRow,
    DeliveryStore,
    FlowState,
    GapRow,
    RetryRow,
)

FLOW = "00000000-0000-4000-8000-00000000000a"
OTHER = "00000000-0000-4000-8000-00000000000b"
CURSOR = CursorRow(
    FLOW, 0, 2**40, settled=[3, 2, 1, 1], claimed=[[5, 9, 1, 1_700_000_000_000]], epoch=3,
    updated_ms=1_700_000_000_000, topic_id="00000000-0000-4000-8000-00000000000f",
)  # fmt: skip
RETRY = RetryRow(FLOW, 0, 7, attempts=2, first_ms=10, next_ms=500, lane="ab" * 16)
ATTEMPT = AttemptRow(
    FLOW, "channel", 0, 7, attempt=2, at_ms=20, duration_ms=5, status=503, error="status",
    detail="Service Unavailable", next_ms=500,
)  # fmt: skip
GAP = GapRow(FLOW, 0, 10, 20, count=10, reason="retention", at_ms=30)
ALL = Changes(cursors=[CURSOR], retries=[RETRY], attempts=[ATTEMPT], gaps=[GAP])


@pytest.fixture
def store(database: Database) -> DeliveryStore:
    return DeliveryStore(database)


@pytest.fixture
def history(database: Database) -> AttemptHistory:
    return AttemptHistory(database)


async def test_a_group_is_read_as_it_was_written(
    store: DeliveryStore, history: AttemptHistory
) -> None:
    assert await store.commit(ALL) == set()
    assert await store.load(FLOW) == FlowState([CURSOR], [RETRY], [GAP])
    [attempt] = await history.by_message(FLOW, 0, 7)
    assert replace(attempt, id=None) == ATTEMPT


async def test_a_flow_that_nobody_wrote_is_empty(store: DeliveryStore) -> None:
    await store.commit(ALL)
    assert await store.load(OTHER) == FlowState()


async def test_an_empty_group_is_no_trouble(store: DeliveryStore) -> None:
    assert await store.commit(Changes()) == set()
    assert await store.load_all() == {}


async def test_the_newest_row_of_a_cursor_and_of_a_retry_counts(store: DeliveryStore) -> None:
    moved = replace(CURSOR, next_offset=CURSOR.next_offset + 1, settled=[], claimed=[])
    again = RETRY._replace(attempts=3, next_ms=None)
    await store.commit(ALL)
    await store.commit(Changes(cursors=[CURSOR, moved], retries=[RETRY, again]))
    assert await store.load(FLOW) == FlowState([moved], [again], [GAP])


async def test_a_settled_message_is_parked_no_more(store: DeliveryStore) -> None:
    rows = [RETRY._replace(offset=offset) for offset in range(10)]
    await store.commit(Changes(cursors=[CURSOR], retries=rows))
    await store.commit(Changes(settled=[(FLOW, 0, offset) for offset in range(9)]))
    assert (await store.load(FLOW)).retries == rows[9:]


@pytest.mark.parametrize(
    "late",
    [
        replace(CURSOR, next_offset=CURSOR.next_offset - 1, settled=[]),
        replace(CURSOR, epoch=2, next_offset=CURSOR.next_offset + 9, settled=[]),
    ],
    ids=["older offset", "older epoch"],
)
async def test_a_late_writer_with_an_older_state_changes_nothing(
    store: DeliveryStore, history: AttemptHistory, late: CursorRow
) -> None:
    await store.commit(ALL)
    group = Changes(
        cursors=[late],
        retries=[RETRY._replace(offset=8)],
        settled=[(FLOW, 0, 7)],
        attempts=[replace(ATTEMPT, offset=8)],
        gaps=[replace(GAP, from_offset=21)],
    )
    assert await store.commit(group) == {(FLOW, 0)}
    assert await store.load(FLOW) == FlowState([CURSOR], [RETRY], [GAP])
    assert await history.by_message(FLOW, 0, 8) == []


async def test_a_late_writer_does_not_hold_back_the_others_of_its_group(
    store: DeliveryStore,
) -> None:
    await store.commit(ALL)
    late = replace(CURSOR, next_offset=0)
    other = replace(CURSOR, flow_id=OTHER, next_offset=5)
    second = replace(CURSOR, partition=1, next_offset=5)
    parked = RETRY._replace(flow_id=OTHER)
    assert await store.commit(Changes([other, late, second], [parked])) == {(FLOW, 0)}
    assert await store.load_all() == {
        FLOW: FlowState([CURSOR, second], [RETRY], [GAP]),
        OTHER: FlowState([other], [parked], []),
    }


async def test_a_newer_epoch_may_begin_below(store: DeliveryStore) -> None:
    await store.commit(ALL)
    newer = replace(CURSOR, epoch=4, next_offset=1)
    assert await store.commit(Changes(cursors=[newer])) == set()
    assert (await store.load(FLOW)).cursors == [newer]


async def test_a_seek_moves_backwards_and_parks_nothing(store: DeliveryStore) -> None:
    other = RETRY._replace(flow_id=OTHER)
    await store.commit(ALL)
    await store.commit(Changes(retries=[other, RETRY._replace(offset=8)]))
    back = replace(CURSOR, next_offset=1, epoch=4, settled=[], claimed=[])
    await store.rewind(FLOW, [back, replace(back, partition=1)])
    assert await store.load(FLOW) == FlowState([back, replace(back, partition=1)], [], [GAP])
    assert (await store.load(OTHER)).retries == [other]
    assert await store.commit(ALL) == {(FLOW, 0)}, "what was on its way when the seek came"


async def test_a_forgotten_flow_leaves_nothing(
    store: DeliveryStore, history: AttemptHistory
) -> None:
    await store.commit(ALL)
    await store.commit(Changes(cursors=[replace(CURSOR, flow_id=OTHER)]))
    await store.forget(FLOW)
    assert list(await store.load_all()) == [OTHER]
    assert await history.by_message(FLOW, 0, 7) == []


async def test_parked_messages_come_in_the_order_they_are_due(store: DeliveryStore) -> None:
    due = {4: 300, 1: None, 3: 100, 2: 200, 5: 100}
    rows = [RETRY._replace(offset=offset, next_ms=next_ms) for offset, next_ms in due.items()]
    await store.commit(Changes(retries=rows))
    assert [row.offset for row in (await store.load(FLOW)).retries] == [3, 5, 2, 4, 1]


async def test_a_gap_that_grew_is_one_gap_and_the_oldest_of_many_go(store: DeliveryStore) -> None:
    await store.commit(Changes(gaps=[GAP, replace(GAP, to_offset=30, count=20)]))
    assert (await store.load(FLOW)).gaps == [replace(GAP, to_offset=30, count=20)]
    gaps = [replace(GAP, from_offset=100 * n, at_ms=100 * n) for n in range(1, KEPT_GAPS + 3)]
    elsewhere = replace(GAP, partition=1)
    await store.commit(Changes(gaps=[*gaps, elsewhere]))
    assert (await store.load(FLOW)).gaps == [elsewhere, *gaps[2:]]


async def test_texts_of_strangers_never_hold_back_a_group(
    store: DeliveryStore, history: AttemptHistory
) -> None:
    rude = replace(ATTEMPT, error="e" * 5_000, detail="a\0b\udcff" + "ä" * 5_000)
    await store.commit(replace(ALL, attempts=[rude]))
    [attempt] = await history.by_message(FLOW, 0, 7)
    assert attempt.detail == "a\ufffdb?" + "ä" * 1_020
    assert attempt.error == "e" * 64


async def test_groups_are_written_in_the_order_they_came(store: DeliveryStore) -> None:
    groups = [Changes(cursors=[replace(CURSOR, next_offset=n, updated_ms=n)]) for n in range(30)]
    assert await asyncio.gather(*map(store.commit, groups)) == [set()] * 30
    assert (await store.load(FLOW)).cursors == groups[-1].cursors


async def test_a_group_is_written_whole_or_not_at_all(
    store: DeliveryStore, database: Database
) -> None:
    await store.commit(Changes(cursors=[CURSOR]))
    moved = replace(CURSOR, next_offset=CURSOR.next_offset + 1)
    broken = replace(GAP, to_offset=2**70)
    with pytest.raises((OverflowError, Refusal)):
        await store.commit(Changes(cursors=[moved], retries=[RETRY], gaps=[broken]))
    assert await store.load(FLOW) == FlowState([CURSOR])


async def test_ten_thousand_settled_ranges_and_claims_are_one_row(store: DeliveryStore) -> None:
    long = replace(CURSOR, settled=[1] * 20_000, claimed=[[n, n + 1, 1, n] for n in range(10_000)])
    await store.commit(Changes(cursors=[long]))
    assert (await store.load(FLOW)).cursors == [long]
