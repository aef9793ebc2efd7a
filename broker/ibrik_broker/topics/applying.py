"""Carries a list of desired resources out: one decision and one outcome per item, in order."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from ibrik_api.desired import ApplyResult, Outcome
from ibrik_api.errors import Refusal
from ibrik_api.names import API_VERSION
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
from ibrik_broker.topics.owner import Owner
from ibrik_broker.topics.views import observed

if TYPE_CHECKING:
    from ibrik_broker.topics.registry import Registry

_RESULTS = {
    Action.NOTHING: ApplyResult.UNCHANGED,
    Action.RECORD: ApplyResult.UNCHANGED,
    Action.FORGET: ApplyResult.DELETED,
    Action.DELETE: ApplyResult.DELETED,
}


async def apply_resources(
    registry: "Registry", resources: Sequence[Mapping[str, Any]]
) -> list[Outcome]:
    outcomes = []
    for document in resources:
        try:
            outcomes.append(await _apply(registry, document))
        except Refusal as refusal:
            if refusal.code == "metadata-unavailable":
                raise
            outcomes.append(_refused(document, refusal))
    return outcomes


async def _apply(registry: "Registry", document: Mapping[str, Any]) -> Outcome:
    _check_kind(document)
    metadata = _metadata(document)
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
    return Outcome(
        kind="Topic",
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        generation=metadata.generation,
        result=_RESULTS.get(decision.action, ApplyResult.APPLIED),
        observed=None if row is None else observed(row, registry.served(row.name)),
    )


def _check_kind(document: Mapping[str, Any]) -> None:
    found = (document.get("apiVersion"), document.get("kind"))
    if found != (API_VERSION, "Topic"):
        raise Refusal(
            "unsupported-kind",
            f"{_text(found[1], 'no kind')} of {_text(found[0], 'no apiVersion')} is not served by "
            f"this version. It serves Topic of {API_VERSION}.",
        )


def _metadata(document: Mapping[str, Any]) -> ObjectMeta:
    metadata = document.get("metadata")
    try:
        return ObjectMeta.model_validate(metadata, by_alias=True, by_name=False)
    except ValidationError:
        # Parsed as a whole, the resource tells of all its faults at once.
        TopicResource.parse(document)
        raise


def _refused(document: Mapping[str, Any], refusal: Refusal) -> Outcome:
    """Names are shown as they were sent, as far as they are text at all."""
    metadata = document.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    generation = metadata.get("generation")
    is_conflict = refusal.code == "resource-conflict"
    return Outcome(
        kind=_text(document.get("kind"), ""),
        namespace=_text(metadata.get("namespace"), "default"),
        name=_text(metadata.get("name"), ""),
        uid=_text(metadata.get("uid"), "") or None,
        generation=generation if isinstance(generation, int) else None,
        result=ApplyResult.CONFLICT if is_conflict else ApplyResult.REFUSED,
        code=refusal.code,
        detail=refusal.detail,
        errors=[dict(error) for error in refusal.errors] or None,
    )


def _text(value: Any, otherwise: str) -> str:
    return value[:253] if isinstance(value, str) else otherwise
