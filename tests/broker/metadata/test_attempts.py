"""The history of attempts: by message, by channel in pages, and trimmed by age and number."""

from dataclasses import replace

import pytest

from ibrik_broker.metadata.attempts import TRIM_ROWS, AttemptHistory
from ibrik_broker.metadata.database import Database
from ibrik_broker.metadata.deliveries import AttemptRow, Changes, DeliveryStore

FLOW = "00000000-0000-4000-8000-00000000000a"
CHANNEL = "00000000-0000-4000-8000-00000000000c"
FIRST = AttemptRow(
    FLOW, CHANNEL, 0, 7, attempt=1, at_ms=100, duration_ms=5, status=503, error="status",
    detail="busy", next_ms=600,
)  # fmt: skip
SECOND = replace(FIRST, attempt=2, at_ms=600, status=None, error="timeout", next_ms=None)
ELSEWHERE = replace(FIRST, flow_id="another", channel_id=None, at_ms=700)
UNKNOWN = "nobody"


@pytest.fixture
def history(database: Database) -> AttemptHistory:
    return AttemptHistory(database)


async def write(database: Database, *rows: AttemptRow) -> None:
    await DeliveryStore(database).commit(Changes(attempts=list(rows)))


def without_id(row: AttemptRow | None) -> AttemptRow:
    assert row is not None
    assert row.id is not None
    return replace(row, id=None)


async def test_the_attempts_of_a_message_are_read_oldest_first(
    database: Database, history: AttemptHistory
) -> None:
    await write(database, FIRST, replace(FIRST, offset=8), replace(FIRST, partition=1), ELSEWHERE)
    await write(database, SECOND)
    rows = await history.by_message(FLOW, 0, 7)
    assert [without_id(row) for row in rows] == [FIRST, SECOND]
    assert await history.by_message(FLOW, 0, 9) == []


async def test_the_attempts_of_a_channel_come_in_pages_newest_first(
    database: Database, history: AttemptHistory
) -> None:
    await write(database, *(replace(FIRST, offset=offset) for offset in range(5)), ELSEWHERE)
    offsets = []
    before_id = None
    while page := await history.by_channel(CHANNEL, 2, before_id=before_id):
        offsets.append([row.offset for row in page])
        before_id = page[-1].id
    assert offsets == [[4, 3], [2, 1], [0]]


async def test_the_attempts_of_a_channel_can_be_narrowed(
    database: Database, history: AttemptHistory
) -> None:
    await write(database, FIRST, SECOND)
    for narrow, expected in [
        ({"status": 503}, [FIRST]),
        ({"error": "timeout"}, [SECOND]),
        ({"since_ms": 101}, [SECOND]),
        ({"status": 503, "since_ms": 101}, []),
        ({}, [SECOND, FIRST]),
    ]:
        rows = await history.by_channel(CHANNEL, 10, **narrow)
        assert [without_id(row) for row in rows] == expected


async def test_the_last_attempt_of_a_flow_is_found(
    database: Database, history: AttemptHistory
) -> None:
    await write(database, FIRST, replace(SECOND, partition=3), ELSEWHERE)
    assert without_id(await history.last_by_flow(FLOW)) == replace(SECOND, partition=3)
    assert await history.last_by_flow(UNKNOWN) is None


async def test_old_attempts_go(database: Database, history: AttemptHistory) -> None:
    await write(database, FIRST, SECOND, ELSEWHERE)
    assert await history.trim(older_than_ms=600) == 1
    assert [row.at_ms for row in await history.by_message(FLOW, 0, 7)] == [600]
    assert await history.trim(older_than_ms=600) == 0


async def test_of_too_many_attempts_the_oldest_go(
    database: Database, history: AttemptHistory
) -> None:
    rows = [replace(FIRST, attempt=n) for n in range(2 * TRIM_ROWS + 10)]
    await write(database, *rows)
    assert await history.trim(older_than_ms=0, keep_rows=7) == len(rows) - 7
    kept = await history.by_message(FLOW, 0, 7)
    assert [without_id(row) for row in kept] == rows[-7:]


async def test_trimming_an_empty_history_is_no_trouble(history: AttemptHistory) -> None:
    assert await history.trim(older_than_ms=2**60, keep_rows=0) == 0
