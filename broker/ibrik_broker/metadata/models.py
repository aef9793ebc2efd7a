"""The tables. Migrations make them; a test holds that both say the same.

Types are those that SQLite and Postgres share. Times are integer milliseconds.
"""

from typing import Any, ClassVar

from sqlalchemy import JSON, BigInteger, MetaData, String, UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Base(DeclarativeBase):
    metadata = MetaData(
        naming_convention={
            "pk": "pk_%(table_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        }
    )
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        int: BigInteger,
        dict[str, Any]: JSON,
    }


class MetaTable(Base):
    """One row: whose database this is, and which versions can read it."""

    __tablename__ = "meta"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    cluster_id: Mapped[str | None] = mapped_column(String(64))
    schema_version: Mapped[int]
    min_reader: Mapped[int]


class SequenceTable(Base):
    """Counters that never give a value twice; also on SQLite, which has no sequences."""

    __tablename__ = "sequences"

    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    next_value: Mapped[int]


class TopicTable(Base):
    """Topics, also those that are being made or removed and those that are detached."""

    __tablename__ = "topics"
    __table_args__ = (UniqueConstraint("namespace", "resource_name"),)

    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    name: Mapped[str] = mapped_column(String(253), unique=True)
    namespace: Mapped[str] = mapped_column(String(63))
    resource_name: Mapped[str] = mapped_column(String(253))
    resource_uid: Mapped[str | None] = mapped_column(String(64))
    origin: Mapped[str] = mapped_column(String(16))
    generation: Mapped[int]
    spec: Mapped[dict[str, Any]]
    state: Mapped[str] = mapped_column(String(16))
    revision: Mapped[int]
    created_ms: Mapped[int]
    updated_ms: Mapped[int]
