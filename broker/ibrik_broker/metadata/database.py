"""The connection to the metadata database: opening, pragmas, transactions, translated errors.

Repositories (`topics.py`) take a `Database` and run each change as one transaction.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from typing import Any, Self

from sqlalchemy import URL, event, make_url
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, NoSuchModuleError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from ibrik_api.errors import Refusal
from ibrik_broker.metadata.migrate import prepare
from ibrik_broker.metadata.models import SequenceTable

DRIVERS = {"sqlite": "sqlite+aiosqlite", "postgresql": "postgresql+asyncpg"}
CONNECT_TIMEOUT_S = 5
STATEMENT_TIMEOUT_S = 10
POOL_CONNECTIONS = 5
_INSERTS: dict[str, Any] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}


class Database:
    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    @classmethod
    async def open(cls, url: str, cluster_id: str) -> Self:
        """Connect, migrate to this version, and make sure that the database is this cluster's.

        Raises Refusal: `newer-database`, `database-of-another-cluster`, `metadata-unavailable`.
        """
        parsed = parse_url(url)
        if parsed.get_backend_name() == "sqlite":
            await asyncio.to_thread(_try_file, parsed.database or ":memory:")
        database = cls(_create_engine(parsed))
        try:
            async with database.transaction() as connection:
                await connection.run_sync(prepare, cluster_id)
        except BaseException:
            await database.close()
            raise
        return database

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection]:
        """Commit at the end of the block, roll back on an exception.

        IntegrityError passes (the repository knows what it means); trouble of the database itself
        becomes a Refusal `metadata-unavailable`.
        """
        try:
            async with self._engine.begin() as connection:
                yield connection
        except IntegrityError:
            raise
        except (DBAPIError, PoolTimeout, OSError) as error:
            cause = error.orig if isinstance(error, DBAPIError) else error
            raise Refusal(
                "metadata-unavailable",
                f"The metadata database does not answer ({cause}). Check metadata.url and that the "
                "database runs, then try again.",
            ) from error

    async def allocate_producer_id(self) -> int:
        """An id that is never given out again; durable before it is returned."""
        return await self._next_value("producer_id")

    async def close(self) -> None:
        await self._engine.dispose()

    async def _next_value(self, name: str) -> int:
        insert = _INSERTS[self._engine.dialect.name]
        statement = (
            insert(SequenceTable)
            .values(name=name, next_value=1)
            .on_conflict_do_update(
                index_elements=[SequenceTable.name],
                set_={"next_value": SequenceTable.next_value + 1},
            )
            .returning(SequenceTable.next_value)
        )
        async with self.transaction() as connection:
            value: int = (await connection.execute(statement)).scalar_one()
        return value - 1


def parse_url(text_url: str) -> URL:
    """An SQLAlchemy URL with the driver of ours; raises Refusal `invalid-request`."""
    try:
        url = make_url(text_url)
        driver = DRIVERS[url.get_backend_name()]
    except (ArgumentError, KeyError, NoSuchModuleError) as error:
        # The URL may hold a password, so it is not repeated.
        raise Refusal(
            "invalid-request",
            "metadata.url is no URL of a database that Ibrik knows. Write sqlite:///PATH or "
            "postgresql://USER:PASSWORD@HOST/DATABASE.",
        ) from error
    return url.set(drivername=driver)


def _try_file(path: str) -> None:
    """Whether SQLite can open the file, before there is a pool.

    aiosqlite leaves a thread behind when it cannot, which then speaks to a loop that is gone.
    """
    try:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA schema_version")
    except sqlite3.Error as error:
        raise Refusal(
            "metadata-unavailable",
            f"SQLite cannot use {path} as metadata database ({error}). Check that its folder exists"
            " and may be written, and that the file is a database.",
        ) from error


def _create_engine(url: URL) -> AsyncEngine:
    if url.get_backend_name() == "sqlite":
        engine = create_async_engine(
            url, pool_size=POOL_CONNECTIONS, connect_args={"timeout": STATEMENT_TIMEOUT_S}
        )
        event.listen(engine.sync_engine, "connect", _set_pragmas)
        event.listen(engine.sync_engine, "begin", _begin)
        return engine
    return create_async_engine(
        url,
        pool_size=POOL_CONNECTIONS,
        pool_timeout=CONNECT_TIMEOUT_S,
        pool_pre_ping=True,
        connect_args={"timeout": CONNECT_TIMEOUT_S, "command_timeout": STATEMENT_TIMEOUT_S},
    )


def _set_pragmas(connection: Any, _record: Any) -> None:
    # Without this Python's driver begins transactions late and never for DDL, and a kill in the
    # middle of a migration would leave half of it; `_begin` begins them in the open.
    connection.isolation_level = None
    try:
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode = WAL")
        # FULL: a commit is flushed, so a topic that was answered with 201 outlives a power cut.
        cursor.execute("PRAGMA synchronous = FULL")
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.close()
    except BaseException:
        # The pool does not know of it yet, so no one else would end its thread.
        connection.close()
        raise


def _begin(connection: Any) -> None:
    # IMMEDIATE: a transaction that reads before it writes never fails half way as busy.
    connection.exec_driver_sql("BEGIN IMMEDIATE")
