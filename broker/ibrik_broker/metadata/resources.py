"""The rows of channels and subscriptions: what somebody wishes, who it was, and its revision.

How far a subscription came is not here but in `deliveries.py`, under the same id.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import Row, update

from ibrik_broker.metadata.database import Database
from ibrik_broker.metadata.models import ChannelTable, SubscriptionTable
from ibrik_broker.metadata.rows import Origin, RevisedRow, RevisedRows, StaleRevision, table_of


class ResourceKind(StrEnum):
    CHANNEL = "channel"
    SUBSCRIPTION = "subscription"


class ResourceState(StrEnum):
    READY = "ready"
    DETACHED = "detached"
    """Deleted under Retain: id and cursors stay, nothing is delivered."""


TABLES = {
    ResourceKind.CHANNEL: table_of(ChannelTable),
    ResourceKind.SUBSCRIPTION: table_of(SubscriptionTable),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceRow(RevisedRow):
    """A channel or a subscription as stored; `spec` is the document of its spec."""

    namespace: str
    resource_uid: str | None
    origin: Origin
    generation: int
    spec: dict[str, Any]
    state: ResourceState
    halt: str | None
    """Why nothing is delivered although the wish says so: paused, gone, gap. None: it is."""


class ResourceRows(RevisedRows[ResourceRow]):
    def __init__(self, database: Database, kind: ResourceKind) -> None:
        super().__init__(database, TABLES[kind])

    async def set_halt(self, row_id: str, halt: str | None, now_ms: int) -> ResourceRow:
        """Halt, or resume with None, whatever the revision is: the wish does not change.

        Raises StaleRevision when the row is gone.
        """
        table = self._table
        statement = (
            update(table)
            .where(table.c.id == row_id)
            .values(halt=halt, revision=table.c.revision + 1, updated_ms=now_ms)
            .returning(*table.c)
        )
        async with self._database.transaction() as connection:
            row = (await connection.execute(statement)).one_or_none()
        if row is None:
            raise StaleRevision(row_id)
        return self._read(row)

    def _read(self, row: Row[Any]) -> ResourceRow:
        values = dict(row._mapping)
        values["origin"] = Origin(values["origin"])
        values["state"] = ResourceState(values["state"])
        return ResourceRow(**values)
