"""Every test here runs on SQLite and, when slow tests are asked for, on a real Postgres."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from ibrik_broker.metadata.database import Database
from ibrik_broker.metadata.topics import TopicRows
from tests.support.postgres import Postgres, running_postgres

CLUSTER = "3f0c5a62-0000-4000-8000-000000000001"


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    with running_postgres() as server:
        yield server


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/metadata.db"
    server: Postgres = request.getfixturevalue("postgres")
    return server.new_database()


@pytest.fixture
async def database(url: str) -> AsyncIterator[Database]:
    database = await Database.open(url, CLUSTER)
    yield database
    await database.close()


@pytest.fixture
def rows(database: Database) -> TopicRows:
    return TopicRows(database)
