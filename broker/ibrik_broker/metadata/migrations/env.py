"""Alembic's entry: runs the migrations on the connection (or, in tests, the engine) it is given."""

import asyncio

from alembic import context
from sqlalchemy.engine import Connection
from sqlalchemy.ext.asyncio import AsyncEngine

from ibrik_broker.metadata.models import Base


def run(connection: Connection) -> None:
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        compare_type=True,
        # SQLite rolls DDL back too, given that transactions are begun in the open (database.py).
        transactional_ddl=True,
    )
    with context.begin_transaction():
        context.run_migrations()


async def run_on(engine: AsyncEngine) -> None:
    async with engine.connect() as connection:
        await connection.run_sync(run)
        await connection.commit()


def main(given: Connection | AsyncEngine) -> None:
    if isinstance(given, Connection):
        run(given)
    else:
        asyncio.run(run_on(given))


main(context.config.attributes["connection"])
