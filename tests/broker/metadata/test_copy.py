"""Copying metadata between databases: everything or nothing, and the same afterwards."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Table, insert, select, text
from sqlalchemy.types import JSON, LargeBinary, String

from ibrik_api.errors import Refusal
from ibrik_broker.metadata.attempts import AttemptHistory
from ibrik_broker.metadata.copy import BATCH_ROWS, CopyRefused, copy, tables
from ibrik_broker.metadata.database import Database
from ibrik_broker.metadata.deliveries import AttemptRow, Changes, DeliveryStore
from tests.broker.metadata.conftest import CLUSTER
from tests.support.postgres import Postgres

NewUrl = Callable[[], str]
Content = dict[str, list[tuple[Any, ...]]]
TEXTS = ("plain", "Ünïcode ✓", 'quotes "and" \\ back', "", "z" * 40, "tab\tand\nline")


@pytest.fixture
def postgres_url(postgres: Postgres) -> str:
    return postgres.new_database()


def nothing_to_say(_table: str, _rows: int) -> None:
    """Progress that nobody watches."""


def value(column: Any, number: int) -> Any:
    """A value that the column can hold; rows of different numbers differ."""
    if column.nullable and number % 3 == 0:
        return None
    if isinstance(column.type, JSON):
        return {"b": [number, None, 1.5, TEXTS[number % len(TEXTS)]], "a": {"nested": True}}
    if isinstance(column.type, LargeBinary):
        return bytes([number % 256, 0, 255])
    if isinstance(column.type, String):
        long = f"{number:04}-{TEXTS[number % len(TEXTS)]}"
        return long[: column.type.length] if column.type.length else long
    return number * 2**40 if not column.primary_key else number + 1


def rows_of(table: Table, count: int) -> list[dict[str, Any]]:
    return [{c.key: value(c, number) for c in table.columns} for number in range(count)]


async def fill(url: str) -> None:
    """Rows in every table, in one of them more than a batch."""
    database = await Database.open(url, CLUSTER)
    async with database.transaction() as connection:
        for table in tables():
            count = BATCH_ROWS + 5 if table.name == "retries" else 7
            await connection.execute(insert(table), rows_of(table, count))
    await database.close()


async def content(url: str, cluster_id: str = CLUSTER) -> Content:
    database = await Database.open(url, cluster_id)
    async with database.transaction() as connection:
        found = {
            table.name: [tuple(row) for row in await connection.execute(select(table))]
            for table in tables()
        }
    await database.close()
    return {name: sorted(rows, key=repr) for name, rows in found.items()}


@pytest.fixture(
    params=[
        "sqlite to sqlite",
        pytest.param("sqlite to postgres", marks=pytest.mark.slow),
        pytest.param("postgres to sqlite", marks=pytest.mark.slow),
    ]
)
def urls(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """Source and target, both empty."""

    def new(kind: str, name: str) -> str:
        if kind == "sqlite":
            return f"sqlite:///{tmp_path}/{name}.db"
        server: Postgres = request.getfixturevalue("postgres")
        return server.new_database()

    source, _, target = str(request.param).partition(" to ")
    return new(source, "source"), new(target, "target")


async def test_every_table_arrives_with_every_value(urls: tuple[str, str]) -> None:
    source, target = urls
    await fill(source)
    before = await content(source)
    seen: list[tuple[str, int]] = []
    copied = await copy(source, target, lambda table, rows: seen.append((table, rows)))
    assert await content(target) == before
    assert await content(source) == before
    assert copied.cluster_id == CLUSTER
    assert {t.table: t.rows for t in copied.tables} == {k: len(v) for k, v in before.items()}
    assert [rows for table, rows in seen if table == "retries"] == [BATCH_ROWS, BATCH_ROWS + 5]


async def test_there_and_back_is_the_same(urls: tuple[str, str], tmp_path: Path) -> None:
    source, target = urls
    await fill(source)
    await copy(source, target, nothing_to_say)
    back = f"sqlite:///{tmp_path}/back.db"
    await copy(target, back, nothing_to_say)
    assert await content(back) == await content(source)


async def test_what_is_counted_goes_on_after_the_copied_rows(urls: tuple[str, str]) -> None:
    source, target = urls
    await fill(source)
    await copy(source, target, nothing_to_say)
    database = await Database.open(target, CLUSTER)
    await DeliveryStore(database).commit(
        Changes(attempts=[AttemptRow("new", None, 0, 1, 1, 1, 1, 500, "status", "", None)])
    )
    history = AttemptHistory(database)
    assert [row.status for row in await history.by_flow("new", limit=10)] == [500]
    await database.close()


async def test_a_target_with_rows_is_refused_and_left_alone(urls: tuple[str, str]) -> None:
    source, target = urls
    await fill(source)
    database = await Database.open(target, CLUSTER)
    await database.allocate_producer_id()
    await database.close()
    before = await content(target)
    with pytest.raises(CopyRefused, match="not empty: its table sequences has rows"):
        await copy(source, target, nothing_to_say)
    assert await content(target) == before


async def test_a_target_that_a_broker_only_opened_is_taken(urls: tuple[str, str]) -> None:
    source, target = urls
    await fill(source)
    await (await Database.open(target, CLUSTER)).close()
    await copy(source, target, nothing_to_say)
    assert await content(target) == await content(source)


async def test_the_target_of_another_cluster_is_refused(urls: tuple[str, str]) -> None:
    source, target = urls
    await fill(source)
    await (await Database.open(target, CLUSTER.replace("3", "4"))).close()
    with pytest.raises(Refusal, match="belongs to cluster"):
        await copy(source, target, nothing_to_say)


CHILD = """
import asyncio, os, signal, sys
from ibrik_broker.metadata.copy import copy

def die(table, rows):
    if table == sys.argv[3]:
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(copy(sys.argv[1], sys.argv[2], die))
"""


@pytest.mark.slow
async def test_a_kill_in_the_middle_leaves_the_target_empty(urls: tuple[str, str]) -> None:
    source, target = urls
    await fill(source)
    process = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", CHILD, source, target, "retries"], check=False
    )
    assert process.returncode == -signal.SIGKILL
    assert set(map(len, (await content(target, "of nobody")).values())) == {0}


async def test_a_row_that_reads_back_differently_undoes_the_copy(
    tmp_path: Path, urls: tuple[str, str]
) -> None:
    source, target = urls
    await fill(source)
    database = await Database.open(target, CLUSTER)
    async with database.transaction() as connection:
        if connection.dialect.name == "postgresql":
            await connection.execute(
                text("CREATE RULE lost AS ON INSERT TO gaps DO INSTEAD NOTHING")
            )
        else:
            await connection.execute(
                text(
                    "CREATE TRIGGER lost AFTER INSERT ON gaps BEGIN "
                    "DELETE FROM gaps WHERE flow_id = new.flow_id; END"
                )
            )
    await database.close()
    with pytest.raises(CopyRefused, match=r"table gaps reads back differently \(0 rows of 7"):
        await copy(source, target, nothing_to_say)
    assert set(map(len, (await content(target)).values())) == {0}


@pytest.mark.slow
async def test_what_the_target_cannot_store_is_named(postgres_url: str, tmp_path: Path) -> None:
    source, target = f"sqlite:///{tmp_path}/source.db", postgres_url
    await fill(source)
    database = await Database.open(source, CLUSTER)
    async with database.transaction() as connection:
        await connection.execute(text("UPDATE clients SET description = 'a' || char(0) || 'b'"))
    await database.close()
    with pytest.raises(CopyRefused, match="cannot store rows of clients"):
        await copy(source, target, nothing_to_say)
    assert set(map(len, (await content(target)).values())) == {0}


@pytest.mark.slow
async def test_a_postgres_that_others_use_is_refused(postgres_url: str, tmp_path: Path) -> None:
    source = postgres_url
    await fill(source)
    broker = await Database.open(source, CLUSTER)
    with pytest.raises(CopyRefused, match=r"in use \(1 other"):
        await copy(source, f"sqlite:///{tmp_path}/target.db", nothing_to_say)
    await broker.close()


async def test_sources_that_are_none_are_refused_with_the_reason(tmp_path: Path) -> None:
    target = f"sqlite:///{tmp_path}/target.db"
    with pytest.raises(CopyRefused, match="there is no database"):
        await copy(f"sqlite:///{tmp_path}/missing.db", target, nothing_to_say)
    assert not (tmp_path / "missing.db").exists()
    (tmp_path / "empty.db").touch()
    with pytest.raises(CopyRefused, match="no metadata database of Ibrik"):
        await copy(f"sqlite:///{tmp_path}/empty.db", target, nothing_to_say)
    source = f"sqlite:///{tmp_path}/source.db"
    await fill(source)
    with pytest.raises(CopyRefused, match="one database"):
        await copy(source, f"{source}", nothing_to_say)
    with pytest.raises(CopyRefused, match="the data folder of cluster other"):
        await copy(source, target, nothing_to_say, "other")


@pytest.mark.parametrize(("version", "remedy"), [(1, "start a broker"), (99, "with the version")])
async def test_another_schema_is_refused(tmp_path: Path, version: int, remedy: str) -> None:
    source = f"sqlite:///{tmp_path}/source.db"
    await fill(source)
    database = await Database.open(source, CLUSTER)
    async with database.transaction() as connection:
        await connection.execute(text(f"UPDATE meta SET schema_version = {version}"))
    await database.close()
    with pytest.raises(CopyRefused, match=remedy):
        await copy(source, f"sqlite:///{tmp_path}/target.db", nothing_to_say)
