"""Topics, the cluster's id and counters."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    meta = op.create_table(
        "meta",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("cluster_id", sa.String(64), nullable=True),
        sa.Column("schema_version", sa.BigInteger(), nullable=False),
        sa.Column("min_reader", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_meta"),
    )
    op.bulk_insert(meta, [{"id": 1, "cluster_id": None, "schema_version": 1, "min_reader": 1}])
    op.create_table(
        "sequences",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("next_value", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_sequences"),
    )
    op.create_table(
        "topics",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("name", sa.String(253), nullable=False),
        sa.Column("namespace", sa.String(63), nullable=False),
        sa.Column("resource_name", sa.String(253), nullable=False),
        sa.Column("resource_uid", sa.String(64), nullable=True),
        sa.Column("origin", sa.String(16), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("updated_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_topics"),
        sa.UniqueConstraint("name", name="uq_topics_name"),
        sa.UniqueConstraint("namespace", "resource_name", name="uq_topics_namespace_resource_name"),
    )


def downgrade() -> None:
    op.drop_table("topics")
    op.drop_table("sequences")
    op.drop_table("meta")
