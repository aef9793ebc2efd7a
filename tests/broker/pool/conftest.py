"""Tests of a pool share one Postgres."""

from collections.abc import Iterator

import pytest

from tests.support.pool import PoolOfBrokers, running_pool
from tests.support.postgres import Postgres, running_postgres


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def pool(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PoolOfBrokers]:
    """Three brokers for all tests that leave them running."""
    with running_pool(tmp_path_factory.mktemp("pool"), postgres.new_database()) as pool:
        yield pool
