"""When a resource has our finalizer, and when it goes without the brokers' word. Pure."""

from ibrik_api.kubernetes import FINALIZER, FORCE_DELETE, PAUSED
from ibrik_operator.keys import Document


def finalizers_of(document: Document) -> list[str]:
    return list(document["metadata"].get("finalizers") or [])


def has_finalizer(document: Document) -> bool:
    return FINALIZER in finalizers_of(document)


def wished(document: Document) -> list[str]:
    """The finalizers that it should have; ours only where deleting deletes data."""
    others = [one for one in finalizers_of(document) if one != FINALIZER]
    policy = (document.get("spec") or {}).get("deletionPolicy", "Retain")
    return others if policy == "Retain" else [*others, FINALIZER]


def without_ours(document: Document) -> list[str]:
    return [one for one in finalizers_of(document) if one != FINALIZER]


def is_released_unasked(
    document: Document, *, pool: Document | None, is_namespace_terminating: bool
) -> bool:
    """Nothing at the brokers has to be waited for: forced, or all of it goes, or none is there."""
    is_pool_going = pool is None or pool["metadata"].get("deletionTimestamp") is not None
    return is_forced(document) or is_pool_going or is_namespace_terminating


def is_forced(document: Document) -> bool:
    return _is_set(document, FORCE_DELETE)


def is_paused(document: Document) -> bool:
    return _is_set(document, PAUSED)


def _is_set(document: Document, annotation: str) -> bool:
    annotations = document["metadata"].get("annotations") or {}
    return annotations.get(annotation) == "true"
