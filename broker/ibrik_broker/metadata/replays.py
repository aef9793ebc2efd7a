"""The rows of replays and redrives: what was asked for, and what became of it.

How far one came is in `deliveries.py`, under the replay's id: it is a flow like a subscription.
"""

from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from sqlalchemy import Row, delete, insert, select, update

from ibrik_broker.metadata.database import Database
from ibrik_broker.metadata.models import ReplayTable
from ibrik_broker.metadata.rows import StaleRevision, table_of

REPLAYS = table_of(ReplayTable)


class ReplayKind(StrEnum):
    REPLAY = "replay"
    REDRIVE = "redrive"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRow:
    id: str
    kind: ReplayKind
    topic: str
    subscription_id: str | None
    wish: dict[str, Any]
    """Source ranges, target, rate, filter: as resolved when it was asked for."""
    state: str
    delivered: int = 0
    failed: int = 0
    filtered: int = 0
    missing: int = 0
    detail: str = ""
    created_ms: int
    updated_ms: int


class ReplayRows:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def all(self) -> list[ReplayRow]:
        """Oldest first."""
        async with self._database.transaction() as connection:
            rows = await connection.execute(
                select(REPLAYS).order_by(REPLAYS.c.created_ms, REPLAYS.c.id)
            )
            return [_from_database(row) for row in rows]

    async def get(self, replay_id: str) -> ReplayRow | None:
        async with self._database.transaction() as connection:
            rows = await connection.execute(select(REPLAYS).where(REPLAYS.c.id == replay_id))
            row = rows.one_or_none()
            return None if row is None else _from_database(row)

    async def insert(self, row: ReplayRow) -> ReplayRow:
        async with self._database.transaction() as connection:
            await connection.execute(insert(REPLAYS).values(**asdict(row)))
        return row

    async def update(self, row: ReplayRow, *, now_ms: int, **changes: Any) -> ReplayRow:
        """Write the named columns only: progress never undoes a state, nor a state progress.

        Raises StaleRevision when the row is gone.
        """
        changes["updated_ms"] = now_ms
        changed = replace(row, **changes)
        async with self._database.transaction() as connection:
            result = await connection.execute(
                update(REPLAYS).where(REPLAYS.c.id == row.id).values(**changes)
            )
        if result.rowcount != 1:
            raise StaleRevision(row.id)
        return changed

    async def delete(self, replay_id: str) -> None:
        """Forget it; a repeat changes nothing."""
        async with self._database.transaction() as connection:
            await connection.execute(delete(REPLAYS).where(REPLAYS.c.id == replay_id))


def _from_database(row: Row[Any]) -> ReplayRow:
    values = dict(row._mapping)
    values["kind"] = ReplayKind(values["kind"])
    return ReplayRow(**values)
