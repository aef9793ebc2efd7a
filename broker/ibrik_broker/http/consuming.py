"""The table of operations on what consumers do with a subscription: lease, settle, follow, seek."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from ibrik_api.consuming import (
    AckRequest,
    AckResult,
    ExtendRequest,
    ExtendResult,
    LeaseList,
    LeaseRequest,
    NackRequest,
    NackResult,
    OffsetsRequest,
    SeekRequest,
    SeekResult,
    SubscriptionLag,
    SubscriptionOffsets,
)
from ibrik_api.names import MAX_NAME_LENGTH, NAME_PATTERN
from ibrik_api.resources.subscription import MAX_IN_FLIGHT
from ibrik_broker.delivery.dispatcher import Dispatcher
from ibrik_broker.delivery.tokens import Tokens
from ibrik_broker.http.door import Door
from ibrik_broker.http.lease_stream import MAX_CONSUMER_CHARACTERS, LeaseStreams
from ibrik_broker.http.leases import Consuming, LeaseHandlers
from ibrik_broker.http.operations import (
    EVENT_STREAM,
    JSON,
    TEXT,
    Answer,
    Body,
    Operation,
    Parameter,
)
from ibrik_broker.http.presence import Presence
from ibrik_broker.http.seeks import SeekHandlers
from ibrik_broker.telemetry.metrics import Reading

PATH = "/v1/subscriptions/{subscription}"
TAG = "consume"
SUBSCRIPTION = Parameter(
    "subscription",
    "path",
    "Name of the subscription.",
    {"type": "string", "pattern": NAME_PATTERN, "minLength": 1, "maxLength": MAX_NAME_LENGTH},
    example="billing",
)
FIND_CODES = ("invalid-name", "unknown-subscription", "subscription-detached")
SETTLE_CODES = (*FIND_CODES, "wrong-mode", "invalid-json", "metadata-unavailable")
LEASE_CODES = (
    *SETTLE_CODES,
    "consumer-conflict",
    "subscription-paused",
    "unknown-topic",
    "not-ready",
)
MOVE_CODES = (
    *FIND_CODES,
    "invalid-json",
    "invalid-offset",
    "unknown-topic",
    "unknown-partition",
    "offset-below-start",
    "offset-above-end",
    "metadata-unavailable",
)
LEASES = {"leases": ["AbCd…"]}
ETAG = {"ETag": "Epoch of the offsets, for If-Match."}


@dataclass(frozen=True, slots=True)
class Subscriptions:
    """What the door needs of delivery to serve consumers."""

    dispatcher: Dispatcher
    find: Callable[[str], str]
    """The id of the subscription of this name. Raises Refusal `unknown-subscription`."""
    tokens: Tokens


class ConsumerPlane:
    """The part of the data plane that serves consumers."""

    def __init__(self, subscriptions: Subscriptions, door: Door, heartbeat_ms: int) -> None:
        self.presence = Presence()
        self.streams = LeaseStreams(heartbeat_ms)
        consuming = Consuming(
            door,
            subscriptions.dispatcher,
            subscriptions.find,
            subscriptions.tokens,
            self.presence,
            self.streams.on_settled,
        )
        self.operations = consuming_operations(consuming, self.streams)

    def readings(self) -> Iterator[Reading]:
        return self.streams.readings()

    def close(self) -> None:
        """Let everybody go who waits."""
        self.presence.close()


def consuming_operations(consuming: Consuming, streams: LeaseStreams) -> list[Operation]:
    leases = LeaseHandlers(consuming)
    seeks = SeekHandlers(consuming)
    return [
        _lease(leases),
        *_settle(leases),
        _stream(consuming, streams),
        *_look(seeks),
        _put_offsets(seeks),
        _seek(seeks),
    ]


def _lease(leases: LeaseHandlers) -> Operation:
    return Operation(
        "leaseMessages",
        "POST",
        f"{PATH}:lease",
        TAG,
        "Take messages to work on.",
        leases.lease,
        (
            Answer(200, "Messages, each yours until its deadline.", (Body(JSON, LeaseList),)),
            Answer(204, "There were none in time."),
        ),
        (*LEASE_CODES, "shutting-down"),
        "Acknowledge each with `:ack` before its deadline, or it comes again. A client that goes"
        " before it has its answer, or ends its side of the connection, leaves the messages to"
        " others; that attempt does not count.",
        parameters=(SUBSCRIPTION,),
        bodies=(Body(JSON, LeaseRequest, example={"max": 100, "wait": "20s"}),),
        is_body_required=False,
    )


def _settle(leases: LeaseHandlers) -> list[Operation]:
    stale = " Leases that are expired, stale or forged are listed; they do not harm the others."
    return [
        Operation(
            "ackMessages",
            "POST",
            f"{PATH}:ack",
            TAG,
            "Acknowledge: the messages are done with.",
            leases.ack,
            (Answer(200, f"What counted.{stale}", (Body(JSON, AckResult),)),),
            SETTLE_CODES,
            "In any order; a repeat is fine. The answer comes when it is durable.",
            parameters=(SUBSCRIPTION,),
            bodies=(Body(JSON, AckRequest, example=LEASES),),
        ),
        Operation(
            "nackMessages",
            "POST",
            f"{PATH}:nack",
            TAG,
            "Give back what could not be done: it comes again.",
            leases.nack,
            (Answer(200, f"What counted.{stale}", (Body(JSON, NackResult),)),),
            (*SETTLE_CODES, "storage-full", "storage-failed"),
            "After `delay`, or as the retry policy says. The last attempt goes to the dead"
            " letters.",
            parameters=(SUBSCRIPTION,),
            bodies=(Body(JSON, NackRequest, example=LEASES | {"delay": "5s", "reason": "busy"}),),
        ),
        Operation(
            "extendLeases",
            "POST",
            f"{PATH}:extend",
            TAG,
            "Begin the deadlines anew, for work that takes longer.",
            leases.extend,
            (Answer(200, f"What counted.{stale}", (Body(JSON, ExtendResult),)),),
            SETTLE_CODES,
            parameters=(SUBSCRIPTION,),
            bodies=(Body(JSON, ExtendRequest, example=LEASES | {"deadline": "60s"}),),
        ),
    ]


def _stream(consuming: Consuming, streams: LeaseStreams) -> Operation:
    return Operation(
        "streamLeases",
        "GET",
        f"{PATH}/stream",
        TAG,
        "Messages of a subscription as they come, as server-sent events.",
        partial(streams.handle, consuming),
        (Answer(200, "Events without an end.", (Body(EVENT_STREAM, TEXT),)),),
        (*FIND_CODES, "wrong-mode", "consumer-conflict", "subscription-paused", "unknown-topic"),
        "Events without a name hold a `LeasedMessage`, to be acknowledged with `:ack`. `gap` says"
        " what could not be read any more, `goodbye` is the last one. When the reader goes, what"
        " it has not settled goes to others at once.",
        parameters=(
            SUBSCRIPTION,
            Parameter(
                "max",
                "query",
                "Messages that are not settled yet, at most; left out, the subscription's"
                " maxInFlight.",
                {"type": "integer", "minimum": 1, "maximum": MAX_IN_FLIGHT},
            ),
            Parameter(
                "ack",
                "query",
                "`auto` settles each message before it is written: at most once, nothing is"
                " repeated.",
                {"type": "string", "enum": ["explicit", "auto"], "default": "explicit"},
            ),
            Parameter(
                "consumer",
                "query",
                "Who listens; for people, and to lease besides from an exclusive subscription.",
                {"type": "string", "minLength": 1, "maxLength": MAX_CONSUMER_CHARACTERS},
            ),
        ),
    )


def _look(seeks: SeekHandlers) -> list[Operation]:
    return [
        Operation(
            "readLag",
            "GET",
            f"{PATH}/lag",
            TAG,
            "How far a subscription is behind.",
            seeks.lag,
            (Answer(200, "In total, and of each partition.", (Body(JSON, SubscriptionLag),)),),
            FIND_CODES,
            parameters=(SUBSCRIPTION,),
        ),
        Operation(
            "readOffsets",
            "GET",
            f"{PATH}/offsets",
            TAG,
            "Where a subscription stands.",
            seeks.offsets,
            (Answer(200, "One offset a partition.", (Body(JSON, SubscriptionOffsets),), ETAG),),
            (*FIND_CODES, "metadata-unavailable"),
            parameters=(SUBSCRIPTION,),
        ),
    ]


def _put_offsets(seeks: SeekHandlers) -> Operation:
    example = {"partitions": [{"partition": 0, "offset": 1200}]}
    return Operation(
        "replaceOffsets",
        "PUT",
        f"{PATH}/offsets",
        TAG,
        "Go on at these offsets. Leases in hand become stale, waiting retries are dropped.",
        seeks.put_offsets,
        (Answer(200, "It stands there.", (Body(JSON, SubscriptionOffsets),), ETAG),),
        (*MOVE_CODES, "precondition-failed"),
        parameters=(
            SUBSCRIPTION,
            Parameter("If-Match", "header", "ETag that was read, or *; refused when it changed."),
        ),
        bodies=(Body(JSON, OffsetsRequest, example=example),),
        is_registration=True,
    )


def _seek(seeks: SeekHandlers) -> Operation:
    return Operation(
        "seekSubscription",
        "POST",
        f"{PATH}:seek",
        TAG,
        "Move a subscription back or forth. Leases in hand become stale, retries are dropped.",
        seeks.seek,
        (Answer(200, "What it means for each partition.", (Body(JSON, SeekResult),)),),
        MOVE_CODES,
        "`dry_run` only says what would happen.",
        parameters=(SUBSCRIPTION,),
        bodies=(
            Body(
                JSON,
                SeekRequest,
                example={"to": {"timestamp": "2026-11-27T10:00:00Z"}, "dry_run": True},
            ),
        ),
        is_registration=True,
    )
