"""The brokers of a pool, and which of them owns a topic."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "brokers",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("name", sa.String(253), nullable=False),
        sa.Column("host", sa.String(253), nullable=False),
        sa.Column("http_port", sa.BigInteger(), nullable=False),
        sa.Column("admin_port", sa.BigInteger(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("started_ms", sa.BigInteger(), nullable=False),
        sa.Column("updated_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_brokers"),
    )
    op.add_column("topics", sa.Column("owner", sa.String(36), nullable=True))
    # `min_reader` stays: version 2 reads the columns that it knows by name, and leaves `owner` out.
    op.execute("UPDATE meta SET schema_version = 3")


def downgrade() -> None:
    """Which broker holds which topic is lost; the folders still say it."""
    op.drop_column("topics", "owner")
    op.drop_table("brokers")
    op.execute("UPDATE meta SET schema_version = 2")
