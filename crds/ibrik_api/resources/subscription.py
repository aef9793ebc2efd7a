"""The Subscription resource: who reads a topic, and how.

Rules across fields and between two specs live in `subscription_rules`.
"""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from ibrik_api.durations import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    SECOND_MS,
    DurationMs,
    duration_limits,
)
from ibrik_api.model import Model
from ibrik_api.names import Name, Namespace
from ibrik_api.resources.cel import checked, rule
from ibrik_api.resources.destination import Destination
from ibrik_api.resources.meta import Conditions, ObjectMeta, Timestamp
from ibrik_api.resources.topic import Ordering, RetryPreset

MAX_IN_FLIGHT = 100_000
MAX_FILTER_CHARACTERS = 4_096

Count = Annotated[int, Field(ge=0, le=2**63 - 1, strict=True)]
Text = Annotated[str, StringConstraints(max_length=253)]


class Mode(StrEnum):
    PUSH = "push"
    PULL = "pull"
    STREAM = "stream"


class GroupType(StrEnum):
    EXCLUSIVE = "exclusive"
    SHARED = "shared"


class StartFrom(StrEnum):
    EARLIEST = "earliest"
    LATEST = "latest"
    OFFSET = "offset"
    TIMESTAMP = "timestamp"


class Guarantee(StrEnum):
    AT_LEAST_ONCE = "atLeastOnce"
    FIRE_AND_FORGET = "fireAndForget"


class OnGap(StrEnum):
    CONTINUE = "continue"
    PAUSE = "pause"


class OnExhausted(StrEnum):
    DEAD_LETTER = "deadLetter"
    BLOCK = "block"


class Jitter(StrEnum):
    NONE = "none"
    EQUAL = "equal"
    FULL = "full"


class SubscriptionDeletionPolicy(StrEnum):
    RETAIN = "Retain"
    DELETE = "Delete"


class TopicReference(Model):
    name: Name
    """Name of the Topic in the same namespace; over HTTP also its name at the broker."""


class ChannelReference(Model):
    name: Name
    """Name of the Channel."""
    namespace: Namespace | None = None
    """Its namespace, when it is another one; the channel's allowedNamespaces must allow it."""


class Start(Model):
    """Where a new subscription begins."""

    model_config = checked(
        rule(
            "self.from in ['offset', 'timestamp'] || !has(self.value)",
            "earliest and latest need no value: leave it out, or begin from offset or timestamp",
            field="value",
        ),
        rule(
            "!(self.from in ['offset', 'timestamp']) || has(self.value)",
            "offset and timestamp need a value: say where to begin",
            field="value",
        ),
        rule(
            "self.from != 'offset' || !has(self.value) || "
            "self.value.matches('^[0-9]{1,19}(,[0-9]{1,19})*$')",
            "it is no offset: write one whole number, or one for each partition with commas",
            field="value",
        ),
    )

    from_: StartFrom = Field(default=StartFrom.EARLIEST, alias="from")
    """earliest, latest, or what value says."""
    value: Text | None = None
    """With offset: one offset, or one for each partition with commas between. With timestamp:
    RFC 3339."""


class Ack(Model):
    deadline_ms: Annotated[DurationMs, duration_limits(SECOND_MS, 12 * HOUR_MS)] | None = Field(
        default=None, alias="deadline"
    )
    """How long a consumer has to acknowledge; left out, the topic's delivery.ackDeadline."""
    max_in_flight: int = Field(default=1_000, ge=1, le=MAX_IN_FLIGHT, strict=True)
    """Messages handed out and not settled at most, over all consumers."""


class Backoff(Model):
    """Waits between attempts: initial · factor^n, at most max."""

    model_config = checked(
        rule(
            "self.initial <= self.max",
            "initial is longer than max: lower it or raise max",
            field="initial",
        )
    )

    initial_ms: Annotated[DurationMs, duration_limits(1, DAY_MS)] = Field(
        default=500, alias="initial"
    )
    """Wait after the first attempt."""
    factor: float = Field(default=2.0, ge=1.0, le=10.0, strict=True)
    """What each further wait is multiplied by."""
    max_ms: Annotated[DurationMs, duration_limits(1, 7 * DAY_MS)] = Field(
        default=MINUTE_MS, alias="max"
    )
    """Longest wait."""
    jitter: Jitter = Jitter.EQUAL
    """none: exact. equal: half to whole. full: none to whole of each wait, by chance."""


class Retry(Model):
    """A preset, or numbers of one's own; what is given besides a preset wins over it."""

    preset: RetryPreset | None = None
    """in-cluster (0.5 s doubling to 60 s, 12 attempts) or webhook (10 attempts over 3 days)."""
    max_attempts: Annotated[int, Field(ge=1, le=1_000, strict=True)] | None = None
    """Attempts at most, the first one included."""
    backoff: Backoff | None = None
    """Waits between attempts."""
    max_age_ms: Annotated[DurationMs, duration_limits(SECOND_MS, 30 * DAY_MS)] | None = Field(
        default=None, alias="maxAge"
    )
    """No attempt is begun later than this after the first one."""
    on_exhausted: OnExhausted = OnExhausted.DEAD_LETTER
    """deadLetter: the message goes to the dead-letter topic. block: it waits until someone resumes
    the subscription, and holds back what ordering says."""


class DeadLetter(Model):
    model_config = checked(
        rule(
            "!(has(self.topicRef) && has(self.channelRef))",
            "topicRef and channelRef exclude each other: keep one",
        )
    )

    topic_ref: TopicReference | None = None
    """Topic that dead letters go to; left out, `<topic>.<subscription>.dlq`."""
    channel_ref: ChannelReference | None = None
    """Channel that dead letters go to."""


class ReplayRequest(Model):
    request_id: Text
    """Each new value asks for one replay."""
    from_: Text = Field(alias="from")
    """Offset or time to begin at."""
    to: Text | None = None
    """Offset or time to end before."""


_REPEATS = "self.delivery != 'fireAndForget'"
_FIRE_AND_FORGET = (
    rule(
        f"{_REPEATS} || self.mode == 'push'",
        "fireAndForget is for mode push, others settle messages: use mode push or atLeastOnce",
        field="delivery",
    ),
    rule(
        f"{_REPEATS} || (self.retry.onExhausted == 'deadLetter' && !(has(self.retry.preset) || "
        "has(self.retry.maxAttempts) || has(self.retry.backoff) || has(self.retry.maxAge)))",
        "nothing is repeated with fireAndForget: leave retry out",
        field="retry",
    ),
    rule(
        f"{_REPEATS} || !(has(self.deadLetter.topicRef) || has(self.deadLetter.channelRef))",
        "nothing is repeated with fireAndForget: leave deadLetter out",
        field="deadLetter",
    ),
    rule(
        f"{_REPEATS} || !has(self.ordering) || self.ordering == 'none'",
        "nothing waits for another message with fireAndForget: leave ordering out",
        field="ordering",
    ),
)


class SubscriptionSpec(Model):
    """Who reads a topic, and how. A key left out has its default."""

    model_config = checked(
        rule(
            "self.topicRef == oldSelf.topicRef",
            "topicRef is fixed at creation: put it back, or create a new Subscription",
            field="topicRef",
        ),
        rule(
            "self.mode != 'push' || has(self.channelRef) || has(self.push)",
            "mode push needs a destination: give channelRef or push",
        ),
        rule(
            "self.mode != 'push' || !(has(self.channelRef) && has(self.push))",
            "channelRef and push exclude each other: keep one",
            field="push",
        ),
        rule(
            "self.mode == 'push' || !(has(self.channelRef) || has(self.push))",
            "pull and stream deliver nowhere: leave channelRef and push out, or use mode push",
        ),
        rule(
            "self.retry.onExhausted != 'block' || "
            "!(has(self.deadLetter.topicRef) || has(self.deadLetter.channelRef))",
            "with retry.onExhausted block nothing becomes a dead letter: leave one of them out",
            field="deadLetter",
        ),
        *_FIRE_AND_FORGET,
    )

    topic_ref: TopicReference
    """The topic. Fixed at creation."""
    mode: Mode = Mode.PULL
    """push: the broker sends. pull: consumers lease. stream: consumers listen on a live stream."""
    type: GroupType | None = None
    """exclusive: one consumer at a time. shared: each message to one of several. Left out, as the
    topic's dispatch says: broadcast is exclusive, queue is shared."""
    channel_ref: ChannelReference | None = None
    """Where push delivers to."""
    push: Destination | None = None
    """Where push delivers to, written here instead of in a Channel."""
    filter: Annotated[str, StringConstraints(max_length=MAX_FILTER_CHARACTERS)] | None = None
    """CEL expression on event, headers, key and data; only messages that fit are delivered."""
    start: Start = Start()
    """Where a new subscription begins; later changes have no effect."""
    ack: Ack = Ack()
    """Leases of pull and stream."""
    delivery: Guarantee = Guarantee.AT_LEAST_ONCE
    """fireAndForget: one try, nothing is repeated, losses are counted."""
    ordering: Ordering | None = None
    """none, key (one message of a key at a time) or strict (one of a partition at a time). Left
    out, the topic's delivery.ordering."""
    on_gap: OnGap = OnGap.CONTINUE
    """What happens when retention removed messages that were not delivered yet."""
    retry: Retry = Retry()
    """Schedule of the attempts. Left out, the topic's delivery.retryPreset."""
    dead_letter: DeadLetter = DeadLetter()
    """Where messages go that cannot be delivered."""
    rate_limit: Annotated[int, Field(ge=1, le=1_000_000, strict=True)] | None = None
    """Messages a second at most; left out means unlimited."""
    paused: bool = Field(default=False, strict=True)
    """Whether delivery rests; the cursor stays."""
    replay: ReplayRequest | None = None
    """A replay to this subscription's destination."""
    deletion_policy: SubscriptionDeletionPolicy = SubscriptionDeletionPolicy.RETAIN
    """Retain: stops delivering and keeps the cursor. Delete: forgets it."""


class SubscriptionStatus(Model):
    """What the broker observes."""

    subscription_id: Text | None = None
    """Id of this incarnation of the subscription."""
    origin: Text | None = None
    """api or resource."""
    managed_by: Text | None = None
    """The resource that the subscription comes from; it is read-only over HTTP then."""
    observed_generation: Count | None = None
    """Generation that the broker serves."""
    topic: Text | None = None
    """Name of the topic at the broker."""
    destination: Text | None = None
    """Where push delivers to, for people."""
    backlog: Count | None = None
    """Messages that are not settled yet."""
    oldest_time: Timestamp | None = None
    """Append time of the oldest message that is not settled yet."""
    in_flight: Count | None = None
    """Messages on their way, or leased."""
    retrying: Count | None = None
    """Messages that failed and wait for their next attempt."""
    dead_lettered: Count | None = None
    """Messages that went to the dead-letter topic since the broker started."""
    state: Text | None = None
    """active, paused, retrying, blocked, circuit-open or stopped; elsewhere: at a broker that does
    not answer."""
    conditions: Conditions = Field(default=[])
    """The state, aspect by aspect."""


class Subscription(Model):
    """Who reads a topic, and how."""

    api_version: Literal["ibrik.dev/v1beta1"] = "ibrik.dev/v1beta1"
    """Version of this schema."""
    kind: Literal["Subscription"] = "Subscription"
    """Always Subscription."""
    metadata: ObjectMeta
    """Identity."""
    spec: SubscriptionSpec
    """The wish."""
    status: SubscriptionStatus | None = None
    """The observation; ignored in a request."""
