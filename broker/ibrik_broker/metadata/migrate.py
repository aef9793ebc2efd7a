"""Brings a database to this version's schema, and refuses one that is not ours to touch.

A release expands the schema and the next one contracts it, so `min_reader` in the database says
which versions may still work on it. All happens in the caller's transaction: a kill in the middle
leaves the database as it was.
"""

import uuid
from pathlib import Path

from sqlalchemy import Connection, inspect, select, text, update

from ibrik_api.errors import Refusal
from ibrik_broker.metadata.models import MetaTable

SCHEMA_VERSION = 3
"""The version that the newest migration of this release writes into `meta`."""

MIGRATIONS = Path(__file__).parent / "migrations"
# Any constant: brokers that start together on one Postgres take turns by it.
_ADVISORY_LOCK = 0x4942_5249_4B


def prepare(connection: Connection, cluster_id: str | None) -> str:
    """Migrate up, and claim an unclaimed database for `cluster_id`; whose it is.

    None belongs to no cluster yet and takes the database's, or a new one.

    Raises Refusal `newer-database` or `database-of-another-cluster`.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK})
    if not _is_current(connection):
        _upgrade(connection)
    return _claim(connection, cluster_id)


def _upgrade(connection: Connection) -> None:
    from alembic import command  # only the first start of a release needs it
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    # Alembic reads this option as a format string; the path may hold a percent sign.
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _is_current(connection: Connection) -> bool:
    """Whether this release wrote the schema, or a newer one that this one can read."""
    if not inspect(connection).has_table(MetaTable.__tablename__):
        return False
    schema_version, min_reader = connection.execute(
        select(MetaTable.schema_version, MetaTable.min_reader)
    ).one()
    if min_reader > SCHEMA_VERSION:
        raise Refusal(
            "newer-database",
            f"The metadata database has schema {schema_version} and needs a broker that reads "
            f"schema {min_reader}; this one reads {SCHEMA_VERSION}. Start the newer version again, "
            "or restore a backup made before the upgrade.",
        )
    return bool(schema_version >= SCHEMA_VERSION)


def _claim(connection: Connection, cluster_id: str | None) -> str:
    offered = cluster_id or str(uuid.uuid4())
    connection.execute(
        update(MetaTable).where(MetaTable.cluster_id.is_(None)).values(cluster_id=offered)
    )
    owner = connection.execute(select(MetaTable.cluster_id)).scalar_one()
    assert owner is not None, "it was claimed just now"
    if cluster_id is not None and owner != cluster_id:
        raise Refusal(
            "database-of-another-cluster",
            f"The metadata database belongs to cluster {owner}; the data folder is of cluster "
            f"{cluster_id}. Point metadata.url to the database of this folder, or to an empty one.",
        )
    return owner
