"""Migrations: one head, up and down, and the same tables as the models."""

import asyncio

import pytest
from pytest_alembic import Config, MigrationContext
from pytest_alembic.tests import (
    test_model_definitions_match_ddl,
    test_single_head_revision,
    test_up_down_consistency,
    test_upgrade,
)
from sqlalchemy import NullPool, text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from ibrik_broker.metadata.database import parse_url
from ibrik_broker.metadata.migrate import MIGRATIONS

__all__ = [
    "test_model_definitions_match_ddl",
    "test_single_head_revision",
    "test_up_down_consistency",
    "test_upgrade",
]


@pytest.fixture
def alembic_config() -> Config:
    return Config(config_options={"script_location": str(MIGRATIONS)})


@pytest.fixture
def alembic_engine(url: str) -> AsyncEngine:
    # Each test runs several event loops, so no connection is kept from one to the next.
    return create_async_engine(parse_url(url), poolclass=NullPool)


def test_going_back_to_the_schema_without_delivery_keeps_the_topics(
    alembic_runner: MigrationContext, alembic_engine: AsyncEngine
) -> None:
    alembic_runner.migrate_up_to("0002")
    topic = {
        "id": "t",
        "name": "orders",
        "namespace": "default",
        "resource_name": "orders",
        "origin": "api",
        "generation": 1,
        "spec": {"partitions": 4},
        "state": "ready",
        "revision": 1,
        "created_ms": 1,
        "updated_ms": 1,
    }
    alembic_runner.insert_into("topics", topic)
    alembic_runner.migrate_down_to("0001")

    async def read() -> list[object]:
        async with alembic_engine.connect() as connection:
            topics = await connection.execute(text("SELECT id, name FROM topics"))
            meta = await connection.execute(text("SELECT schema_version, min_reader FROM meta"))
            return [tuple(row) for row in (*topics, *meta)]

    assert asyncio.run(read()) == [("t", "orders"), (1, 1)]
    alembic_runner.migrate_up_to("0002")
    assert asyncio.run(read()) == [("t", "orders"), (2, 1)]
