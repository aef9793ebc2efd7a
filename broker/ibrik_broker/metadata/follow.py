"""Follows the rows of a table that other brokers change: what is new, what changed, what is gone.

Most looks find nothing and cost one small query. To be called while nobody here changes rows of the
table: a row of this broker's own that is not in memory yet would look like somebody else's.
"""

from collections.abc import Mapping
from typing import Generic, NamedTuple

from ibrik_broker.metadata.rows import Mark, RevisedRows, Value


class News(NamedTuple, Generic[Value]):
    changed: list[Value]
    """Rows that are new, or newer than known."""
    gone: list[str]
    """Ids of rows that are not there any more."""


class Follower(Generic[Value]):
    def __init__(self, rows: RevisedRows[Value]) -> None:
        self._rows = rows
        self._mark: Mark | None = None

    async def look(self, known: Mapping[str, int]) -> News[Value]:
        """What the database holds and `known` (revisions by id) does not, and the other way round.

        Raises Refusal `metadata-unavailable`.
        """
        mark = await self._rows.mark()
        if mark == self._mark:
            return News([], [])
        held = await self._rows.revisions()
        wanted = [row_id for row_id, revision in held.items() if known.get(row_id) != revision]
        news = News(
            await self._rows.some(wanted), [row_id for row_id in known if row_id not in held]
        )
        self._mark = mark
        return news
