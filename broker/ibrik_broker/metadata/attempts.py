"""The history of failed attempts: reading it, and keeping it small.

Rows are written with the rest of a flow's state, in `deliveries.py`. People read them; nothing is
decided by them.
"""

from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, delete, func, or_, select

from ibrik_broker.metadata.database import Database
from ibrik_broker.metadata.deliveries import ATTEMPTS, AttemptRow

KEPT_ROWS = 100_000
TRIM_ROWS = 1_000
"""Rows that one transaction deletes at most: those who write cursors wait for it."""

_ID = ATTEMPTS.c.id


class AttemptHistory:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def by_message(self, flow_id: str, partition: int, offset: int) -> list[AttemptRow]:
        """Oldest first."""
        query = (
            select(ATTEMPTS)
            .where(
                ATTEMPTS.c.flow_id == flow_id,
                ATTEMPTS.c.partition == partition,
                ATTEMPTS.c.offset == offset,
            )
            .order_by(_ID)
        )
        return await self._rows(query)

    async def by_flow(
        self, flow_id: str, limit: int, *, before_id: int | None = None
    ) -> list[AttemptRow]:
        """Newest first; `before_id` is the id of the last row of the page before."""
        conditions: list[ColumnElement[bool]] = [ATTEMPTS.c.flow_id == flow_id]
        if before_id is not None:
            conditions.append(before_id > _ID)
        query = select(ATTEMPTS).where(*conditions).order_by(_ID.desc()).limit(limit)
        return await self._rows(query)

    async def exhausted_count(self, flow_id: str) -> int:
        """How many messages had their last attempt, as far as it is still known."""
        query = select(func.count()).where(
            ATTEMPTS.c.flow_id == flow_id, ATTEMPTS.c.next_ms.is_(None)
        )
        count: int = await self._database.read(
            lambda connection: connection.execute(query).scalar_one()
        )
        return count

    async def by_channel(
        self,
        channel_id: str,
        limit: int,
        *,
        before_id: int | None = None,
        status: int | None = None,
        error: str | None = None,
        since_ms: int | None = None,
    ) -> list[AttemptRow]:
        """Newest first; `before_id` is the id of the last row of the page before."""
        conditions: list[ColumnElement[bool]] = [ATTEMPTS.c.channel_id == channel_id]
        if before_id is not None:
            conditions.append(before_id > _ID)
        if status is not None:
            conditions.append(ATTEMPTS.c.status == status)
        if error is not None:
            conditions.append(ATTEMPTS.c.error == error)
        if since_ms is not None:
            conditions.append(ATTEMPTS.c.at_ms >= since_ms)
        return await self._rows(
            select(ATTEMPTS).where(*conditions).order_by(_ID.desc()).limit(limit)
        )

    async def last_by_flow(self, flow_id: str) -> AttemptRow | None:
        query = select(ATTEMPTS).where(ATTEMPTS.c.flow_id == flow_id)
        rows = await self._rows(query.order_by(_ID.desc()).limit(1))
        return rows[0] if rows else None

    async def trim(self, older_than_ms: int, keep_rows: int = KEPT_ROWS) -> int:
        """Delete what is older, and the oldest above a number; returns how many went.

        In many small transactions: a cursor that is to be written waits for one of them at most.
        """
        newest_surplus = select(_ID).order_by(_ID.desc()).offset(keep_rows).limit(1)
        surplus_id = await self._database.read(
            lambda connection: connection.execute(newest_surplus).scalar_one_or_none() or 0
        )
        is_old = or_(surplus_id >= _ID, ATTEMPTS.c.at_ms < older_than_ms)
        deleted = 0
        while count := await self._database.write(
            lambda connection: _delete_oldest(connection, is_old)
        ):
            deleted += count
        return deleted

    async def _rows(self, query: Any) -> list[AttemptRow]:
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return [_from_database(row) for row in rows]


def _delete_oldest(connection: Connection, is_old: ColumnElement[bool]) -> int:
    """Look at the oldest rows by id, which is almost by time; how many of them were deleted."""
    oldest = select(_ID).order_by(_ID).limit(TRIM_ROWS).subquery()
    last_id = connection.execute(select(func.max(oldest.c.id))).scalar_one() or 0
    return connection.execute(delete(ATTEMPTS).where(last_id >= _ID, is_old)).rowcount


def _from_database(row: Row[Any]) -> AttemptRow:
    return AttemptRow(**row._mapping)
