"""The connection to the metadata database: opening, transactions, translated errors.

Repositories (`topics.py`) take a `Database` and run each change as one transaction. What delivery
writes many times a second goes through `write_quickly`, which costs a tenth of `transaction` on
SQLite.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing, contextmanager, nullcontext
from typing import Any, Self, TypeVar

from sqlalchemy import URL, Connection, Engine, make_url, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, NoSuchModuleError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_fixed

from ibrik_api.errors import Refusal
from ibrik_broker.metadata.engines import (
    CONNECT_TIMEOUT_S,
    create_engine,
    create_file_engine,
    reading,
)
from ibrik_broker.metadata.migrate import prepare
from ibrik_broker.metadata.models import SequenceTable
from ibrik_broker.metadata.quick import ConnectionWriter, FileWriter, Writer

DRIVERS = {"sqlite": "sqlite+aiosqlite", "postgresql": "postgresql+asyncpg"}
_INSERTS: dict[str, Any] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}

CHECK_TIMEOUT_S = 2.0

Result = TypeVar("Result")


class Database:
    def __init__(self, engine: AsyncEngine, file: Engine | None) -> None:
        """`file` is the same database without asyncio; given for SQLite."""
        self.cluster_id = ""
        """Whose it is; known once it is open."""
        self._engine = engine
        self._file = file
        self._quick = None if file is None else FileWriter(str(file.url.database))
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="metadata-writer")
        self._write_turn = asyncio.Lock()
        # SQLite lets one write at a time, and whoever waits for it looks again after ever longer
        # pauses: beside a busy writer that took up to a second. In a queue nobody is passed over.
        self._turn = nullcontext() if file is None else self._write_turn

    @classmethod
    async def open(cls, url: str, cluster_id: str | None) -> Self:
        """Connect, migrate to this version, and make sure that the database is this cluster's.

        None takes the cluster that the database has, or a new one.

        Raises Refusal: `newer-database`, `database-of-another-cluster`, `metadata-unavailable`.
        """
        parsed = parse_url(url)
        file = None
        if parsed.get_backend_name() == "sqlite":
            await asyncio.to_thread(prepare_file, parsed.database or ":memory:")
            file = create_file_engine(parsed)
        database = cls(create_engine(parsed), file)
        try:
            async with database.transaction() as connection:
                database.cluster_id = await connection.run_sync(prepare, cluster_id)
        except BaseException:
            await database.close()
            raise
        return database

    @property
    def store(self) -> str:
        """`sqlite` or `postgres`."""
        return "postgres" if self._file is None else "sqlite"

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection]:
        """Commit at the end of the block, roll back on an exception. Not one inside another.

        IntegrityError passes (the repository knows what it means); trouble of the database itself
        becomes a Refusal `metadata-unavailable`.
        """
        with translated_errors():
            async with self._turn, self._engine.begin() as connection:
                yield connection

    async def write(self, work: Callable[[Connection], Result]) -> Result:
        """Run `work` as one transaction, one after the other in the order of the calls.

        On SQLite the whole of it runs in a thread of its own: one hop, not one for each statement.
        Errors as in `transaction`. A caller that is cancelled does not know whether it was done.
        """
        with translated_errors():
            async with self._write_turn:
                if self._file is None:
                    async with self._engine.begin() as connection:
                        return await connection.run_sync(work)
                loop = asyncio.get_running_loop()
                return await loop.run_in_executor(self._writer, _run, self._file, work)

    async def write_quickly(self, work: Callable[[Writer], Result]) -> Result:
        """As `write`, for plain values: on SQLite without what SQLAlchemy does around it."""
        with translated_errors():
            async with self._write_turn:
                if self._quick is None:
                    async with self._engine.begin() as connection:
                        return await connection.run_sync(
                            lambda connection: work(ConnectionWriter(connection))
                        )
                loop = asyncio.get_running_loop()
                return await loop.run_in_executor(self._writer, self._quick.run, work)

    async def read(self, work: Callable[[Connection], Result]) -> Result:
        """Run `work`, which only reads, beside whatever is written meanwhile."""
        with translated_errors():
            if self._file is None:
                async with self._engine.begin() as connection:
                    return await connection.run_sync(work)
            return await asyncio.to_thread(_run, reading(self._file), work)

    async def check(self) -> bool:
        """Whether it answers, and soon."""
        try:
            async with asyncio.timeout(CHECK_TIMEOUT_S):
                await self.read(lambda connection: connection.execute(text("SELECT 1")))
        except (Refusal, TimeoutError):
            return False
        return True

    async def allocate_producer_id(self) -> int:
        """An id that is never given out again; durable before it is returned."""
        return await self._next_value("producer_id")

    async def close(self) -> None:
        if self._quick is not None:
            await asyncio.get_running_loop().run_in_executor(self._writer, self._quick.close)
        await asyncio.to_thread(self._writer.shutdown)
        if self._file is not None:
            self._file.dispose()
        await self._engine.dispose()

    def insert(self, table: Any) -> Any:
        """An INSERT that may say ON CONFLICT; the two databases write it alike, SQLAlchemy not."""
        return _INSERTS[self._engine.dialect.name](table)

    async def _next_value(self, name: str) -> int:
        statement = (
            self.insert(SequenceTable)
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


def _run(engine: Engine, work: Callable[[Connection], Result]) -> Result:
    with engine.begin() as connection:
        return work(connection)


@contextmanager
def translated_errors() -> Iterator[None]:
    try:
        yield
    except IntegrityError:
        raise
    except (DBAPIError, PoolTimeout, OSError, sqlite3.Error) as error:
        cause = error.orig if isinstance(error, DBAPIError) else error
        raise Refusal(
            "metadata-unavailable",
            f"The metadata database does not answer ({cause}). Check metadata.url and that the "
            "database runs, then try again.",
        ) from error


def prepare_file(path: str) -> None:
    """Make sure that SQLite can use the file, and keeps a write-ahead log, before there is a pool.

    aiosqlite leaves a thread behind when it cannot, which then speaks to a loop that is gone.
    """
    try:
        with closing(sqlite3.connect(path)) as connection:
            # Of connections that change the mode of one file at once, SQLite refuses all but one
            # without waiting. The mode is kept in the file, so later ones find nothing to change.
            for attempt in Retrying(
                retry=retry_if_exception(_is_busy),
                stop=stop_after_delay(CONNECT_TIMEOUT_S),
                wait=wait_fixed(0.01),
                reraise=True,
            ):
                with attempt:
                    connection.execute("PRAGMA journal_mode = WAL")
    except sqlite3.Error as error:
        raise Refusal(
            "metadata-unavailable",
            f"SQLite cannot use {path} as metadata database ({error}). Check that its folder exists"
            " and may be written, and that the file is a database.",
        ) from error


def _is_busy(error: BaseException) -> bool:
    return isinstance(error, sqlite3.Error) and error.sqlite_errorcode == sqlite3.SQLITE_BUSY
