"""The rows of a pool's brokers: who there is, how to reach them, how full they are.

A broker writes its own row only; whether one is alive is read from the time in its row.
"""

from dataclasses import asdict, dataclass

from sqlalchemy import select

from ibrik_broker.metadata.database import Database
from ibrik_broker.metadata.models import BrokerTable
from ibrik_broker.metadata.rows import table_of

BROKERS = table_of(BrokerTable)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRow:
    id: str
    """The id of its volume."""
    name: str
    host: str
    http_port: int
    admin_port: int
    size_bytes: int
    """Of all its topics."""
    started_ms: int
    updated_ms: int


class BrokerRows:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def all(self) -> list[BrokerRow]:
        """In order of their names."""
        async with self._database.transaction() as connection:
            rows = await connection.execute(select(BROKERS).order_by(BROKERS.c.name, BROKERS.c.id))
            return [BrokerRow(**row._mapping) for row in rows]

    async def put(self, row: BrokerRow) -> None:
        """Make the row be so, whether it is there or not."""
        values = asdict(row)
        statement = self._database.insert(BROKERS).values(**values)
        statement = statement.on_conflict_do_update(index_elements=[BROKERS.c.id], set_=values)
        async with self._database.transaction() as connection:
            await connection.execute(statement)
