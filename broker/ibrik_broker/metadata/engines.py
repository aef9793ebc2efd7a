"""SQLAlchemy engines: their limits, SQLite's pragmas, how a transaction begins, JSON.

Only `database.py` makes engines.
"""

from typing import Any

import msgspec
import sqlalchemy
from sqlalchemy import URL, Connection, Engine, event
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

CONNECT_TIMEOUT_S = 5
STATEMENT_TIMEOUT_S = 10
POOL_CONNECTIONS = 5
PRAGMAS = (
    "PRAGMA journal_mode = WAL",
    # A commit is flushed, so a topic that was answered with 201 outlives a power cut.
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    # KiB for each of up to a dozen connections: the kernel has the file in its own cache as well.
    "PRAGMA cache_size = -256",
)

_encoder = msgspec.json.Encoder()


def create_engine(url: URL) -> AsyncEngine:
    if url.get_backend_name() == "sqlite":
        engine = create_async_engine(
            url,
            pool_size=POOL_CONNECTIONS,
            connect_args={"timeout": STATEMENT_TIMEOUT_S},
            json_serializer=_encode,
            json_deserializer=msgspec.json.decode,
        )
        _speak_sqlite(engine.sync_engine)
        return engine
    return create_async_engine(
        url,
        pool_size=POOL_CONNECTIONS,
        pool_timeout=CONNECT_TIMEOUT_S,
        pool_pre_ping=True,
        connect_args={"timeout": CONNECT_TIMEOUT_S, "command_timeout": STATEMENT_TIMEOUT_S},
        json_serializer=_encode,
        json_deserializer=msgspec.json.decode,
    )


def create_file_engine(url: URL) -> Engine:
    """The SQLite database of `url` for threads that may block; connects when it is used."""
    engine = sqlalchemy.create_engine(
        url.set(drivername="sqlite"),
        pool_size=POOL_CONNECTIONS,
        connect_args={"timeout": STATEMENT_TIMEOUT_S},
        json_serializer=_encode,
        json_deserializer=msgspec.json.decode,
    )
    _speak_sqlite(engine)
    return engine


def reading(engine: Engine) -> Engine:
    """The same engine and pool, for transactions that only read: they wait for no writer."""
    return engine.execution_options(reads=True)


def _encode(value: Any) -> str:
    return _encoder.encode(value).decode()


def _speak_sqlite(engine: Engine) -> None:
    event.listen(engine, "connect", _set_pragmas)
    event.listen(engine, "begin", _begin)


def _set_pragmas(connection: Any, _record: Any) -> None:
    # Without this Python's driver begins transactions late and never for DDL, and a kill in the
    # middle of a migration would leave half of it; `_begin` begins them in the open.
    connection.isolation_level = None
    try:
        cursor = connection.cursor()
        for pragma in PRAGMAS:
            cursor.execute(pragma)
        cursor.close()
    except BaseException:
        # The pool does not know of it yet, so no one else would end its thread.
        connection.close()
        raise


def _begin(connection: Connection) -> None:
    if connection.get_execution_options().get("reads"):
        connection.exec_driver_sql("BEGIN")
        return
    # IMMEDIATE: a transaction that reads before it writes never fails half way as busy.
    connection.exec_driver_sql("BEGIN IMMEDIATE")
