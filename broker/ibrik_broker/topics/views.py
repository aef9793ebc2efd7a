"""How a topic looks from outside: its row and its partitions as the resource that HTTP answers."""

from typing import Any

from ibrik_api.resources.meta import Condition, ConditionStatus, ObjectMeta
from ibrik_api.resources.topic import Topic as TopicResource
from ibrik_api.resources.topic import TopicEndpoints, TopicStatus
from ibrik_api.timestamps import format_timestamp
from ibrik_broker.metadata.rows import Origin
from ibrik_broker.metadata.topics import TopicRow
from ibrik_broker.partitions.topic import Topic
from ibrik_broker.topics.archiving import archive_status
from ibrik_broker.topics.desired import stored_spec


def topic_view(row: TopicRow, topic: Topic | None) -> TopicResource:
    """`metadata.resourceVersion` is the revision, which is also the ETag.

    `topic` is None for a topic of another broker, which alone knows its numbers.
    """
    return TopicResource(
        metadata=ObjectMeta(
            name=row.resource_name,
            namespace=row.namespace,
            uid=row.resource_uid,
            generation=row.generation,
            resource_version=str(row.revision),
            creation_timestamp=format_timestamp(row.created_ms),
        ),
        spec=stored_spec(row),
        status=topic_status(row, topic),
    )


def topic_status(row: TopicRow, topic: Topic | None) -> TopicStatus:
    path = f"/v1/topics/{row.name}"
    return TopicStatus(
        topic_id=row.id,
        origin=row.origin.value,
        managed_by=resource_of(row) if row.origin is Origin.RESOURCE else None,
        observed_generation=row.generation,
        messages=None if topic is None else _messages(topic),
        size_bytes=None if topic is None else topic.size_bytes,
        endpoints=TopicEndpoints(
            publish=f"{path}/messages",
            fetch=f"{path}/partitions/0/messages",
            stream=f"{path}/stream",
        ),
        archive=None if topic is None else archive_status(topic),
        conditions=[] if topic is None else [_serving(row)],
    )


def _messages(topic: Topic) -> int:
    return sum(partition.latest - partition.earliest for partition in topic.partitions)


def _serving(row: TopicRow) -> Condition:
    return Condition(
        type="Ready",
        status=ConditionStatus.TRUE,
        reason="Serving",
        observed_generation=row.generation,
        last_transition_time=format_timestamp(row.updated_ms),
    )


def observed(row: TopicRow, topic: Topic | None) -> dict[str, Any]:
    """What `desired` answers with each item; a topic that is not served has only its identity."""
    if topic is None:
        return {"topicId": row.id, "state": row.state.value}
    return topic_status(row, topic).document() | {"state": row.state.value}


def resource_of(row: TopicRow) -> str:
    return f"Topic {row.namespace}/{row.resource_name}"
