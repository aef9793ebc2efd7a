"""The rows of publishers: who may publish to a topic that has `publishers: registered`.

A token is known by its SHA-256 only; `ibrik_broker.registrations` makes and checks tokens.
"""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, delete

from ibrik_broker.metadata.database import Database
from ibrik_broker.metadata.models import PublisherTable
from ibrik_broker.metadata.rows import RevisedRow, RevisedRows, table_of


@dataclass(frozen=True, slots=True, kw_only=True)
class PublisherRow(RevisedRow):
    topic: str
    token_hash: bytes
    """SHA-256 of the token, 32 bytes."""


class PublisherRows(RevisedRows[PublisherRow]):
    def __init__(self, database: Database) -> None:
        super().__init__(database, table_of(PublisherTable))

    async def rotate(self, row: PublisherRow, token_hash: bytes, *, now_ms: int) -> PublisherRow:
        """Replace the token; raises StaleRevision."""
        return await self.update(row, now_ms=now_ms, token_hash=token_hash)

    async def delete_topic(self, topic: str) -> int:
        """Delete all publishers of a topic; how many there were."""
        async with self._database.transaction() as connection:
            result = await connection.execute(
                delete(self._table).where(self._table.c.topic == topic)
            )
        return int(result.rowcount)

    def _read(self, row: Row[Any]) -> PublisherRow:
        return PublisherRow(**row._mapping)
