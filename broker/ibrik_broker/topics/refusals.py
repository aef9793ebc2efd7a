"""Why the registry refuses a change of a topic: sentences that say the next step."""

from typing import NoReturn

from ibrik_api.errors import Refusal
from ibrik_broker.metadata.rows import Origin
from ibrik_broker.metadata.topics import TopicRow
from ibrik_broker.partitions.topic import Topic
from ibrik_broker.topics.views import resource_of


def refuse_managed(row: TopicRow) -> None:
    """Raises Refusal `managed-by-resource` when a resource owns the topic."""
    if row.origin is Origin.RESOURCE:
        raise Refusal(
            "managed-by-resource",
            f"The topic '{row.name}' comes from {resource_of(row)} and is read-only here. "
            "Change that resource with kubectl or ibrik apply.",
            resource={"kind": "Topic", "namespace": row.namespace, "name": row.resource_name},
        )


def refuse_changed(row: TopicRow, if_match: int | None) -> None:
    if if_match is not None and if_match != row.revision:
        raise precondition(row.name, f"it has revision {row.revision}, not {if_match}")


def raise_exists(row: TopicRow) -> NoReturn:
    raise Refusal(
        "topic-exists",
        f"There is a topic '{row.name}' with other settings. Use it as it is, or change it "
        f"with PUT /v1/topics/{row.name} and If-Match.",
    )


def precondition(name: str, why: str) -> Refusal:
    return Refusal(
        "precondition-failed",
        f"The topic '{name}' is not as it was read: {why}. GET it again and send the new ETag.",
    )


def is_empty(topic: Topic) -> bool:
    return all(partition.earliest == partition.latest for partition in topic.partitions)


def not_empty(topic: Topic) -> Refusal:
    messages = sum(partition.latest - partition.earliest for partition in topic.partitions)
    return Refusal(
        "topic-not-empty",
        f"The topic '{topic.name}' holds {messages:,} messages and has deletionPolicy "
        f"DeleteIfEmpty. Purge it first with POST /v1/topics/{topic.name}:purge, or set the policy "
        "to Delete or Retain.",
        messages=messages,
    )
