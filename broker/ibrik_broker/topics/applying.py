"""Carries a list of desired Topics out: one decision and one outcome per item, in order."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ibrik_api.desired import Outcome
from ibrik_api.errors import Refusal
from ibrik_api.resources.meta import ObjectMeta
from ibrik_api.resources.topic import Topic as TopicResource
from ibrik_broker.metadata.rows import Origin
from ibrik_broker.metadata.topics import TopicRow
from ibrik_broker.topics.desired import (
    Action,
    Decision,
    decide,
    decide_broken_deletion,
    normalised,
)
from ibrik_broker.topics.documents import carried_out, check_kind, metadata_of, refused, result_of
from ibrik_broker.topics.owner import Owner
from ibrik_broker.topics.views import observed

if TYPE_CHECKING:
    from ibrik_broker.topics.registry import Registry


async def apply_resources(
    registry: "Registry", resources: Sequence[Mapping[str, Any]]
) -> list[Outcome]:
    outcomes = []
    for document in resources:
        try:
            outcomes.append(await _apply(registry, document))
        except Refusal as refusal:
            outcomes.append(refused(document, refusal))
    return outcomes


async def _apply(registry: "Registry", document: Mapping[str, Any]) -> Outcome:
    check_kind(document, ["Topic"])
    metadata = metadata_of(document, TopicResource)
    mine = await registry.settled(registry.by_identity(metadata.namespace, metadata.name))
    try:
        resource = TopicResource.parse(document)
    except Refusal:
        if metadata.deletion_timestamp is None:
            raise
        return await _carry_out(registry, metadata, None, decide_broken_deletion(metadata, mine))
    holder = await registry.settled(registry.by_name(resource.topic_name))
    return await _carry_out(registry, metadata, resource, decide(resource, mine, holder))


async def _carry_out(
    registry: "Registry", metadata: ObjectMeta, resource: TopicResource | None, decision: Decision
) -> Outcome:
    owner = Owner(
        metadata.namespace, metadata.name, Origin.RESOURCE, metadata.uid, metadata.generation
    )
    row = decision.row
    result = result_of(decision.action, metadata, row)
    match decision.action, resource, row:
        case Action.CREATE, TopicResource(), _:
            row = await registry.create(resource.topic_name, normalised(resource), owner)
        case Action.UPDATE, TopicResource(), TopicRow():
            row = await registry.update(row, normalised(resource), owner)
        case Action.READOPT, TopicResource(), TopicRow():
            row = await registry.readopt(row, normalised(resource), owner)
        case Action.RECORD, _, TopicRow():
            row = await registry.record(row, owner)
        case Action.DELETE, _, TopicRow():
            await registry.remove(row, decision.policy)
            row = registry.by_name(row.name)
        case Action.NOTHING, _, TopicRow():
            # Raises when the topic is as wished but kept out of service.
            registry.engine.topic(row.name)
        case _:
            pass
    seen = None if row is None else observed(row, registry.served(row.name))
    return carried_out("Topic", metadata, result, seen)
