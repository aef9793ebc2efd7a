"""Opening a metadata database: migrations, whose it is, which version may read it, counters."""

import asyncio
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from ibrik_api.errors import Refusal
from ibrik_broker.metadata.database import Database
from ibrik_broker.metadata.migrate import SCHEMA_VERSION
from tests.broker.metadata.conftest import CLUSTER
from tests.support.postgres import Postgres

SEQUENCES = "SELECT name FROM sequences"


async def execute(database: Database, statement: str) -> None:
    async with database.transaction() as connection:
        await connection.execute(text(statement))


async def test_a_database_opens_again_with_what_it_held(url: str) -> None:
    for expected in range(3):
        database = await Database.open(url, CLUSTER)
        assert await database.allocate_producer_id() == expected
        await database.close()


async def test_two_brokers_that_start_together_migrate_once(url: str) -> None:
    opened = await asyncio.gather(*(Database.open(url, CLUSTER) for _ in range(4)))
    ids = [await database.allocate_producer_id() for database in opened]
    assert ids == [0, 1, 2, 3]
    for database in opened:
        await database.close()


async def test_the_database_of_another_cluster_is_refused(url: str, database: Database) -> None:
    with pytest.raises(Refusal, match="belongs to cluster") as refused:
        await Database.open(url, "3f0c5a62-0000-4000-8000-000000000002")
    assert refused.value.code == "database-of-another-cluster"


async def test_a_newer_schema_that_this_version_can_read_is_left_as_it_is(
    url: str, database: Database
) -> None:
    await execute(database, "UPDATE meta SET schema_version = 9")
    await execute(database, "UPDATE alembic_version SET version_num = '0009'")
    newer = await Database.open(url, CLUSTER)
    assert await newer.allocate_producer_id() == 0
    await newer.close()


async def test_a_schema_that_this_version_cannot_read_is_refused(
    url: str, database: Database
) -> None:
    following = SCHEMA_VERSION + 1
    await execute(database, f"UPDATE meta SET schema_version = 9, min_reader = {following}")
    sentence = f"needs a broker that reads schema {following}; this one reads {SCHEMA_VERSION}"
    with pytest.raises(Refusal, match=sentence) as refused:
        await Database.open(url, CLUSTER)
    assert refused.value.code == "newer-database"


async def test_the_newest_migration_writes_this_versions_schema(database: Database) -> None:
    async with database.transaction() as connection:
        rows = await connection.execute(text("SELECT schema_version, min_reader FROM meta"))
        assert rows.one() == (SCHEMA_VERSION, 1)


async def test_producer_ids_are_never_given_twice(database: Database) -> None:
    ids = await asyncio.gather(*(database.allocate_producer_id() for _ in range(20)))
    assert sorted(ids) == list(range(20))


async def test_a_failed_transaction_leaves_nothing(database: Database) -> None:
    async def fail() -> None:
        async with database.transaction() as connection:
            await connection.execute(text("INSERT INTO sequences VALUES ('x', 1)"))
            raise KeyError

    with pytest.raises(KeyError):
        await fail()
    async with database.transaction() as connection:
        count = (await connection.execute(text("SELECT count(*) FROM sequences"))).scalar_one()
    assert count == 0


@pytest.fixture
def postgres_url(postgres: Postgres) -> str:
    return postgres.new_database()


@pytest.mark.slow
async def test_a_connection_that_the_server_ended_is_replaced(postgres_url: str) -> None:
    database = await Database.open(postgres_url, CLUSTER)
    assert await database.allocate_producer_id() == 0
    with pytest.raises(Refusal) as refused:
        await execute(database, "SELECT pg_terminate_backend(pg_backend_pid())")
    assert refused.value.code == "metadata-unavailable"
    assert await database.allocate_producer_id() == 1
    await database.close()


@pytest.mark.slow
async def test_a_database_that_does_not_exist_is_refused_by_name(postgres_url: str) -> None:
    url = postgres_url.replace("/test_", "/missing_")
    with pytest.raises(Refusal, match=r'database "missing_\d+" does not exist') as refused:
        await Database.open(url, CLUSTER)
    assert refused.value.code == "metadata-unavailable"


@pytest.mark.parametrize("url", ["", "redis://x", "no url", "mysql://user:secret@host/db"])
async def test_an_unusable_url_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(Refusal) as refused:
        await Database.open(url, CLUSTER)
    assert refused.value.code == "invalid-request"
    assert "secret" not in refused.value.detail


@pytest.mark.parametrize(
    "url", ["postgresql://user:secret@127.0.0.1:1/db", "sqlite:////nowhere/metadata.db"]
)
async def test_a_database_that_cannot_be_reached_is_a_refusal_to_retry(url: str) -> None:
    with pytest.raises(Refusal) as refused:
        await Database.open(url, CLUSTER)
    assert refused.value.code == "metadata-unavailable"
    assert refused.value.retryable
    assert "secret" not in refused.value.detail


async def test_a_file_that_is_no_database_is_refused_and_kept(tmp_path: Path) -> None:
    file = tmp_path / "metadata.db"
    file.write_bytes(b"my holiday pictures" * 100)
    with pytest.raises(Refusal):
        await Database.open(f"sqlite:///{file}", CLUSTER)
    assert file.read_bytes() == b"my holiday pictures" * 100


KILLED = """
import asyncio, os, signal, sys
from ibrik_broker.metadata.database import Database
from sqlalchemy import event
from sqlalchemy.engine import Engine

seen = 0

@event.listens_for(Engine, "before_cursor_execute")
def count(*arguments):
    global seen
    if not arguments[2].lstrip().startswith(("CREATE", "INSERT", "UPDATE")):
        return
    seen += 1
    if seen == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(Database.open(sys.argv[1], "c"))
"""


@pytest.mark.slow
@pytest.mark.parametrize("statement", [2, 4, 6])
async def test_a_kill_in_the_middle_of_a_migration_leaves_a_database_that_opens(
    tmp_path: Path, statement: int
) -> None:
    url = f"sqlite:///{tmp_path}/metadata.db"
    killed = subprocess.run([sys.executable, "-c", KILLED, url, str(statement)], check=False)
    assert killed.returncode == -signal.SIGKILL
    database = await Database.open(url, "c")
    assert await database.allocate_producer_id() == 0
    await database.close()


ALLOCATES = """
import asyncio, sys
from ibrik_broker.metadata.database import Database

async def main():
    database = await Database.open(sys.argv[1], "c")
    while True:
        print(await database.allocate_producer_id(), flush=True)

asyncio.run(main())
"""


@pytest.mark.slow
async def test_an_id_that_was_given_out_survives_a_kill(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/metadata.db"
    process = subprocess.Popen(
        [sys.executable, "-c", ALLOCATES, url], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    with process.stdout:
        given = [int(process.stdout.readline()) for _ in range(20)]
        process.kill()
        given += [int(line) for line in process.stdout]
    process.wait()
    database = await Database.open(url, "c")
    assert await database.allocate_producer_id() > max(given)
    await database.close()


async def test_nobody_is_passed_over_beside_a_busy_writer(url: str, database: Database) -> None:
    is_done = False

    async def keep_writing() -> int:
        count = 0
        while not is_done:
            await database.write(
                lambda connection: connection.execute(text("UPDATE meta SET min_reader = 1"))
            )
            count += 1
        return count

    async def allocate() -> list[int]:
        nonlocal is_done
        ids = [await database.allocate_producer_id() for _ in range(50)]
        is_done = True
        return ids

    ids, writes = await asyncio.gather(allocate(), keep_writing())
    assert ids == list(range(50))
    if url.startswith("sqlite"):
        assert writes <= 51, "they take turns, so that each waits for one other at most"


async def test_reading_waits_for_no_writer(database: Database) -> None:
    count = text("SELECT count(*) FROM sequences")
    async with database.transaction() as connection:
        await connection.execute(text("INSERT INTO sequences VALUES ('x', 1)"))
        seen = await database.read(lambda reader: reader.execute(count).scalar_one())
        assert seen == 0, "what is not committed yet is not seen"
    assert await database.read(lambda reader: reader.execute(count).scalar_one()) == 1


async def test_a_failed_write_leaves_nothing_and_the_next_one_goes_on(database: Database) -> None:
    def fail(connection: Connection) -> None:
        connection.execute(text("INSERT INTO sequences VALUES ('x', 1)"))
        connection.execute(text("SELECT nonsense"))

    with pytest.raises(Refusal) as refused:
        await database.write(fail)
    assert refused.value.code == "metadata-unavailable"
    rows = await database.write(lambda connection: connection.execute(text(SEQUENCES)).all())
    assert rows == []


async def test_closing_waits_for_a_write_whose_caller_has_gone(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/metadata.db"
    database = await Database.open(url, CLUSTER)
    loop = asyncio.get_running_loop()
    has_begun = asyncio.Event()
    is_cancelled = threading.Event()

    def work(connection: Connection) -> None:
        loop.call_soon_threadsafe(has_begun.set)
        assert is_cancelled.wait(10)
        connection.execute(text("INSERT INTO sequences VALUES ('x', 1)"))

    async with asyncio.TaskGroup() as tasks:
        writing = tasks.create_task(database.write(work))
        await has_begun.wait()
        writing.cancel()
    is_cancelled.set()
    await database.close()
    again = await Database.open(url, CLUSTER)
    rows = await again.read(lambda connection: connection.execute(text(SEQUENCES)).all())
    assert rows == [("x",)]
    await again.close()
