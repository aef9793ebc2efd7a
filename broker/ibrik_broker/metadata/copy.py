"""Moves all metadata of a cluster into another, empty database: SQLite to Postgres, or back.

One transaction on the target: whoever is interrupted finds it as empty as before. Rows are read
back from the target before it is committed, and compared with what was read from the source. That
no broker works on either is for the caller to see to (`ibrik metadata copy` takes the lock of the
data folder); a Postgres that others are connected to is refused here. Called by the command line.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import URL, Table, func, insert, inspect, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from ibrik_broker.metadata.database import parse_url, prepare_file, translated_errors
from ibrik_broker.metadata.engines import create_engine
from ibrik_broker.metadata.migrate import SCHEMA_VERSION, prepare
from ibrik_broker.metadata.models import Base, MetaTable
from ibrik_broker.metadata.rows import table_of

BATCH_ROWS = 1_000
LOOKS, LOOK_AGAIN_S = 10, 0.2
"""How often, and how long apart, it is looked for others that use the source."""
META = table_of(MetaTable)
"""Whose database it is; the target's own row is written by the migrations."""
_DIGEST_MODULUS = 2**256


class CopyRefused(Exception):
    """Nothing was copied; the text says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What a table holds, whatever the order of its rows: databases sort texts differently."""

    rows: int = 0
    digest: int = 0

    def with_row(self, row: tuple[Any, ...]) -> "Fingerprint":
        content = msgspec.json.encode(row, order="deterministic")
        added = int.from_bytes(hashlib.sha256(content).digest())
        return Fingerprint(self.rows + 1, (self.digest + added) % _DIGEST_MODULUS)


@dataclass(frozen=True, slots=True)
class TableCopied:
    table: str
    rows: int


@dataclass(frozen=True, slots=True)
class Copied:
    cluster_id: str
    tables: list[TableCopied]


OnProgress = Callable[[str, int], None]
"""Hears the table and how many of its rows are in the target, after each batch."""


def tables() -> list[Table]:
    """Every table with content of its own."""
    return [table for table in Base.metadata.sorted_tables if table is not META]


async def copy(
    source_url: str, target_url: str, on_progress: OnProgress, cluster_id: str | None = None
) -> Copied:
    """Copy everything, or nothing.

    `cluster_id`, when given, is the one that the source has to be of. Raises CopyRefused, and a
    Refusal when a database cannot be used.
    """
    source, target = parse_url(source_url), parse_url(target_url)
    if _place(source) == _place(target):
        raise CopyRefused("source and target are one database; name another target")
    _check_source_file(source)
    with translated_errors():
        async with _opened(source) as source_engine:
            if target.get_backend_name() == "sqlite":
                await asyncio.to_thread(prepare_file, target.database or "")
            async with _opened(target) as target_engine:
                return await _copy(source_engine, target_engine, on_progress, cluster_id)


async def _copy(
    source: AsyncEngine, target: AsyncEngine, on_progress: OnProgress, cluster_id: str | None
) -> Copied:
    async with _snapshot(source) as reader, target.begin() as writer:
        owner = await _check_source(reader)
        if cluster_id not in (None, owner):
            raise CopyRefused(
                f"the source is of cluster {owner}, the data folder of cluster {cluster_id}; name "
                "the database that belongs to this folder"
            )
        await _check_target(writer)
        await writer.run_sync(prepare, owner)
        return Copied(
            owner, [await _copy_table(reader, writer, table, on_progress) for table in tables()]
        )


async def _copy_table(
    reader: AsyncConnection, writer: AsyncConnection, table: Table, on_progress: OnProgress
) -> TableCopied:
    expected = Fingerprint()
    async for batch in _batches(reader, table):
        for row in batch:
            expected = expected.with_row(row)
        try:
            names = table.columns.keys()
            await writer.execute(insert(table), [dict(zip(names, r, strict=True)) for r in batch])
        except DBAPIError as error:
            if error.connection_invalidated:
                raise
            raise CopyRefused(
                f"the target cannot store rows of {table.name} ({_first_line(error.orig)}); "
                "nothing was copied. Put right what it names and copy again"
            ) from error
        on_progress(table.name, expected.rows)
    await _continue_counting(writer, table)
    found = Fingerprint()
    async for batch in _batches(writer, table):
        for row in batch:
            found = found.with_row(row)
    if found != expected:
        raise CopyRefused(
            f"table {table.name} reads back differently ({found.rows:,} rows of "
            f"{expected.rows:,}, or other content); nothing was copied. Check that the target "
            "stores UTF-8 and that nobody else writes to it"
        )
    return TableCopied(table.name, expected.rows)


async def _batches(
    connection: AsyncConnection, table: Table
) -> AsyncIterator[list[tuple[Any, ...]]]:
    statement = select(table).execution_options(yield_per=BATCH_ROWS)
    result = await connection.stream(statement)
    async for rows in result.partitions():
        yield [tuple(row) for row in rows]


async def _continue_counting(writer: AsyncConnection, table: Table) -> None:
    """Let the ids that Postgres gives go on after the copied ones; SQLite looks for itself."""
    column = table.autoincrement_column
    if column is None or writer.dialect.name != "postgresql":
        return
    highest = (await writer.execute(select(func.max(column)))).scalar_one()
    if highest is not None:
        sequence = func.pg_get_serial_sequence(table.name, column.name)
        await writer.execute(select(func.setval(sequence, highest)))


# --- checks -----------------------------------------------------------------------------------


def _check_source_file(source: URL) -> None:
    """SQLite makes a file that is not there, and would copy nothing."""
    if source.get_backend_name() == "sqlite" and not Path(source.database or "").is_file():
        raise CopyRefused(f"there is no database {source.database}; check the path of the source")


async def _check_source(reader: AsyncConnection) -> str:
    """The cluster that the source is of."""
    if not await reader.run_sync(lambda c: inspect(c).has_table(META.name)):
        raise CopyRefused("the source is no metadata database of Ibrik; check its URL")
    cluster_id, version = (
        await reader.execute(select(META.c.cluster_id, META.c.schema_version))
    ).one()
    if version != SCHEMA_VERSION:
        remedy = (
            "start a broker of this version on it once, stop it, and copy again"
            if version < SCHEMA_VERSION
            else "copy with the version of Ibrik that its broker had"
        )
        raise CopyRefused(
            f"the source has schema {version}, this version copies schema {SCHEMA_VERSION}: "
            f"{remedy}"
        )
    if cluster_id is None:
        raise CopyRefused("the source was never used by a broker; there is nothing to copy")
    if reader.dialect.name == "postgresql":
        await _check_alone(reader)
    return str(cluster_id)


async def _check_alone(reader: AsyncConnection) -> None:
    """A broker that was just stopped may be listed for a moment, so one look is not enough."""
    others = 0
    for attempt in range(1, LOOKS + 1):
        await reader.execute(text("SELECT pg_stat_clear_snapshot()"))
        others = (await reader.execute(text(_OTHER_SESSIONS))).scalar_one()
        if not others:
            return
        if attempt < LOOKS:
            await asyncio.sleep(LOOK_AGAIN_S)
    raise CopyRefused(
        f"the source database is in use ({others} other connections); stop the brokers and "
        "whatever else is connected, then copy again"
    )


_OTHER_SESSIONS = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()
"""


async def _check_target(writer: AsyncConnection) -> None:
    """Tables may be there, as migrations leave them; rows may not."""
    present = await writer.run_sync(lambda c: set(inspect(c).get_table_names()))
    for table in tables():
        if table.name not in present:
            continue
        if (await writer.execute(select(table.c[0]).limit(1))).first() is not None:
            raise CopyRefused(
                f"the target is not empty: its table {table.name} has rows. Name an empty "
                "database; nothing is ever copied over what is there"
            )


# --- connections ------------------------------------------------------------------------------


@asynccontextmanager
async def _opened(url: URL) -> AsyncIterator[AsyncEngine]:
    engine = create_engine(url)
    try:
        yield engine
    finally:
        await engine.dispose()


def _snapshot(engine: AsyncEngine) -> AbstractAsyncContextManager[AsyncConnection]:
    """One moment of the source, whatever else might happen to it."""
    if engine.dialect.name == "postgresql":
        return engine.execution_options(
            isolation_level="REPEATABLE READ", postgresql_readonly=True
        ).begin()
    return engine.execution_options(reads=True).begin()


def _place(url: URL) -> tuple[Any, ...]:
    if url.get_backend_name() == "sqlite":
        return ("sqlite", str(Path(url.database or "").resolve()))
    return (url.get_backend_name(), url.host, url.port, url.database)


def _first_line(error: BaseException | None) -> str:
    return str(error).partition("\n")[0]
