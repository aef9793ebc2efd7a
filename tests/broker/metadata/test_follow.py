"""Following what other brokers change in a table."""

import pytest

from ibrik_api.errors import Refusal
from ibrik_broker.metadata.database import Database
from ibrik_broker.metadata.follow import Follower
from ibrik_broker.metadata.topics import TopicRows
from tests.broker.metadata.test_topic_rows import ORDERS


async def test_what_is_new_is_told_until_it_is_known(rows: TopicRows) -> None:
    follower = Follower(rows)
    assert await follower.look({}) == ([], [])
    await rows.insert(ORDERS)
    assert await follower.look({}) == ([ORDERS], [])
    assert await follower.look({ORDERS.id: 1}) == ([], [])


async def test_a_change_and_a_removal_are_told(rows: TopicRows) -> None:
    follower = Follower(rows)
    await rows.insert(ORDERS)
    await follower.look({})
    changed = await rows.update(ORDERS, now_ms=2, generation=2)
    assert await follower.look({ORDERS.id: 1}) == ([changed], [])
    await rows.delete(changed)
    assert await follower.look({ORDERS.id: 2}) == ([], [ORDERS.id])


async def test_a_row_that_takes_the_place_of_another_is_told(rows: TopicRows) -> None:
    follower = Follower(rows)
    await rows.insert(ORDERS)
    await follower.look({})
    await rows.delete(ORDERS)
    other = type(ORDERS)(**{**_values(ORDERS), "id": "7d17946a-9a18-4514-abf6-3d9d8f745bff"})
    other = type(ORDERS)(**{**_values(other), "updated_ms": ORDERS.updated_ms + 1})
    await rows.insert(other)
    assert await follower.look({ORDERS.id: 1}) == ([other], [ORDERS.id])


async def test_a_database_that_is_away_is_a_refusal_and_nothing_is_gone(
    rows: TopicRows, database: Database
) -> None:
    follower = Follower(rows)
    await rows.insert(ORDERS)

    async def away() -> None:
        raise Refusal("metadata-unavailable", "It is away.")

    rows.mark = away  # type: ignore[method-assign, assignment]
    with pytest.raises(Refusal):
        await follower.look({ORDERS.id: 1})


def _values(row: object) -> dict[str, object]:
    names = [name for kind in type(row).__mro__ for name in getattr(kind, "__slots__", ())]
    return {name: getattr(row, name) for name in names}
