"""Bodies of the data plane, in snake_case, and of listing topics.

They are msgspec structs: one definition serves the hot path's encoder and decoder and the OpenAPI
document. Bodies of topics themselves are resources (`resources/`).
"""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from pydantic.json_schema import models_json_schema

from ibrik_api import consuming, recovering, registering
from ibrik_api.archiving import ArchiveReport, RollRequest, RollResult, TopicArchive
from ibrik_api.desired import DesiredRequest, DesiredResponse
from ibrik_api.messages import MessageView, PartitionIndex, Position, Timestamp
from ibrik_api.model import Model
from ibrik_api.observed import Observed
from ibrik_api.resources.channel import Channel
from ibrik_api.resources.subscription import Subscription
from ibrik_api.resources.topic import Topic

REF_TEMPLATE = "#/components/schemas/{name}"

Offset = Annotated[int, Meta(ge=-1, le=2**63 - 1, description="-1 for acks=none.")]


class PublishResult(Struct, omit_defaults=True):
    """Where a message went and what the acknowledgement stands for."""

    topic: str
    partition: PartitionIndex
    offset: Offset
    id: str
    timestamp: Timestamp
    durability: Annotated[str, Meta(description="flushed, written, or none for acks=none.")]
    duplicate: Annotated[
        bool, Meta(description="The id was published before; this is the original offset.")
    ] = False


class BatchMessage(Struct, forbid_unknown_fields=True):
    """One message of a JSON batch, or one line of NDJSON.

    `value` is any JSON and stored as the bytes received. A `key` that is a JSON string stands for
    its text, so that it is the key that Ibrik-Key gives. `_base64` takes any bytes.
    """

    key: msgspec.Raw | UnsetType = UNSET
    key_base64: str | None = None
    value: msgspec.Raw | UnsetType = UNSET
    value_base64: str | None = None
    headers: dict[str, str | None] | None = None
    headers_base64: dict[str, str] | None = None
    id: str | None = None
    partition: PartitionIndex | None = None


class BatchRequest(Struct, forbid_unknown_fields=True):
    messages: Annotated[list[BatchMessage], Meta(min_length=1)]


class BatchMessageResult(Struct, omit_defaults=True):
    """One message of a batch: where it went, or (with partial=true) why it was refused."""

    index: Position
    partition: PartitionIndex | UnsetType = UNSET
    offset: Offset | UnsetType = UNSET
    id: str | UnsetType = UNSET
    timestamp: Timestamp | UnsetType = UNSET
    duplicate: bool = False
    code: str | UnsetType = UNSET
    detail: str | UnsetType = UNSET


class BatchResult(Struct, omit_defaults=True):
    topic: str
    durability: str
    count: Position
    messages: list[BatchMessageResult]
    failed: Annotated[int, Meta(ge=0, description="How many were refused; partial=true only.")] = 0
    stopped: Annotated[
        "Problem | UnsetType",
        Meta(description="Why what follows the last result was not published; partial=true only."),
    ] = UNSET


class RawBatchReceipt(Struct):
    """One record batch of a raw publish."""

    partition: PartitionIndex
    offset: Offset
    timestamp: Timestamp
    count: Position
    duplicate: bool


class RawBatchResult(Struct):
    topic: str
    durability: str
    batches: list[RawBatchReceipt]


class PartitionRange(Struct):
    """What can be read of a partition: earliest ≤ offset < latest."""

    partition: PartitionIndex
    earliest: Position
    latest: Position
    bytes: Position


class PartitionList(Struct):
    topic: str
    partitions: list[PartitionRange]


class MessageList(Struct):
    topic: str
    partition: PartitionIndex
    next_offset: Position
    high_watermark: Position
    messages: list[MessageView]


class ProducerCreated(Struct):
    """A producer id for sequenced raw batches; sequences begin at 0 in each partition."""

    id: Position
    epoch: Annotated[int, Meta(ge=0, le=32_767)] = 0


class ProblemField(Struct, omit_defaults=True):
    code: str | UnsetType = UNSET
    detail: str | UnsetType = UNSET
    pointer: Annotated[str, Meta(description="JSON pointer (RFC 6901).")] | UnsetType = UNSET
    index: Annotated[int, Meta(description="Place in the batch.")] | UnsetType = UNSET


class Problem(Struct, omit_defaults=True):
    """Any refusal (RFC 9457); some codes add facts such as earliest and latest."""

    type: str
    title: str
    status: Annotated[int, Meta(ge=400, le=599)]
    detail: str
    code: str
    retryable: bool
    errors: list[ProblemField] | UnsetType = UNSET
    retry_after_ms: int | UnsetType = UNSET


class TopicList(Model):
    """One page of topics, by name."""

    items: list[Topic]
    """The topics."""
    next_page_token: str | None = None
    """Send it as page_token= for the next page; absent on the last one."""


class ChannelList(Model):
    """One page of channels, by name."""

    items: list[Channel]
    """The channels."""
    next_page_token: str | None = None
    """Send it as page_token= for the next page; absent on the last one."""


class SubscriptionList(Model):
    """One page of subscriptions, by name."""

    items: list[Subscription]
    """The subscriptions."""
    next_page_token: str | None = None
    """Send it as page_token= for the next page; absent on the last one."""


STRUCTS = (
    PublishResult,
    BatchRequest,
    BatchResult,
    RawBatchResult,
    PartitionList,
    MessageView,
    MessageList,
    ProducerCreated,
    Problem,
    *consuming.STRUCTS,
    *recovering.STRUCTS,
    *registering.STRUCTS,
)
MODELS = (
    Topic,
    TopicList,
    Channel,
    ChannelList,
    Subscription,
    SubscriptionList,
    DesiredRequest,
    DesiredResponse,
    Observed,
    ArchiveReport,
    RollRequest,
    RollResult,
    TopicArchive,
)


def component_schemas() -> dict[str, Any]:
    """The schemas of all bodies by name, for `components` of an OpenAPI 3.1 document."""
    _, structs = msgspec.json.schema_components(STRUCTS, ref_template=REF_TEMPLATE)
    # In this mode defaults are written as they look outside: `7d`, not milliseconds.
    _, models = models_json_schema(
        [(model, "serialization") for model in MODELS],
        ref_template=REF_TEMPLATE.replace("{name}", "{model}"),
    )
    schemas: dict[str, Any] = structs | models["$defs"]
    return schemas
