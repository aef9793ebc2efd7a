"""Bodies of replays and dead letters: what shall come once more, and what became of it.

Part of the data plane's bodies (`http.py`), which are msgspec structs in snake_case.
"""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from ibrik_api.consuming import SomePartitions
from ibrik_api.messages import MessageView, PartitionIndex, Position, Timestamp
from ibrik_api.registering import NameText, PageToken

MAX_RATE = 1_000_000
Rate = Annotated[int, Meta(ge=1, le=MAX_RATE, description="Messages a second at most.")]
FilterText = Annotated[
    str, Meta(min_length=1, max_length=4_096, description="A CEL expression; others stay out.")
]


# --- replays --------------------------------------------------------------------------------------


class ReplayPlace(Struct, forbid_unknown_fields=True):
    """Exactly one of these."""

    offset: Annotated[
        Position | UnsetType, Meta(description="The same offset for all partitions.")
    ] = UNSET
    offsets: Annotated[
        Annotated[list[Position], Meta(min_length=1, max_length=256)] | UnsetType,
        Meta(description="One for each partition that is replayed."),
    ] = UNSET
    timestamp: Annotated[
        Timestamp | UnsetType, Meta(description="The first message appended then or later.")
    ] = UNSET
    id: Annotated[
        Annotated[str, Meta(max_length=128)] | UnsetType,
        Meta(description="Behind this message (TOPIC-ID-PARTITION-OFFSET), in its partition."),
    ] = UNSET


AnyPlace = Literal["earliest", "latest"] | ReplayPlace


class ReplaySource(Struct, forbid_unknown_fields=True, rename={"from_": "from"}):
    """Which messages. The range is fixed when the replay begins."""

    topic: NameText
    from_: Annotated[AnyPlace, Meta(description="The first message.")]
    to: Annotated[
        AnyPlace | UnsetType,
        Meta(description="The first message that is no part of it; left out, what is there now."),
    ] = UNSET
    partitions: Annotated[
        SomePartitions | UnsetType, Meta(description="Only these; left out, all.")
    ] = UNSET
    filter: FilterText | UnsetType = UNSET


class ReplayTarget(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Exactly one of these, by name."""

    channel: NameText | UnsetType = UNSET
    topic: NameText | UnsetType = UNSET


class ReplayRequest(Struct, forbid_unknown_fields=True):
    """A part of a topic, once more to one place."""

    source: ReplaySource
    target: ReplayTarget
    rate: Rate | None = None
    dry_run: Annotated[bool, Meta(description="Only say what would be sent.")] = False


class ReplayRange(Struct, omit_defaults=True, rename={"from_": "from"}):
    """Of one partition: from an offset to before another."""

    partition: PartitionIndex
    from_: Position
    to: Position
    count: Position
    next_offset: Annotated[
        Position | UnsetType, Meta(description="Everything before is done, or waits for a retry.")
    ] = UNSET


class ReplayDryRun(Struct):
    """What would be sent, before the filter."""

    topic: str
    total: Position
    partitions: list[ReplayRange]


class ReplayView(Struct, omit_defaults=True):
    """total = delivered + failed + filtered + missing + remaining."""

    id: str
    state: Literal["running", "done", "failed", "cancelled"]
    topic: str
    target: ReplayTarget
    filter: str | None
    rate: int | None
    total: Position
    delivered: Position
    failed: Annotated[int, Meta(ge=0, description="Had all their attempts; no dead letters.")]
    filtered: Annotated[int, Meta(ge=0, description="Did not fit the filter.")]
    missing: Annotated[int, Meta(ge=0, description="Were deleted before they were delivered.")]
    remaining: Position
    detail: Annotated[str, Meta(description="Why it failed.")]
    started: Timestamp
    ended: Timestamp | None
    partitions: Annotated[
        list[ReplayRange] | UnsetType, Meta(description="Of one replay; lists leave it out.")
    ] = UNSET


class ReplayList(Struct):
    """One page, the newest first."""

    items: list[ReplayView]
    next_page_token: PageToken = UNSET


# --- dead letters ---------------------------------------------------------------------------------


class LetterOrigin(Struct):
    """Where the message is, or was, that could not be delivered."""

    topic: str
    partition: PartitionIndex
    offset: Position


class DeadLetter(MessageView, kw_only=True):
    """A message that had all its attempts; partition and offset are those of the dead letter."""

    reason: Annotated[str, Meta(description="One word for what went wrong, such as timeout.")]
    status: Annotated[int | None, Meta(description="Of the last answer; null without one.")]
    error: str
    attempts: Position
    first_attempt: str
    last_attempt: str
    origin: LetterOrigin
    state: Literal["dead", "redriven"]


class DeadLetterList(Struct):
    """One page, in the order of their offsets."""

    subscription: str
    topic: Annotated[str | None, Meta(description="Where they are; null: there never was one.")]
    items: list[DeadLetter]
    next_page_token: PageToken = UNSET


class LetterPlace(Struct, forbid_unknown_fields=True):
    """A dead letter by its place in the dead-letter topic."""

    offset: Position
    partition: PartitionIndex = 0


MAX_PLACES = 10_000


class RedriveRequest(Struct, forbid_unknown_fields=True):
    """Which dead letters to deliver again; an empty body means all that are dead."""

    filter: FilterText | UnsetType = UNSET
    offsets: Annotated[
        Annotated[list[LetterPlace], Meta(min_length=1, max_length=MAX_PLACES)] | UnsetType,
        Meta(description="Only these."),
    ] = UNSET
    rate: Rate | None = None
    dry_run: Annotated[bool, Meta(description="Only say what would happen.")] = False


class ExpiredLetter(Struct):
    partition: PartitionIndex
    offset: Position
    origin: LetterOrigin


class RedriveResult(Struct, omit_defaults=True):
    """matched = redriven + waiting + expired; what was redriven before does not match."""

    topic: str
    dry_run: bool
    matched: Position
    redriven: Position
    waiting: Annotated[int, Meta(ge=0, description="Are on their way to the subscription anyway.")]
    expired: Annotated[
        int, Meta(ge=0, description="Stay: the original is not in its topic any more.")
    ]
    expired_letters: Annotated[list[ExpiredLetter], Meta(description="The first of them.")]
    complete: Annotated[bool, Meta(description="false: there are more, ask again.")]
    advice: Annotated[str | UnsetType, Meta(description="The next step.")] = UNSET


class PurgeRequest(Struct, forbid_unknown_fields=True):
    dry_run: Annotated[bool, Meta(description="Only say what would be deleted.")] = False


class PurgeResult(Struct):
    topic: str
    dry_run: bool
    purged: Position


STRUCTS = (
    ReplayRequest,
    ReplayDryRun,
    ReplayView,
    ReplayList,
    DeadLetterList,
    RedriveRequest,
    RedriveResult,
    PurgeRequest,
    PurgeResult,
)
