"""The table of operations on topics and producers."""

from collections.abc import Awaitable, Callable

from ibrik_api.http import PartitionList, ProducerCreated, TopicList
from ibrik_api.resources.topic import DeletionPolicy, Topic
from ibrik_broker.http import parameters as p
from ibrik_broker.http.crud_table import ResourceKind, action, resource_operations
from ibrik_broker.http.door import Door
from ibrik_broker.http.operations import JSON, Answer, Body, Operation
from ibrik_broker.http.topics import Topics
from ibrik_broker.topics.registry import Registry

EXAMPLE = {
    "apiVersion": "ibrik.dev/v1beta1",
    "kind": "Topic",
    "metadata": {"name": "orders"},
    "spec": {"partitions": 4, "retention": {"time": "7d"}},
}
TOPIC = ResourceKind(
    noun="topic",
    model=Topic,
    list_model=TopicList,
    example=EXAMPLE,
    path=p.TOPIC,
    read_codes=p.TOPIC_CODES,
    write_codes=(
        "invalid-json",
        "invalid-name",
        "invalid-resource",
        "unsupported-field",
        "metadata-unavailable",
        "storage-full",
        "storage-failed",
        "topic-detached",
        "topic-unavailable",
        "partitions-shrink",
        "precondition-failed",
        "managed-by-resource",
    ),
    delete_codes=("topic-not-empty", "metadata-unavailable", "storage-failed"),
    delete_summary="Delete a topic by its deletionPolicy. Retain keeps the data, unserved.",
    delete_parameters=(p.deletion_policy("topic", DeletionPolicy),),
    delete_headers={"Ibrik-Topic-State": "detached (data kept) or deleted."},
)


def topic_operations(
    door: Door, registry: Registry, allocate_producer_id: Callable[[], Awaitable[int]]
) -> list[Operation]:
    topics = Topics(door, registry, allocate_producer_id)
    return [
        *resource_operations(TOPIC, topics),
        action(
            TOPIC,
            "purge",
            "Remove every message that can be read now. Offsets go on where they are.",
            handler=topics.purge,
            answer=Answer(200, "The ranges that are left.", (Body(JSON, PartitionList),)),
            codes=("storage-failed",),
        ),
        Operation(
            "createProducer",
            "POST",
            "/v1/producers",
            "publish",
            "A new producer id, for sequences in raw batches.",
            topics.create_producer,
            (Answer(201, "An id that is never given out again.", (Body(JSON, ProducerCreated),)),),
            ("metadata-unavailable",),
        ),
    ]
