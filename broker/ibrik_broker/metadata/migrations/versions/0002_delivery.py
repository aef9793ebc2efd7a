"""Channels, subscriptions, publishers, clients, and the state of delivery."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

TABLES = (
    "replays",
    "gaps",
    "attempts",
    "retries",
    "cursors",
    "clients",
    "publishers",
    "subscriptions",
    "channels",
    "keys",
)


def number(name: str, *, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=nullable)


def text(name: str, length: int, *, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.String(length), nullable=nullable)


def key(name: str) -> sa.Column[int]:
    """A number that is part of a primary key and is given, not counted."""
    return sa.Column(name, sa.BigInteger(), autoincrement=False, nullable=False)


def json(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.JSON(), nullable=False)


def revisions() -> tuple[sa.Column[int], ...]:
    return number("revision"), number("created_ms"), number("updated_ms")


def upgrade() -> None:
    op.create_table(
        "keys",
        text("name", 64),
        sa.Column("value", sa.LargeBinary(64), nullable=False),
        number("created_ms"),
        sa.PrimaryKeyConstraint("name", name="pk_keys"),
    )
    _create_registrations()
    _create_flows()
    _create_attempts()
    # `min_reader` stays: version 1 does not look at the new tables.
    op.execute("UPDATE meta SET schema_version = 2")


def _create_registrations() -> None:
    for table in ("channels", "subscriptions"):
        op.create_table(
            table,
            text("id", 36),
            text("namespace", 63),
            text("name", 253),
            text("resource_uid", 64, nullable=True),
            text("origin", 16),
            number("generation"),
            json("spec"),
            text("state", 16),
            text("halt", 32, nullable=True),
            *revisions(),
            sa.PrimaryKeyConstraint("id", name=f"pk_{table}"),
            sa.UniqueConstraint("namespace", "name", name=f"uq_{table}_namespace_name"),
        )
    op.create_table(
        "publishers",
        text("id", 40),
        text("topic", 253),
        text("name", 253),
        sa.Column("token_hash", sa.LargeBinary(32), nullable=False),
        *revisions(),
        sa.PrimaryKeyConstraint("id", name="pk_publishers"),
        sa.UniqueConstraint("topic", "name", name="uq_publishers_topic_name"),
    )
    op.create_table(
        "clients",
        text("id", 40),
        text("name", 253),
        text("description", 1024),
        *revisions(),
        sa.PrimaryKeyConstraint("id", name="pk_clients"),
        sa.UniqueConstraint("name", name="uq_clients_name"),
    )


def _create_flows() -> None:
    op.create_table(
        "cursors",
        text("flow_id", 40),
        key("partition"),
        number("next_offset"),
        sa.Column("settled", sa.Text(), nullable=False),
        sa.Column("claimed", sa.Text(), nullable=False),
        number("epoch"),
        number("updated_ms"),
        text("topic_id", 36),
        sa.PrimaryKeyConstraint("flow_id", "partition", name="pk_cursors"),
    )
    op.create_table(
        "retries",
        text("flow_id", 40),
        key("partition"),
        key("offset"),
        number("attempts"),
        number("first_ms"),
        number("next_ms", nullable=True),
        text("lane", 32, nullable=True),
        sa.PrimaryKeyConstraint("flow_id", "partition", "offset", name="pk_retries"),
    )
    op.create_table(
        "gaps",
        text("flow_id", 40),
        key("partition"),
        key("from_offset"),
        number("to_offset"),
        number("count"),
        text("reason", 32),
        number("at_ms"),
        sa.PrimaryKeyConstraint("flow_id", "partition", "from_offset", name="pk_gaps"),
    )
    op.create_table(
        "replays",
        text("id", 40),
        text("kind", 16),
        text("topic", 253),
        text("subscription_id", 36, nullable=True),
        json("wish"),
        text("state", 16),
        number("delivered"),
        number("failed"),
        number("filtered"),
        number("missing"),
        sa.Column("detail", sa.Text(), nullable=False),
        number("created_ms"),
        number("updated_ms"),
        sa.PrimaryKeyConstraint("id", name="pk_replays"),
    )


def _create_attempts() -> None:
    op.create_table(
        "attempts",
        # Only INTEGER, not BIGINT, counts by itself on SQLite.
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        text("flow_id", 40),
        text("channel_id", 40, nullable=True),
        number("partition"),
        number("offset"),
        number("attempt"),
        number("at_ms"),
        number("duration_ms"),
        number("status", nullable=True),
        text("error", 64),
        text("detail", 1024),
        number("next_ms", nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_attempts"),
    )
    for columns in (["flow_id", "partition", "offset"], ["flow_id", "id"], ["channel_id", "id"]):
        op.create_index(f"ix_attempts_{'_'.join(columns)}", "attempts", columns)


def downgrade() -> None:
    """Topics stay; channels, subscriptions and how far they came are lost."""
    for table in TABLES:
        op.drop_table(table)
    op.execute("UPDATE meta SET schema_version = 1")
