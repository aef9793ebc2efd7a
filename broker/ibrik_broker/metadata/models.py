"""The tables. Migrations make them; a test holds that both say the same.

Types are those that SQLite and Postgres share. Times are integer milliseconds.
"""

from typing import Any, ClassVar

from sqlalchemy import (
    JSON,
    BigInteger,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Text,
    UniqueConstraint,
)
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
        list[Any]: JSON,
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
    owner: Mapped[str | None] = mapped_column(String(36))
    """The broker whose volume holds it; None: older than pools; whoever has it owns it."""


class BrokerTable(Base):
    """The brokers of a pool, and how the others reach them. A broker writes its own row only."""

    __tablename__ = "brokers"

    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    """The id of its volume: it stays when the process moves to another machine."""
    name: Mapped[str] = mapped_column(String(253))
    host: Mapped[str] = mapped_column(String(253))
    http_port: Mapped[int]
    admin_port: Mapped[int]
    size_bytes: Mapped[int]
    started_ms: Mapped[int]
    updated_ms: Mapped[int]
    """When it last said that it is there."""


class KeyTable(Base):
    """Secret keys that the broker made for itself, such as the one that signs leases."""

    __tablename__ = "keys"

    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    value: Mapped[bytes] = mapped_column(LargeBinary(64))
    created_ms: Mapped[int]


class ResourceColumns:
    """What a channel and a subscription have in common: a wish, who made it, and its revision."""

    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    namespace: Mapped[str] = mapped_column(String(63))
    name: Mapped[str] = mapped_column(String(253))
    resource_uid: Mapped[str | None] = mapped_column(String(64))
    origin: Mapped[str] = mapped_column(String(16))
    generation: Mapped[int]
    spec: Mapped[dict[str, Any]]
    state: Mapped[str] = mapped_column(String(16))
    halt: Mapped[str | None] = mapped_column(String(32))
    """Why nothing is delivered although the wish says so: paused, gone, gap. None: it is."""
    revision: Mapped[int]
    created_ms: Mapped[int]
    updated_ms: Mapped[int]


class ChannelTable(ResourceColumns, Base):
    __tablename__ = "channels"
    __table_args__ = (UniqueConstraint("namespace", "name"),)


class SubscriptionTable(ResourceColumns, Base):
    __tablename__ = "subscriptions"
    __table_args__ = (UniqueConstraint("namespace", "name"),)


class PublisherTable(Base):
    """Who may publish to a topic with `publishers: registered`; the token only as a hash."""

    __tablename__ = "publishers"
    __table_args__ = (UniqueConstraint("topic", "name"),)

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    topic: Mapped[str] = mapped_column(String(253))
    name: Mapped[str] = mapped_column(String(253))
    token_hash: Mapped[bytes] = mapped_column(LargeBinary(32))
    revision: Mapped[int]
    created_ms: Mapped[int]
    updated_ms: Mapped[int]


class ClientTable(Base):
    """Clients that introduced themselves; the id is theirs for ever."""

    __tablename__ = "clients"

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    name: Mapped[str] = mapped_column(String(253), unique=True)
    description: Mapped[str] = mapped_column(String(1024))
    revision: Mapped[int]
    created_ms: Mapped[int]
    updated_ms: Mapped[int]


class CursorTable(Base):
    """How far one flow has come in one partition. One row is written for any number of messages.

    `settled` and `claimed` are lists of numbers in JSON, described in docs/formats/delivery.md.
    """

    __tablename__ = "cursors"

    flow_id: Mapped[str] = mapped_column(String(40), primary_key=True)
    partition: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    next_offset: Mapped[int]
    settled: Mapped[str] = mapped_column(Text)
    claimed: Mapped[str] = mapped_column(Text)
    epoch: Mapped[int]
    updated_ms: Mapped[int]
    topic_id: Mapped[str] = mapped_column(String(36))
    """The topic that the offsets belong to; a topic that is made anew has another."""


class RetryTable(Base):
    """A message that failed and waits for its next attempt; the cursor may be beyond it."""

    __tablename__ = "retries"

    flow_id: Mapped[str] = mapped_column(String(40), primary_key=True)
    partition: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    offset: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    attempts: Mapped[int]
    first_ms: Mapped[int]
    next_ms: Mapped[int | None]
    """When it is due; None: blocked until someone resumes it."""
    lane: Mapped[str | None] = mapped_column(String(32))
    """Digest of the key that later messages of the same key wait for."""


class AttemptTable(Base):
    """What became of one failed attempt; kept for people, trimmed by age and number."""

    __tablename__ = "attempts"
    __table_args__ = (
        Index(None, "flow_id", "partition", "offset"),
        Index(None, "flow_id", "id"),
        Index(None, "channel_id", "id"),
    )

    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
    flow_id: Mapped[str] = mapped_column(String(40))
    channel_id: Mapped[str | None] = mapped_column(String(40))
    partition: Mapped[int]
    offset: Mapped[int]
    attempt: Mapped[int]
    at_ms: Mapped[int]
    duration_ms: Mapped[int]
    status: Mapped[int | None]
    error: Mapped[str] = mapped_column(String(64))
    detail: Mapped[str] = mapped_column(String(1024))
    next_ms: Mapped[int | None]


class GapTable(Base):
    """Messages that a flow never delivered because the log does not hold them any more."""

    __tablename__ = "gaps"

    flow_id: Mapped[str] = mapped_column(String(40), primary_key=True)
    partition: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    from_offset: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    to_offset: Mapped[int]
    count: Mapped[int]
    reason: Mapped[str] = mapped_column(String(32))
    at_ms: Mapped[int]


class ReplayTable(Base):
    """A range of a topic that is delivered once more, to one destination."""

    __tablename__ = "replays"

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    kind: Mapped[str] = mapped_column(String(16))
    """replay, or redrive of dead letters."""
    topic: Mapped[str] = mapped_column(String(253))
    subscription_id: Mapped[str | None] = mapped_column(String(36))
    wish: Mapped[dict[str, Any]]
    """Source ranges, target, rate, filter: as resolved when it was asked for."""
    state: Mapped[str] = mapped_column(String(16))
    delivered: Mapped[int]
    failed: Mapped[int]
    filtered: Mapped[int]
    missing: Mapped[int]
    """Messages that retention took before they were delivered."""
    detail: Mapped[str] = mapped_column(Text)
    created_ms: Mapped[int]
    updated_ms: Mapped[int]
