"""The rows of topics: insert, read, compare-and-swap, delete. One transaction each.

Rows are values here; what a state means and which change is allowed is the registry's business.
"""

from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from sqlalchemy import Row, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from ibrik_broker.metadata.database import Database
from ibrik_broker.metadata.models import TopicTable
from ibrik_broker.metadata.rows import NameTaken, Origin, StaleRevision


class TopicState(StrEnum):
    CREATING = "creating"
    """The row is there, the folder may be."""
    READY = "ready"
    DETACHED = "detached"
    """Deleted under Retain: id and data stay, nothing is served."""
    DELETING = "deleting"
    """The folder is being removed, or already gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRow:
    """A topic as stored; `spec` is the document of a TopicSpec, `revision` the ETag."""

    id: str
    name: str
    namespace: str
    resource_name: str
    resource_uid: str | None
    origin: Origin
    generation: int
    spec: dict[str, Any]
    state: TopicState
    revision: int
    created_ms: int
    updated_ms: int


class TopicRows:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def all(self) -> list[TopicRow]:
        async with self._database.transaction() as connection:
            rows = await connection.execute(select(TopicTable.__table__).order_by(TopicTable.name))
            return [_from_database(row) for row in rows]

    async def get(self, topic_id: str) -> TopicRow | None:
        async with self._database.transaction() as connection:
            rows = await connection.execute(
                select(TopicTable.__table__).where(TopicTable.id == topic_id)
            )
            row = rows.one_or_none()
            return None if row is None else _from_database(row)

    async def insert(self, row: TopicRow) -> TopicRow:
        """Raises NameTaken."""
        try:
            async with self._database.transaction() as connection:
                await connection.execute(insert(TopicTable).values(**asdict(row)))
        except IntegrityError as error:
            raise NameTaken(row.name) from error
        return row

    async def update(self, row: TopicRow, *, now_ms: int, **changes: Any) -> TopicRow:
        """Change the row that `row` still is; raises StaleRevision, or NameTaken."""
        changed = replace(row, **changes, revision=row.revision + 1, updated_ms=now_ms)
        try:
            async with self._database.transaction() as connection:
                result = await connection.execute(
                    update(TopicTable)
                    .where(TopicTable.id == row.id, TopicTable.revision == row.revision)
                    .values(**asdict(changed))
                )
        except IntegrityError as error:
            raise NameTaken(changed.name) from error
        if result.rowcount != 1:
            raise StaleRevision(row.name)
        return changed

    async def delete(self, row: TopicRow) -> None:
        """Raises StaleRevision."""
        async with self._database.transaction() as connection:
            result = await connection.execute(
                delete(TopicTable).where(
                    TopicTable.id == row.id, TopicTable.revision == row.revision
                )
            )
        if result.rowcount != 1:
            raise StaleRevision(row.name)


def _from_database(row: Row[Any]) -> TopicRow:
    values = dict(row._mapping)
    values["origin"] = Origin(values["origin"])
    values["state"] = TopicState(values["state"])
    return TopicRow(**values)
