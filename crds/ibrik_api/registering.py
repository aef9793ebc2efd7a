"""Bodies of registering: publishers, subscribers the webhook way, clients, and looks at channels.

Part of the data plane's bodies (`http.py`), which are msgspec structs in snake_case. Channels and
subscriptions themselves are resources (`resources/`).
"""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from ibrik_api.messages import PartitionIndex, Position, Timestamp
from ibrik_api.names import MAX_NAME_LENGTH, NAME_PATTERN

_NAME: dict[str, Any] = {"pattern": NAME_PATTERN, "minLength": 1, "maxLength": MAX_NAME_LENGTH}
NameText = Annotated[str, Meta(extra_json_schema=_NAME)]
"""A name; checked by `check_name`, which says what is wrong with it."""
PageToken = Annotated[
    str | UnsetType, Meta(description="For page_token= of the next page; absent on the last one.")
]


# --- publishers -----------------------------------------------------------------------------------


class PublisherRequest(Struct, forbid_unknown_fields=True):
    """Who shall publish; the name is the publisher's at this topic."""

    name: NameText


class PublisherView(Struct):
    """A registered publisher of a topic. Its token cannot be shown."""

    id: str
    topic: str
    name: NameText
    registered: Annotated[Timestamp, Meta(description="When it was registered.")]


class PublisherRegistered(PublisherView, kw_only=True):
    """A publisher and, when it is new or was rotated, its token: this once and never again."""

    created: Annotated[bool, Meta(description="Whether this request registered it.")]
    token: Annotated[
        str | UnsetType, Meta(description="For `Authorization: Bearer` when publishing.")
    ] = UNSET


class PublisherList(Struct):
    """One page, by topic and name."""

    items: list[PublisherView]
    next_page_token: PageToken = UNSET


# --- clients --------------------------------------------------------------------------------------


class ClientRequest(Struct, forbid_unknown_fields=True):
    """What a client says of itself; the name is in the path and may be repeated here."""

    name: NameText | UnsetType = UNSET
    description: Annotated[str, Meta(max_length=1_024)] = ""


class ClientView(Struct):
    """A client; the id never changes while it is registered."""

    id: str
    name: NameText
    description: str


class ClientList(Struct):
    """One page, by name."""

    items: list[ClientView]
    next_page_token: PageToken = UNSET


# --- subscribers ----------------------------------------------------------------------------------

MAX_URL_CHARACTERS = 2_048
HeaderTexts = Annotated[
    dict[str, str], Meta(description="Sent with each message; not for secrets.")
]


class SubscriberRequest(Struct, forbid_unknown_fields=True):
    """An endpoint that wants the messages of a topic."""

    url: Annotated[str, Meta(max_length=MAX_URL_CHARACTERS, description="http:// or https://")]
    method: Literal["POST", "PUT", "PATCH"] = "POST"
    headers: HeaderTexts = {}
    fire_and_forget: Annotated[
        bool, Meta(description="One try for each message; what is lost is only counted.")
    ] = False


class SubscriberView(Struct):
    """An endpoint that gets the messages of a topic."""

    id: Annotated[str, Meta(description="Name of the subscription behind it.")]
    topic: str
    channel: Annotated[str, Meta(description="Name of the channel behind it.")]
    url: str
    method: str


class SubscriberRegistered(SubscriberView, kw_only=True):
    created: Annotated[bool, Meta(description="Whether this request registered it.")]


class SubscriberList(Struct):
    """All endpoints of a topic, page by page."""

    items: list[SubscriberView]
    next_page_token: PageToken = UNSET


# --- channels -------------------------------------------------------------------------------------


class PlainChannel(Struct):
    """A channel in four fields: what `view=plain` answers."""

    id: str
    name: NameText
    destination_host: Annotated[str, Meta(description="Host; of a topic, its name.")]
    destination_port: Annotated[int | None, Meta(description="Port; null for a topic.")]


class PlainChannelList(Struct):
    """One page, by name."""

    items: list[PlainChannel]
    next_page_token: PageToken = UNSET


class ProbeResult(Struct, omit_defaults=True):
    """What became of one signed test message (event type ibrik.test)."""

    delivered: bool
    status: Annotated[int | None, Meta(description="Status of the answer; null without one.")]
    error: Annotated[str | None, Meta(description="One word for what went wrong.")]
    detail: str
    latency_ms: Annotated[int, Meta(ge=0)]
    body: Annotated[str | UnsetType, Meta(description="First bytes of the answer.")] = UNSET
    body_base64: Annotated[str | UnsetType, Meta(description="The same when they are no text.")] = (
        UNSET
    )


class AttemptView(Struct):
    """One attempt that failed. What was delivered leaves no row behind."""

    id: Position
    flow: Annotated[str, Meta(description="Id of the subscription or replay.")]
    subscription: Annotated[str | None, Meta(description="Name of the subscription.")]
    partition: PartitionIndex
    offset: Position
    attempt: Annotated[int, Meta(ge=1)]
    at: Timestamp
    duration_ms: Position
    status: int | None
    error: str
    detail: str
    next: Annotated[Timestamp | None, Meta(description="When it is tried again; null: never.")]


class AttemptList(Struct):
    """One page, the newest first."""

    items: list[AttemptView]
    next_page_token: PageToken = UNSET


class DeliveryView(Struct):
    """How far one subscription is with one message."""

    subscription: NameText
    mode: str
    channel: Annotated[str | None, Meta(description="Channel that it goes to; of push.")]
    state: Annotated[
        str,
        Meta(
            description="waiting, in-flight, retrying, blocked, delivered, dead-lettered,"
            " filtered, or passed: before the start, or behind a gap or a seek."
        ),
    ]
    next: Annotated[Timestamp | None, Meta(description="When it is tried again.")]
    attempts: Annotated[list[AttemptView], Meta(description="Those that failed, oldest first.")]


class DeliveryList(Struct):
    """Every subscription of the topic, by name."""

    topic: str
    partition: PartitionIndex
    offset: Position
    deliveries: list[DeliveryView]


class ChannelStats(Struct):
    """Numbers of a channel since the broker started."""

    channel: str
    delivered: Position
    failed: Position
    in_flight: Position
    circuit: str
    paused_until: Timestamp | None
    last_status: int | None
    last_error: str | None
    last: Annotated[Timestamp | None, Meta(description="When the last attempt ended.")]
    latency_ms: Annotated[
        float | None, Meta(description="Mean of all attempts; null before the first one.")
    ]


STRUCTS = (
    PublisherRequest,
    PublisherView,
    PublisherRegistered,
    PublisherList,
    ClientRequest,
    ClientView,
    ClientList,
    SubscriberRequest,
    SubscriberView,
    SubscriberRegistered,
    SubscriberList,
    PlainChannel,
    PlainChannelList,
    ProbeResult,
    AttemptView,
    AttemptList,
    DeliveryView,
    DeliveryList,
    ChannelStats,
)
