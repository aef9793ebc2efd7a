"""Migrations: one head, up and down, and the same tables as the models."""

import pytest
from pytest_alembic import Config
from pytest_alembic.tests import (
    test_model_definitions_match_ddl,
    test_single_head_revision,
    test_up_down_consistency,
    test_upgrade,
)
from sqlalchemy import NullPool
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
