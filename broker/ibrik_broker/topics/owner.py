"""Who made a topic: the identity of its resource, or of the topic itself when it came over HTTP."""

from typing import Any, NamedTuple

from ibrik_api.resources.topic import TopicSpec
from ibrik_broker.metadata.rows import Origin
from ibrik_broker.metadata.topics import TopicRow


class Owner(NamedTuple):
    namespace: str
    resource_name: str
    origin: Origin = Origin.API
    uid: str | None = None
    generation: int | None = None
    """As the resource says it; None lets the broker count."""


def changes_of(row: TopicRow, spec: TopicSpec, owner: Owner | None) -> dict[str, Any]:
    """The columns that change with a new spec."""
    generation = row.generation + 1
    if owner is None:
        return {"spec": spec.document(), "generation": generation}
    return {"spec": spec.document(), **identity_of(row, owner, generation)}


def identity_of(row: TopicRow, owner: Owner, generation: int) -> dict[str, Any]:
    """The columns that say whose the topic is."""
    is_same = (row.namespace, row.resource_name) == (owner.namespace, owner.resource_name)
    return {
        "namespace": owner.namespace,
        "resource_name": owner.resource_name,
        "origin": owner.origin,
        "resource_uid": owner.uid or (row.resource_uid if is_same else None),
        "generation": generation if owner.generation is None else owner.generation,
    }
