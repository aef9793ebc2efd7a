"""The table of operations on topics and producers."""

from collections.abc import Awaitable, Callable

from ibrik_api.http import PartitionList, ProducerCreated, TopicList
from ibrik_api.resources.topic import Topic
from ibrik_broker.http import parameters as p
from ibrik_broker.http.door import Door
from ibrik_broker.http.operations import JSON, Answer, Body, Operation, Parameter
from ibrik_broker.http.topics import DEFAULT_PAGE, MAX_PAGE, Topics
from ibrik_broker.topics.registry import Registry

ETAG = {"ETag": "Revision of the topic, for If-Match."}
LOCATION = {"Location": "Path of the topic."}
IF_MATCH = Parameter("If-Match", "header", "ETag that was read, or *; refused when it changed.")
IF_NONE_MATCH = Parameter("If-None-Match", "header", "* refuses when there is one already.")
EXAMPLE = {
    "apiVersion": "ibrik.dev/v1beta1",
    "kind": "Topic",
    "metadata": {"name": "orders"},
    "spec": {"partitions": 4, "retention": {"time": "7d"}},
}
PAGE = (
    Parameter(
        "page_size",
        "query",
        "Most topics of one page.",
        {"type": "integer", "minimum": 1, "maximum": MAX_PAGE, "default": DEFAULT_PAGE},
    ),
    Parameter("page_token", "query", "nextPageToken of the page before."),
)
SPEC_CODES = (
    "invalid-json",
    "invalid-name",
    "invalid-resource",
    "unsupported-field",
    "metadata-unavailable",
    "storage-full",
    "storage-failed",
    "topic-detached",
    "topic-unavailable",
)
CHANGE_CODES = (
    *SPEC_CODES,
    "partitions-shrink",
    "precondition-failed",
    "managed-by-resource",
)


def topic_operations(
    door: Door, registry: Registry, allocate_producer_id: Callable[[], Awaitable[int]]
) -> list[Operation]:
    topics = Topics(door, registry, allocate_producer_id)
    return [*_collection(topics), *_one(topics), _purge(topics), _producers(topics)]


def _collection(topics: Topics) -> list[Operation]:
    return [
        Operation(
            "listTopics",
            "GET",
            "/v1/topics",
            "topics",
            "All topics by name, page by page.",
            topics.list_page,
            (Answer(200, "One page.", (Body(JSON, TopicList),)),),
            parameters=PAGE,
        ),
        Operation(
            "createTopic",
            "POST",
            "/v1/topics",
            "topics",
            "Create a topic.",
            topics.create,
            (
                Answer(201, "Created.", (Body(JSON, Topic),), ETAG | LOCATION),
                Answer(200, "It was there, and just so.", (Body(JSON, Topic),), ETAG),
            ),
            (*CHANGE_CODES, "topic-exists"),
            bodies=(Body(JSON, Topic, example=EXAMPLE),),
        ),
    ]


def _one(topics: Topics) -> list[Operation]:
    return [
        Operation(
            "readTopic",
            "GET",
            "/v1/topics/{topic}",
            "topics",
            "One topic, its wish and its state.",
            topics.read,
            (
                Answer(200, "The topic.", (Body(JSON, Topic),), ETAG),
                Answer(304, "It is as If-None-Match says."),
            ),
            ("invalid-name", "unknown-topic", "topic-detached", "topic-unavailable"),
            parameters=(p.TOPIC, Parameter("If-None-Match", "header", "ETag that is known.")),
        ),
        Operation(
            "replaceTopic",
            "PUT",
            "/v1/topics/{topic}",
            "topics",
            "Make a topic be as the body says; create it when there is none.",
            topics.replace,
            (
                Answer(200, "It is so.", (Body(JSON, Topic),), ETAG),
                Answer(201, "Created.", (Body(JSON, Topic),), ETAG | LOCATION),
            ),
            (*CHANGE_CODES, "topic-exists"),
            "A key left out takes its default again.",
            parameters=(p.TOPIC, IF_MATCH, IF_NONE_MATCH),
            bodies=(Body(JSON, Topic, example=EXAMPLE),),
        ),
        _delete(topics),
    ]


def _delete(topics: Topics) -> Operation:
    return Operation(
        "deleteTopic",
        "DELETE",
        "/v1/topics/{topic}",
        "topics",
        "Delete a topic by its deletionPolicy. Retain keeps the data, unserved.",
        topics.delete,
        (Answer(204, "Done.", (), {"Ibrik-Topic-State": "detached (data kept) or deleted."}),),
        (
            "invalid-name",
            "unknown-topic",
            "topic-detached",
            "topic-unavailable",
            "topic-not-empty",
            "precondition-failed",
            "managed-by-resource",
            "metadata-unavailable",
            "storage-failed",
        ),
        parameters=(
            p.TOPIC,
            IF_MATCH,
            Parameter(
                "policy",
                "query",
                "Instead of the topic's own deletionPolicy.",
                {"type": "string", "enum": ["Retain", "Delete", "DeleteIfEmpty"]},
            ),
        ),
    )


def _purge(topics: Topics) -> Operation:
    return Operation(
        "purgeTopic",
        "POST",
        "/v1/topics/{topic}:purge",
        "topics",
        "Remove every message that can be read now. Offsets go on where they are.",
        topics.purge,
        (Answer(200, "The ranges that are left.", (Body(JSON, PartitionList),)),),
        ("invalid-name", "unknown-topic", "topic-detached", "topic-unavailable", "storage-failed"),
        parameters=(p.TOPIC,),
    )


def _producers(topics: Topics) -> Operation:
    return Operation(
        "createProducer",
        "POST",
        "/v1/producers",
        "publish",
        "A new producer id, for sequences in raw batches.",
        topics.create_producer,
        (Answer(201, "An id that is never given out again.", (Body(JSON, ProducerCreated),)),),
        ("metadata-unavailable",),
    )
