"""What one desired Topic means for the topics there are. Pure: rows in, an action or a Refusal out.

The registry carries the action out. Identity is (namespace, name) of the resource; a topic name
belongs to whoever claimed it first.
"""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

from ibrik_api.durations import MAX_MS, format_duration
from ibrik_api.errors import Refusal
from ibrik_api.resources.meta import ObjectMeta
from ibrik_api.resources.topic import DeletionPolicy, Retention, Topic, TopicSpec
from ibrik_api.resources.topic_rules import check_spec, plan_update, refuse_if
from ibrik_broker.metadata.rows import Origin
from ibrik_broker.metadata.topics import TopicRow, TopicState


class Action(Enum):
    NOTHING = auto()
    """All is as wished."""
    FORGET = auto()
    """There is nothing to delete, or not of this resource: done."""
    RECORD = auto()
    """Only the resource's uid, generation or origin changed."""
    CREATE = auto()
    UPDATE = auto()
    READOPT = auto()
    """A detached topic is served again, with its id and data."""
    DELETE = auto()


class Applied(Protocol):
    """What a row of any kind knows of the resource that it came from."""

    @property
    def origin(self) -> Origin: ...
    @property
    def resource_uid(self) -> str | None: ...
    @property
    def generation(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Decision:
    action: Action
    row: TopicRow | None = None
    policy: DeletionPolicy = DeletionPolicy.RETAIN


def decide(resource: Topic, mine: TopicRow | None, holder: TopicRow | None) -> Decision:
    """`mine` is the row of this identity, `holder` that of this topic name; often one and the same.

    Raises Refusal: stale-generation, resource-conflict, unsupported-field, partitions-shrink …
    """
    if resource.metadata.deletion_timestamp is not None:
        return _decide_deletion(resource.metadata, mine, resource.spec.deletion_policy)
    check_spec(resource.spec)
    if mine is None or (holder is not None and holder.id != mine.id):
        return _decide_claim(resource, mine, holder)
    refuse_stale("Topic", resource.metadata, mine)
    if mine.state is TopicState.DETACHED:
        refuse_if(plan_update(stored_spec(mine), normalised(resource)))
        return Decision(Action.READOPT, mine)
    old = stored_spec(mine)
    if normalised(resource) != old:
        refuse_if(plan_update(old, normalised(resource)))
        return Decision(Action.UPDATE, mine)
    return Decision(Action.RECORD if is_news(resource.metadata, mine) else Action.NOTHING, mine)


def decide_broken_deletion(metadata: ObjectMeta, mine: TopicRow | None) -> Decision:
    """A resource whose spec cannot be read can still be deleted, by the policy of its row."""
    policy = DeletionPolicy.RETAIN if mine is None else stored_spec(mine).deletion_policy
    return _decide_deletion(metadata, mine, policy)


def stored_spec(row: TopicRow) -> TopicSpec:
    """Raises Refusal `invalid-resource` when another version wrote what this one cannot read."""
    return TopicSpec.parse(row.spec)


def adopted_spec(partitions: int) -> TopicSpec:
    """The spec of a topic whose own is lost: the defaults, but nothing is deleted for its age."""
    kept = Retention.parse({"time": format_duration(MAX_MS)})
    return TopicSpec(partitions=partitions, retention=kept)


def normalised(resource: Topic) -> TopicSpec:
    """The spec as it is stored: a topicName that only repeats metadata.name is left out."""
    if resource.spec.topic_name == resource.metadata.name:
        return resource.spec.model_copy(update={"topic_name": None})
    return resource.spec


def _decide_deletion(
    metadata: ObjectMeta, mine: TopicRow | None, policy: DeletionPolicy
) -> Decision:
    if mine is None or is_other_incarnation(metadata, mine):
        return Decision(Action.FORGET)
    if mine.state is TopicState.DETACHED and policy is DeletionPolicy.RETAIN:
        return Decision(Action.FORGET, mine)
    return Decision(Action.DELETE, mine, policy)


def _decide_claim(resource: Topic, mine: TopicRow | None, holder: TopicRow | None) -> Decision:
    """The name is free, detached, or someone else's."""
    if mine is not None:
        # The identity is known under another topic name.
        refuse_if(plan_update(stored_spec(mine), normalised(resource)))
    if holder is None:
        return Decision(Action.CREATE)
    if holder.state is TopicState.DETACHED:
        check_adoption(holder, resource.spec)
        return Decision(Action.READOPT, holder)
    raise Refusal(
        "resource-conflict",
        f"The topic name '{holder.name}' belongs to Topic {holder.namespace}/"
        f"{holder.resource_name}, which is older. Set another spec.topicName, or delete that one.",
    )


def check_adoption(row: TopicRow, spec: TopicSpec) -> None:
    """A detached topic comes back with its data, so it needs at least as many partitions."""
    old = stored_spec(row)
    refuse_if(plan_update(old, spec.model_copy(update={"topic_name": old.topic_name})))


def refuse_stale(kind: str, metadata: ObjectMeta, row: Applied) -> None:
    """Raises Refusal `stale-generation` when a later wish of the same resource came before."""
    if metadata.generation is None or is_other_incarnation(metadata, row):
        return
    if row.origin is Origin.RESOURCE and metadata.generation < row.generation:
        raise Refusal(
            "stale-generation",
            f"Generation {metadata.generation} of {kind} {metadata.namespace}/{metadata.name} came "
            f"after generation {row.generation}. Read the resource again and apply that.",
        )


def is_other_incarnation(metadata: ObjectMeta, row: Applied) -> bool:
    """A resource that was deleted and made again begins its generations anew."""
    return None not in (metadata.uid, row.resource_uid) and metadata.uid != row.resource_uid


def is_news(metadata: ObjectMeta, row: Applied) -> bool:
    """Whether the resource has another identity than the row remembers, though the same wish."""
    return (
        row.origin is not Origin.RESOURCE
        or metadata.generation not in (None, row.generation)
        or metadata.uid not in (None, row.resource_uid)
    )
