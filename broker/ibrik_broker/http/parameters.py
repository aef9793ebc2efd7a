"""Parameters that several operations share, described once."""

from enum import StrEnum
from typing import Any

from ibrik_api.durations import PATTERN
from ibrik_api.names import MAX_NAME_LENGTH, MAX_NAMESPACE_LENGTH, NAME_PATTERN
from ibrik_broker.http.operations import Parameter

DEFAULT_PAGE, MAX_PAGE = 100, 500

FLAG = {"type": "string", "enum": ["true", "false"]}
COUNT = {"type": "integer", "minimum": 0, "maximum": 2**63 - 1}

NAME = {"type": "string", "pattern": NAME_PATTERN, "minLength": 1, "maxLength": MAX_NAME_LENGTH}


def in_path(noun: str, example: str) -> Parameter:
    """The name of a thing in the path."""
    return Parameter(noun, "path", f"Name of the {noun}.", NAME, example=example)


def deletion_policy(noun: str, policies: type[StrEnum]) -> Parameter:
    words: list[Any] = [policy.value for policy in policies]
    return Parameter(
        "policy",
        "query",
        f"Instead of the {noun}'s own deletionPolicy.",
        {"type": "string", "enum": words},
    )


TOPIC = in_path("topic", "orders")
CHANNEL = in_path("channel", "billing")
SUBSCRIPTION = in_path("subscription", "billing")
SUBSCRIBER = in_path("subscriber", "orders.0a1b2c3d")
PUBLISHER = in_path("publisher", "shop")
CLIENT = in_path("client", "till-7")
PARTITION = Parameter(
    "partition",
    "path",
    "Number of the partition, from 0.",
    {"type": "integer", "minimum": 0, "maximum": 255},
    example=0,
)
OFFSET = Parameter("offset", "path", "Offset of the message.", COUNT, example=0)

ACKS = Parameter(
    "acks",
    "query",
    "`durable` waits for what the durability of the topic promises, `none` for nothing.",
    {"type": "string", "enum": ["durable", "none"], "default": "durable"},
)
PARTIAL = Parameter(
    "partial",
    "query",
    "`true` publishes what is valid and gives one result per message. By default one wrong message"
    " refuses them all.",
    FLAG | {"default": "false"},
)
FILTER = Parameter("filter", "query", "Not served yet; refused with `unsupported-field`.")
FROM = Parameter(
    "from",
    "query",
    "Begin at the first message there is, or after the last.",
    {"type": "string", "enum": ["earliest", "latest"]},
)
WAIT = Parameter(
    "wait",
    "query",
    "How long to wait for a message when there is none yet.",
    {"type": "string", "pattern": PATTERN, "minLength": 2, "maxLength": 20},
    example="30s",
)

PAGE = (
    Parameter(
        "page_size",
        "query",
        "Most items of one page.",
        {"type": "integer", "minimum": 1, "maximum": MAX_PAGE, "default": DEFAULT_PAGE},
    ),
    Parameter("page_token", "query", "The token that the page before ended with."),
)
NAMESPACE = Parameter(
    "namespace",
    "query",
    "Namespace, when it is not that of what is made over HTTP.",
    {"type": "string", "minLength": 1, "maxLength": MAX_NAMESPACE_LENGTH},
)
IF_MATCH = Parameter("If-Match", "header", "ETag that was read, or *; refused when it changed.")
IF_NONE_MATCH = Parameter("If-None-Match", "header", "* refuses when there is one already.")
KNOWN_ETAG = Parameter("If-None-Match", "header", "ETag that is known.")


def etag_headers(noun: str) -> dict[str, str]:
    """Headers of an answer that holds the thing as it is."""
    return {"ETag": f"Revision of the {noun}, for If-Match."}


def location_headers(noun: str) -> dict[str, str]:
    """Headers of an answer that holds the thing that was made."""
    return etag_headers(noun) | {"Location": f"Path of the {noun}."}


KEY_HEADER = Parameter(
    "Ibrik-Key",
    "header",
    "Key of the message, percent-encoded UTF-8. Messages of one key keep their order.",
    example="customer-7",
)
PARTITION_HEADER = Parameter(
    "Ibrik-Partition",
    "header",
    "Partition to append to, instead of the one the topic's partitioner finds.",
    {"type": "string", "pattern": "^[0-9]{1,4}$"},
)
IDEMPOTENCY_HEADER = Parameter(
    "Idempotency-Key",
    "header",
    "Id of the message, 1 to 1024 bytes. A repeat within the topic's deduplication window is"
    " answered with the place of the first.",
    {"type": "string", "minLength": 1, "maxLength": 1024},
)
TRACEPARENT_HEADER = Parameter(
    "traceparent", "header", "Trace context (W3C), kept with the message; ignored when malformed."
)
TRACESTATE_HEADER = Parameter(
    "tracestate", "header", "Kept beside a traceparent; left out when it has over 512 characters."
)
ENCODING_HEADER = Parameter(
    "Content-Encoding",
    "header",
    "Compression of the body.",
    {"type": "string", "enum": ["gzip", "zstd", "identity"]},
)
PUBLISH_CODES = (
    "invalid-name",
    "unknown-topic",
    "unknown-partition",
    "topic-detached",
    "topic-unavailable",
    "message-too-large",
    "idempotency-mismatch",
    "storage-full",
    "storage-failed",
    "not-ready",
    "shutting-down",
)
TOPIC_CODES = ("invalid-name", "unknown-topic", "topic-detached", "topic-unavailable")
READ_CODES = (*TOPIC_CODES, "unsupported-field")
