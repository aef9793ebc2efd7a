"""The table of operations on messages: publish, read, follow."""

from ibrik_api.http import (
    BatchRequest,
    BatchResult,
    MessageList,
    PartitionList,
    PublishResult,
    RawBatchResult,
)
from ibrik_api.messages import MessageView
from ibrik_broker.http import parameters as p
from ibrik_broker.http.batch import PublishBatch
from ibrik_broker.http.door import Door
from ibrik_broker.http.operations import (
    BYTES,
    CLOUDEVENT,
    CLOUDEVENTS_BATCH,
    EVENT_STREAM,
    JSON,
    NDJSON,
    RAW_BATCH,
    TEXT,
    Answer,
    Body,
    Operation,
    Parameter,
)
from ibrik_broker.http.publish import Publish
from ibrik_broker.http.read import (
    DEFAULT_MAX,
    DEFAULT_MAX_BYTES,
    MAX_MAX,
    MAX_MAX_BYTES,
    Read,
)
from ibrik_broker.http.stream import Stream

EVENT = {
    "type": "object",
    "description": "A CloudEvent 1.0 in the JSON format.",
    "required": ["specversion", "id", "source", "type"],
    "properties": {
        "specversion": {"const": "1.0"},
        "id": {"type": "string", "minLength": 1},
        "source": {"type": "string", "minLength": 1},
        "type": {"type": "string", "minLength": 1},
    },
}
EVENTS = {"type": "array", "items": EVENT}
PUBLISH_HEADERS = (
    p.KEY_HEADER,
    p.PARTITION_HEADER,
    p.IDEMPOTENCY_HEADER,
    p.TRACEPARENT_HEADER,
    p.TRACESTATE_HEADER,
    p.ENCODING_HEADER,
)
DUPLICATE = {"Ibrik-Duplicate": "true: the message was published before; this is its place."}
LOCATION = {"Location": "Path of the message."}
RANGE_HEADERS = {
    "Ibrik-Next-Offset": "Where to read on.",
    "Ibrik-High-Watermark": "End of what can be read: the next offset to become visible.",
}


def message_operations(door: Door, stream: Stream) -> list[Operation]:
    return [_publish(door), _publish_batch(door), *_read(door), _stream(stream)]


def _publish(door: Door) -> Operation:
    handler = Publish(door)
    result = (Body(JSON, PublishResult),)
    return Operation(
        "publishMessage",
        "POST",
        "/v1/topics/{topic}/messages",
        "publish",
        "Publish one message; the body is its value, whatever bytes it has.",
        handler.handle,
        (
            Answer(201, "Appended, and as safe as `durability` says.", result, LOCATION),
            Answer(200, "A repeat; nothing was appended.", result, DUPLICATE | LOCATION),
            Answer(202, "Taken, with acks=none; the offset is -1.", result),
        ),
        (*p.PUBLISH_CODES, "invalid-cloudevent"),
        "`ce-*` headers make it a CloudEvent in binary mode, `application/cloudevents+json` one in"
        " structured mode: its id is then the message's id, its partitionkey the key. Further"
        " headers of the message are written `Ibrik-Meta-<name>`, percent-encoded.",
        (p.TOPIC, p.ACKS, *PUBLISH_HEADERS),
        (
            Body("*/*", BYTES, example='{"order_id":101}'),
            Body(CLOUDEVENT, EVENT),
        ),
        is_body_required=False,
        expect=handler.expect,
    )


def _publish_batch(door: Door) -> Operation:
    handler = PublishBatch(door)
    return Operation(
        "publishBatch",
        "POST",
        "/v1/topics/{topic}/batch",
        "publish",
        "Publish many messages in one request.",
        handler.handle,
        (
            Answer(201, "All are appended.", (Body(JSON, _EITHER_RESULT),)),
            Answer(
                200, "All are repeats, or partial=true.", (Body(JSON, _EITHER_RESULT),), DUPLICATE
            ),
            Answer(202, "Taken, with acks=none.", (Body(JSON, BatchResult),)),
        ),
        (
            *p.PUBLISH_CODES,
            "invalid-json",
            "invalid-messages",
            "unsupported-media-type",
            "invalid-batch",
            "batch-compressed",
            "out-of-order-sequence",
            "unknown-producer",
            "producer-fenced",
        ),
        "Atomic by default: a wrong message refuses all of them, and the answer names every wrong"
        " one. Not atomic over a crash: a retry with ids fills in what is missing.",
        (p.TOPIC, p.ACKS, p.PARTIAL, p.PARTITION_HEADER, p.ENCODING_HEADER),
        (
            Body(JSON, BatchRequest, example={"messages": [{"key": "7", "value": {"id": 101}}]}),
            Body(NDJSON, TEXT, example='{"key":"7","value":{"id":101}}\n'),
            Body(CLOUDEVENTS_BATCH, EVENTS),
            Body(RAW_BATCH, BYTES),
        ),
        expect=handler.expect,
    )


_EITHER_RESULT = {
    "anyOf": [
        {"$ref": f"#/components/schemas/{shape.__name__}"}
        for shape in (BatchResult, RawBatchResult)
    ]
}


def _read(door: Door) -> list[Operation]:
    handler = Read(door)
    return [
        Operation(
            "listPartitions",
            "GET",
            "/v1/topics/{topic}/partitions",
            "read",
            "What can be read of every partition.",
            handler.partitions,
            (Answer(200, "The ranges of offsets.", (Body(JSON, PartitionList),)),),
            p.TOPIC_CODES,
            parameters=(p.TOPIC,),
        ),
        _read_messages(handler),
        Operation(
            "readMessage",
            "GET",
            "/v1/topics/{topic}/partitions/{partition}/messages/{offset}",
            "read",
            "One message: its value as the body, its headers as headers.",
            handler.message,
            (
                Answer(
                    200,
                    "The value, with the content type it was published with.",
                    (Body("*/*", BYTES),),
                    {
                        "Ibrik-Offset": "Offset of the message.",
                        "Ibrik-Timestamp": "When it was appended.",
                        "Ibrik-Key": "Its key, percent-encoded.",
                        "Ibrik-Null": "true: the message has no value, which is not an empty one.",
                    },
                ),
            ),
            (*p.TOPIC_CODES, *_OFFSET_CODES),
            parameters=(p.TOPIC, p.PARTITION, p.OFFSET),
        ),
    ]


_OFFSET_CODES = (
    "unknown-partition",
    "invalid-offset",
    "offset-below-start",
    "offset-above-end",
    "corrupt-range",
)


def _read_messages(handler: Read) -> Operation:
    def count(default: int, limit: int) -> dict[str, object]:
        return {"type": "integer", "minimum": 1, "maximum": limit, "default": default}

    return Operation(
        "readMessages",
        "GET",
        "/v1/topics/{topic}/partitions/{partition}/messages",
        "read",
        "Messages of a partition, from an offset, a time or an end of the log.",
        handler.messages,
        (
            Answer(
                200,
                "Messages in the order of their offsets.",
                (
                    Body(JSON, MessageList),
                    Body(NDJSON, TEXT),
                    Body(CLOUDEVENTS_BATCH, EVENTS),
                    Body(RAW_BATCH, BYTES),
                ),
                RANGE_HEADERS,
            ),
            Answer(204, "There is nothing there yet.", (), RANGE_HEADERS),
        ),
        (*p.READ_CODES, *_OFFSET_CODES, "not-acceptable"),
        "The form is chosen by `Accept`: JSON (one `MessageList`), NDJSON (one `MessageView` a"
        " line), a batch of CloudEvents, or record batches as they lie in the log. Raw batches are"
        " whole: they may begin before the offset, and `max` does not cut them.",
        (
            p.TOPIC,
            p.PARTITION,
            Parameter("offset", "query", "First offset to read.", p.COUNT),
            Parameter(
                "timestamp",
                "query",
                "Read from the first message appended at or after this time: RFC 3339, or"
                " milliseconds since 1970.",
            ),
            p.FROM,
            Parameter("max", "query", "Most messages.", count(DEFAULT_MAX, MAX_MAX)),
            Parameter(
                "max_bytes",
                "query",
                "Most bytes of the log to read; one batch is read whatever its size.",
                count(DEFAULT_MAX_BYTES, MAX_MAX_BYTES),
            ),
            p.WAIT,
            p.FILTER,
        ),
    )


def _stream(stream: Stream) -> Operation:
    return Operation(
        "streamMessages",
        "GET",
        "/v1/topics/{topic}/stream",
        "read",
        "Follow all partitions of a topic, as server-sent events.",
        stream.handle,
        (
            Answer(
                200,
                "Events without a name hold a `MessageView`. `gap` says what could not be read any"
                " more: {partition, from, to, count, reason}. `goodbye` is the last one: {reason}."
                " Comments come when there is nothing else to say.",
                (Body(EVENT_STREAM, TEXT),),
            ),
        ),
        (*p.READ_CODES, "invalid-offset", "offset-above-end"),
        f"The last message of each batch carries an id. `Last-Event-ID` resumes after it. Messages"
        f" are those of `{MessageView.__name__}`.",
        (
            p.TOPIC,
            p.FROM,
            Parameter(
                "offset",
                "query",
                "One offset for each partition, in their order, with commas between.",
                {"type": "string", "pattern": "^[0-9]{1,19}(,[0-9]{1,19})*$"},
            ),
            p.FILTER,
            Parameter("Last-Event-ID", "header", "Id of the last event that was received."),
        ),
    )
