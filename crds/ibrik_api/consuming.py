"""Bodies of consuming a subscription: leases, what becomes of them, positions, seeks.

Part of the data plane's bodies (`http.py`), which are msgspec structs in snake_case.
"""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from ibrik_api.messages import MessageView, PartitionIndex, Position, Timestamp


class LeaseRequest(Struct, forbid_unknown_fields=True):
    """What to lease; an empty body asks for what the defaults say."""

    max: Annotated[int, Meta(ge=1, le=1_000, description="Messages at most.")] = 100
    wait: Annotated[
        str, Meta(max_length=20, description="How long to wait for a message; 60s at most.")
    ] = "0s"
    max_bytes: Annotated[
        int, Meta(ge=1, le=16 * 2**20, description="Bytes at most; one message always fits.")
    ] = 2**20
    consumer: Annotated[
        str,
        Meta(
            max_length=253,
            description="Who leases. An exclusive subscription tells consumers apart by it.",
        ),
    ] = ""


class LeasedMessage(MessageView, kw_only=True):
    """A message that is yours until the deadline: acknowledge its lease, or give it back."""

    lease: Annotated[str, Meta(description="Opaque; for :ack, :nack and :extend.")]
    attempt: Annotated[int, Meta(ge=1, description="1 when it is handed out for the first time.")]
    deadline: Timestamp


class LeaseList(Struct):
    topic: str
    deadline_ms: Annotated[
        int, Meta(ge=0, description="From the answer to the deadline, for clocks that differ.")
    ]
    messages: list[LeasedMessage]


MAX_LEASES = 10_000
"""Of one request to settle leases."""

Leases = Annotated[list[str], Meta(min_length=1, max_length=MAX_LEASES)]


class AckRequest(Struct, forbid_unknown_fields=True):
    """Leases whose messages are done with, in any order."""

    leases: Leases


class NackRequest(Struct, forbid_unknown_fields=True):
    """Leases whose messages could not be done with."""

    leases: Leases
    delay: Annotated[
        str | None,
        Meta(description="Until the next attempt; 7d at most. Left out, as the retry policy says."),
    ] = None
    reason: Annotated[str, Meta(max_length=1_024, description="For the history.")] = ""


class ExtendRequest(Struct, forbid_unknown_fields=True):
    """Leases of messages that need more time."""

    leases: Leases
    deadline: Annotated[
        str | None,
        Meta(description="From now on; 12h at most. Left out, the subscription's own."),
    ] = None


class StaleLease(Struct):
    """A lease that did not count any more, and why."""

    index: Position
    lease: str
    code: str
    detail: str


class AckResult(Struct):
    acked: Position
    stale: list[StaleLease]


class NackResult(Struct):
    nacked: Position
    stale: list[StaleLease]


class ExtendResult(Struct):
    extended: Position
    deadline_ms: Annotated[int, Meta(ge=0, description="From the answer to the new deadline.")]
    stale: list[StaleLease]


class SubscriptionPosition(Struct, forbid_unknown_fields=True):
    """The next offset of a partition: everything below is settled, or waits for a retry."""

    partition: PartitionIndex
    offset: Position


class SubscriptionOffsets(Struct):
    subscription: str
    topic: str
    epoch: Annotated[int, Meta(ge=0, description="Rises whenever the offsets are moved.")]
    partitions: list[SubscriptionPosition]


class OffsetsRequest(Struct, forbid_unknown_fields=True):
    """Where to go on; partitions that are left out stay where they are."""

    partitions: Annotated[list[SubscriptionPosition], Meta(min_length=1, max_length=256)]


class PartitionBacklog(Struct):
    """earliest ≤ next_offset ≤ latest; `backlog` counts what is not settled yet."""

    partition: PartitionIndex
    next_offset: Position
    earliest: Position
    latest: Position
    backlog: Position
    in_flight: Position
    retrying: Position


class SubscriptionLag(Struct):
    """How far behind a subscription is."""

    subscription: str
    topic: str
    state: str
    backlog: Position
    in_flight: Position
    retrying: Position
    oldest: Annotated[
        Timestamp | None, Meta(description="Append time of the oldest message not settled yet.")
    ]
    partitions: list[PartitionBacklog]


class SeekPlace(Struct, forbid_unknown_fields=True, rename={"from_": "from"}):
    """Exactly one of these."""

    from_: Annotated[
        Literal["earliest", "latest"] | UnsetType, Meta(description="An end of the log.")
    ] = UNSET
    offset: Annotated[
        Position | UnsetType, Meta(description="The same offset for all partitions.")
    ] = UNSET
    offsets: Annotated[
        list[Position] | UnsetType, Meta(description="One for each partition that is moved.")
    ] = UNSET
    timestamp: Annotated[
        Timestamp | UnsetType, Meta(description="First message appended then or later.")
    ] = UNSET


SomePartitions = Annotated[list[PartitionIndex], Meta(min_length=1, max_length=256)]


class SeekRequest(Struct, forbid_unknown_fields=True):
    """Move the cursor: leases in hand become stale, waiting retries are dropped."""

    to: SeekPlace
    partitions: Annotated[
        SomePartitions | UnsetType, Meta(description="Only these; left out, all.")
    ] = UNSET
    dry_run: Annotated[bool, Meta(description="Only say what would happen.")] = False


class SeekMove(Struct, rename={"from_": "from"}):
    """What a seek means for one partition."""

    partition: PartitionIndex
    from_: Position
    to: Position
    redelivered: Annotated[int, Meta(ge=0, description="Settled messages that come once more.")]
    skipped: Annotated[int, Meta(ge=0, description="Unsettled messages that are passed over.")]


class SeekResult(Struct):
    epoch: Position
    dry_run: bool
    partitions: list[SeekMove]


STRUCTS = (
    LeaseRequest,
    LeasedMessage,
    LeaseList,
    AckRequest,
    NackRequest,
    ExtendRequest,
    AckResult,
    NackResult,
    ExtendResult,
    SubscriptionOffsets,
    OffsetsRequest,
    SubscriptionLag,
    SeekRequest,
    SeekResult,
)
