"""The Topic resource: what people may wish for and what they see.

Rules across fields and between two specs live in `topic_rules`.
"""

import hashlib
from enum import StrEnum
from typing import Annotated, Literal

import msgspec
from pydantic import ConfigDict, Field, StringConstraints

from ibrik_api.durations import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, DurationMs, duration_limits
from ibrik_api.model import Model
from ibrik_api.names import NAMESPACE_PATTERN, Name
from ibrik_api.quantities import GIB, KIB, MIB, QuantityBytes, size_limits
from ibrik_api.resources.archive import ArchiveRun, ArchiveTable
from ibrik_api.resources.cel import checked, rule, unchanged
from ibrik_api.resources.meta import Conditions, ObjectMeta, Timestamp
from ibrik_api.schedules import Schedule, TimeZone

MAX_PARTITIONS = 256
MAX_MESSAGE_BYTES = 64 * MIB

Count = Annotated[int, Field(ge=0, le=2**63 - 1, strict=True)]
Text = Annotated[str, StringConstraints(max_length=253)]


class Partitioner(StrEnum):
    KEY_HASH = "keyHash"
    ROUND_ROBIN = "roundRobin"
    STICKY = "sticky"


class Dispatch(StrEnum):
    BROADCAST = "broadcast"
    QUEUE = "queue"


class Durability(StrEnum):
    FLUSHED = "flushed"
    WRITTEN = "written"


class Cleanup(StrEnum):
    DELETE = "delete"
    COMPACT = "compact"


class WhenFull(StrEnum):
    WAIT = "wait"
    REJECT = "reject"
    DROP_OLDEST = "dropOldest"


class Publishers(StrEnum):
    ANYONE = "anyone"
    REGISTERED = "registered"


class SchemaValidation(StrEnum):
    OFF = "off"
    ID = "id"
    FULL = "full"


class OnInvalid(StrEnum):
    REJECT = "reject"
    QUARANTINE = "quarantine"


class HoldAction(StrEnum):
    ALARM = "alarm"
    BLOCK = "block"
    DROP = "drop"


class ReportJob(StrEnum):
    """A job that reports on the topic, once a day."""

    QUALITY = "quality"
    TRAFFIC = "traffic"
    AUDIT = "audit"


class Ordering(StrEnum):
    NONE = "none"
    KEY = "key"
    STRICT = "strict"


class RetryPreset(StrEnum):
    IN_CLUSTER = "in-cluster"
    WEBHOOK = "webhook"


class DeletionPolicy(StrEnum):
    RETAIN = "Retain"
    DELETE = "Delete"
    DELETE_IF_EMPTY = "DeleteIfEmpty"


PoolName = Annotated[str, StringConstraints(min_length=1, max_length=40, pattern=NAMESPACE_PATTERN)]


class PoolReference(Model):
    name: PoolName = "default"
    """Name of the BrokerPool that serves the topic; a broker of its own ignores it."""


class Retention(Model):
    time_ms: Annotated[DurationMs, duration_limits(SECOND_MS)] = Field(
        default=7 * DAY_MS, alias="time"
    )
    """How long records are kept at least, by append time; whole sealed segments are deleted."""
    size_bytes: Annotated[QuantityBytes, size_limits(1)] | None = Field(default=None, alias="bytes")
    """Bytes kept per partition at most, in whole sealed segments; left out means unlimited."""


class Segment(Model):
    size_bytes: Annotated[QuantityBytes, size_limits(16 * KIB, 2 * GIB - 1)] = Field(
        default=256 * MIB, alias="bytes"
    )
    """A segment is sealed when it has this size; positions in a segment are 31 bits wide."""
    time_ms: Annotated[DurationMs, duration_limits(SECOND_MS, 365 * DAY_MS)] = Field(
        default=HOUR_MS, alias="time"
    )
    """A segment is sealed when it is this old, so that retention and archive can take it."""


class Buffer(Model):
    records: int = Field(default=10_000, ge=1, le=1_000_000, strict=True)
    """Records per partition that may wait for the log writer."""
    size_bytes: Annotated[QuantityBytes, size_limits(4 * KIB, GIB)] = Field(
        default=16 * MIB, alias="bytes"
    )
    """Bytes per partition that may wait for the log writer."""
    when_full: WhenFull = WhenFull.WAIT
    """wait: up to 5 s, then 429. reject: 429 at once. dropOldest: drop the oldest record that was
    published with acks=none, and reject when there is none."""


class SchemaRule(Model):
    subject: Text | None = None
    """Subject in the schema registry."""
    validation: SchemaValidation = SchemaValidation.OFF
    """off, id (the schema id must be known), or full (the payload must fit)."""
    on_invalid: OnInvalid = OnInvalid.REJECT
    """What happens to a message that does not fit."""


class HoldMax(Model):
    """How much retention may hold back for an archive that is behind."""

    model_config = checked(
        rule(
            "self.action == 'alarm' || has(self.bytes) || has(self.time)",
            "block and drop need a limit: set holdMax.bytes or holdMax.time",
        ),
    )

    size_bytes: Annotated[QuantityBytes, size_limits(1)] | None = Field(default=None, alias="bytes")
    """Bytes per partition held back at most; left out means as much as the volume has."""
    time_ms: Annotated[DurationMs, duration_limits(SECOND_MS)] | None = Field(
        default=None, alias="time"
    )
    """How long beyond retention.time a segment is held back at most; left out means for ever."""
    action: HoldAction = HoldAction.ALARM
    """What happens at a limit. alarm: a log line and a metric. block: publishing is refused until
    the archive has caught up. drop: the oldest segments are deleted unarchived, and counted."""


class Archive(Model):
    enabled: bool = Field(default=False, strict=True)
    """Whether sealed segments are archived to a table, and kept until they are."""
    schedule: Schedule = "0 * * * *"
    """When the archive job runs: five fields of cron, @hourly or the like, or @every 30m."""
    time_zone: TimeZone = "UTC"
    """Time zone of the schedule, as in Europe/Berlin."""
    jobs: list[ReportJob] = Field(default=[], max_length=3)
    """Further jobs, each once a day: quality looks for what is wrong in the log, traffic counts by
    minute and key what the table holds, audit compares the two."""
    hold_max: HoldMax = HoldMax()
    """How much retention may hold back for the archive."""


class Quota(Model):
    bytes_per_second: Annotated[QuantityBytes, size_limits(1)] | None = None
    """Bytes that may be published each second; left out means unlimited."""
    records_per_second: Annotated[int, Field(ge=1, le=2**31, strict=True)] | None = None
    """Records that may be published each second; left out means unlimited."""


class Delivery(Model):
    """Defaults for subscriptions that do not say."""

    ack_deadline_ms: Annotated[DurationMs, duration_limits(SECOND_MS, 12 * HOUR_MS)] = Field(
        default=30 * SECOND_MS, alias="ackDeadline"
    )
    """How long a consumer has to acknowledge a message."""
    ordering: Ordering = Ordering.NONE
    """Whether a failing message holds back later ones: of none, of its key, or all."""
    retry_preset: RetryPreset = RetryPreset.IN_CLUSTER
    """Schedule of the attempts."""


class TopicSpec(Model):
    """What a topic shall be. A key left out has its default."""

    model_config = checked(
        rule(
            "self.partitions >= oldSelf.partitions",
            "partitions can grow but not shrink: create a new topic and replay into it",
            field="partitions",
        ),
        rule(
            unchanged("topicName"),
            "topicName is fixed at creation: put it back, or create a new Topic",
        ),
        rule(
            "quantity(string(self.buffer.bytes))"
            ".compareTo(quantity(string(self.maxMessageBytes))) >= 0",
            "the buffer is smaller than maxMessageBytes, so the largest message would never fit: "
            "raise buffer.bytes or lower maxMessageBytes",
            field="buffer.bytes",
        ),
    )

    pool: PoolReference = PoolReference()
    """The BrokerPool that serves the topic."""
    topic_name: Name | None = None
    """Name of the topic at the broker; left out, it is metadata.name. Fixed at creation."""
    partitions: int = Field(default=1, ge=1, le=MAX_PARTITIONS, strict=True)
    """Number of partitions. It can grow, which moves keys to other partitions, but never shrink."""
    replicas: int = Field(default=1, ge=1, le=9, strict=True)
    """Copies of each partition."""
    min_in_sync_replicas: int = Field(default=1, ge=1, le=9, strict=True)
    """Copies that must be in step before a record is acknowledged."""
    partitioner: Partitioner = Partitioner.KEY_HASH
    """How a record finds its partition: keyHash is xxh64(key) mod partitions."""
    dispatch: Dispatch = Dispatch.BROADCAST
    """Default for subscriptions: broadcast gives everyone everything, queue each message to one."""
    durability: Durability = Durability.FLUSHED
    """What an acknowledgement means: flushed to the volume, or written to the page cache."""
    retention: Retention = Retention()
    """How long and how much is kept."""
    segment: Segment = Segment()
    """When a segment file is sealed and the next one begun."""
    cleanup: Cleanup = Cleanup.DELETE
    """delete drops old segments; compact keeps the last record of each key."""
    max_message_bytes: Annotated[QuantityBytes, size_limits(1, MAX_MESSAGE_BYTES)] = MIB
    """Largest message: key, value and headers together."""
    buffer: Buffer = Buffer()
    """The input buffer of each partition."""
    deduplication_window_ms: Annotated[DurationMs, duration_limits(0, DAY_MS)] = Field(
        default=2 * MINUTE_MS, alias="deduplicationWindow"
    )
    """How long message ids are remembered, at most 200,000 of them; 0s turns it off."""
    publishers: Publishers = Publishers.ANYONE
    """Who may publish."""
    schema_rule: SchemaRule = Field(default=SchemaRule(), alias="schema")
    """Validation of payloads."""
    archive: Archive = Archive()
    """Archiving to a table."""
    quota: Quota = Quota()
    """Limits on publishing."""
    delivery: Delivery = Delivery()
    """Defaults for subscriptions."""
    deletion_policy: DeletionPolicy = DeletionPolicy.RETAIN
    """What deleting does: Retain keeps the data and detaches the topic; Delete removes both;
    DeleteIfEmpty refuses while messages are left."""

    def fingerprint(self) -> str:
        """A hash that is equal exactly when the specs are."""
        encoded = msgspec.json.encode(self.document(), order="sorted")
        return hashlib.sha256(encoded).hexdigest()[:32]


class TopicEndpoints(Model):
    publish: Text
    """Path to publish to."""
    fetch: Text
    """Path to read partition 0 from."""
    stream: Text
    """Path of live events."""


class TopicArchiveStatus(Model):
    """How far the archive is, as the broker knows it; only where archive.enabled."""

    model_config = ConfigDict(extra="ignore")

    archived_up_to: list[Count] = Field(default=[], max_length=MAX_PARTITIONS)
    """Of each partition the first offset that is not known to be in the table."""
    lag: Count | None = None
    """Messages that are not in the table yet."""
    held_bytes: Count | None = None
    """Bytes that retention would have deleted and keeps for the archive."""
    is_over_hold: bool | None = None
    """Whether more is held back than holdMax allows."""
    complete_through: Timestamp | None = None
    """All messages that were appended before this time are in the table."""
    table: ArchiveTable | None = None
    """The table."""
    last_run: ArchiveRun | None = None
    """The run that reported last."""


class TopicStatus(Model):
    """What the broker observes; never part of a wish."""

    model_config = ConfigDict(extra="ignore")

    topic_id: Text | None = None
    """Id of the topic; a topic made anew after a deletion has another one."""
    origin: Literal["api", "resource"] | None = None
    """Whether it was made over HTTP or comes from a resource."""
    managed_by: Text | None = None
    """The resource that owns it, as Topic namespace/name."""
    observed_generation: Count | None = None
    """The generation that was last applied."""
    messages: Count | None = None
    """Messages that can be read."""
    size_bytes: Count | None = Field(default=None, alias="bytes")
    """Bytes on the volume."""
    subscriptions: Count | None = None
    """Subscriptions that read it."""
    endpoints: TopicEndpoints | None = None
    """Where to publish and read."""
    archive: TopicArchiveStatus | None = None
    """How far the archive is."""
    conditions: Conditions = Field(default=[])
    """The state, aspect by aspect."""


class Topic(Model):
    """A named, partitioned, durable log of messages."""

    api_version: Literal["ibrik.dev/v1beta1"] = "ibrik.dev/v1beta1"
    """Version of this schema."""
    kind: Literal["Topic"] = "Topic"
    """Always Topic."""
    metadata: ObjectMeta
    """Identity."""
    spec: TopicSpec = TopicSpec()
    """The wish."""
    status: TopicStatus | None = None
    """The observation; ignored in a request."""

    @property
    def topic_name(self) -> str:
        return self.spec.topic_name or self.metadata.name
