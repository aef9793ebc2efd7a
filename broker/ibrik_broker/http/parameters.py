"""Parameters that several operations share, described once."""

from ibrik_api.durations import PATTERN
from ibrik_api.names import MAX_NAME_LENGTH, NAME_PATTERN
from ibrik_broker.http.operations import Parameter

FLAG = {"type": "string", "enum": ["true", "false"]}
COUNT = {"type": "integer", "minimum": 0, "maximum": 2**63 - 1}

TOPIC = Parameter(
    "topic",
    "path",
    "Name of the topic.",
    {"type": "string", "pattern": NAME_PATTERN, "minLength": 1, "maxLength": MAX_NAME_LENGTH},
    example="orders",
)
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
