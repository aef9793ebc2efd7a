"""What all kinds of desired resources share: reading what was sent, and telling what became of it.

The documents are anything that JSON can hold, so each step expects the worst.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from ibrik_api.desired import ApplyResult, Outcome
from ibrik_api.errors import Refusal
from ibrik_api.model import Model
from ibrik_api.names import API_VERSION
from ibrik_api.resources.meta import ObjectMeta
from ibrik_broker.topics.desired import Action, Applied, is_other_incarnation

_RESULTS = {
    Action.NOTHING: ApplyResult.UNCHANGED,
    Action.RECORD: ApplyResult.UNCHANGED,
    Action.READOPT: ApplyResult.ADOPTED,
    Action.FORGET: ApplyResult.DELETED,
    Action.DELETE: ApplyResult.DELETED,
}


def check_kind(document: Mapping[str, Any], kinds: Sequence[str]) -> None:
    """Raises Refusal `unsupported-kind` when the document is none of `kinds`."""
    version, kind = document.get("apiVersion"), document.get("kind")
    if version != API_VERSION or kind not in kinds:
        raise Refusal(
            "unsupported-kind",
            f"{_text(kind, 'no kind')} of {_text(version, 'no apiVersion')} is not served by "
            f"this version. It serves {' and '.join(kinds)} of {API_VERSION}.",
        )


def metadata_of(document: Mapping[str, Any], model: type[Model]) -> ObjectMeta:
    """Raises Refusal `invalid-resource` with all faults of the resource, which is a `model`."""
    try:
        return ObjectMeta.model_validate(document.get("metadata"), by_alias=True, by_name=False)
    except ValidationError:
        model.parse(document)
        raise


def result_of(action: Action, metadata: ObjectMeta, row: Applied | None) -> ApplyResult:
    """Of the row as it was: what an earlier resource left is adopted, detached or not yet."""
    is_left = row is not None and is_other_incarnation(metadata, row)
    if is_left and action in {Action.UPDATE, Action.RECORD}:
        return ApplyResult.ADOPTED
    return _RESULTS.get(action, ApplyResult.APPLIED)


def carried_out(
    kind: str, metadata: ObjectMeta, result: ApplyResult, observed: dict[str, Any] | None
) -> Outcome:
    return Outcome(
        kind=kind,
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        generation=metadata.generation,
        result=result,
        observed=observed,
    )


def refused(document: Mapping[str, Any], refusal: Refusal) -> Outcome:
    """Names are shown as they were sent, as far as they are text at all.

    `metadata-unavailable` is raised: nothing else of the request would work either.
    """
    if refusal.code == "metadata-unavailable":
        raise refusal
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
