"""Rows with a revision: insert, read, compare-and-swap, delete. One transaction each.

What topics, channels, subscriptions, publishers and clients have in common; their repositories
(`topics.py`, `resources.py`, `publishers.py`, `clients.py`) say which table and which value.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any, Generic, NamedTuple, TypeVar

from sqlalchemy import Connection, Row, Table, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from ibrik_broker.metadata.database import Database


class Origin(StrEnum):
    API = "api"
    RESOURCE = "resource"


class NameTaken(Exception):
    """Another row has this name or this resource identity."""


class StaleRevision(Exception):
    """The row changed, or went away, since it was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisedRow:
    """A row as stored; `revision` is the ETag."""

    id: str
    name: str
    revision: int
    created_ms: int
    updated_ms: int


class Mark(NamedTuple):
    """The same as before: nobody changed any row of a table in between."""

    rows: int
    revisions: int | None
    updated_ms: int | None


IDS_AT_ONCE = 500
"""Of one query; a database takes a bounded number of parameters."""

Value = TypeVar("Value", bound=RevisedRow)


class RevisedRows(Generic[Value]):
    def __init__(self, database: Database, table: Table) -> None:
        self._database = database
        self._table = table
        self._insert = insert(table)
        """Built once: what SQLAlchemy compiles for it is found again by looking at the object."""

    def _read(self, row: Row[Any]) -> Value:
        raise NotImplementedError

    async def all(self) -> list[Value]:
        """In order of their names."""
        async with self._database.transaction() as connection:
            rows = await connection.execute(
                select(self._table).order_by(self._table.c.name, self._table.c.id)
            )
            return [self._read(row) for row in rows]

    async def get(self, row_id: str) -> Value | None:
        async with self._database.transaction() as connection:
            rows = await connection.execute(select(self._table).where(self._table.c.id == row_id))
            row = rows.one_or_none()
            return None if row is None else self._read(row)

    async def mark(self) -> Mark:
        """What moves with every change of any row; one cheap query."""
        columns = self._table.c
        statement = select(func.count(), func.sum(columns.revision), func.max(columns.updated_ms))
        async with self._database.transaction() as connection:
            return Mark(*(await connection.execute(statement)).one())

    async def revisions(self) -> dict[str, int]:
        """Of all rows, by id."""
        statement = select(self._table.c.id, self._table.c.revision)
        async with self._database.transaction() as connection:
            rows = await connection.execute(statement)
            return {row.id: row.revision for row in rows}

    async def some(self, ids: Sequence[str]) -> list[Value]:
        """Those of these ids that are there."""
        found = []
        async with self._database.transaction() as connection:
            for first in range(0, len(ids), IDS_AT_ONCE):
                some = self._table.c.id.in_(ids[first : first + IDS_AT_ONCE])
                rows = await connection.execute(select(self._table).where(some))
                found += [self._read(row) for row in rows]
        return found

    async def insert(self, row: Value) -> Value:
        """Raises NameTaken."""
        values = {column.name: getattr(row, column.name) for column in self._table.c}

        def work(connection: Connection) -> None:
            connection.execute(self._insert, values)

        try:
            await self._database.write(work)
        except IntegrityError as error:
            raise NameTaken(row.name) from error
        return row

    async def update(self, row: Value, *, now_ms: int, **changes: Any) -> Value:
        """Change the row that `row` still is; raises StaleRevision, or NameTaken."""
        changed = replace(row, **changes, revision=row.revision + 1, updated_ms=now_ms)
        try:
            async with self._database.transaction() as connection:
                result = await connection.execute(
                    update(self._table).where(*self._is_still(row)).values(**asdict(changed))
                )
        except IntegrityError as error:
            raise NameTaken(changed.name) from error
        if result.rowcount != 1:
            raise StaleRevision(row.name)
        return changed

    async def delete(self, row: Value) -> None:
        """Raises StaleRevision."""
        async with self._database.transaction() as connection:
            result = await connection.execute(delete(self._table).where(*self._is_still(row)))
        if result.rowcount != 1:
            raise StaleRevision(row.name)

    def _is_still(self, row: Value) -> tuple[Any, Any]:
        return self._table.c.id == row.id, self._table.c.revision == row.revision


def table_of(model: Any) -> Table:
    """The table of a declarative model."""
    table: Table = model.__table__
    return table
