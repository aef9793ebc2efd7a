"""The few questions that many ask of an object of the API server. Pure."""

import hashlib
import json

from ibrik_operator.keys import Document


def is_terminating(document: Document) -> bool:
    """It is being deleted."""
    return document["metadata"].get("deletionTimestamp") is not None


def is_true(document: Document | None, type_: str) -> bool:
    """Whether its status has this condition, and says True."""
    conditions = ((document or {}).get("status") or {}).get("conditions") or []
    return any(one["type"] == type_ and one["status"] == "True" for one in conditions)


def is_ready(document: Document | None) -> bool:
    """So say pods and our own kinds."""
    return is_true(document, "Ready")


def digest(value: object) -> str:
    """Equal exactly when the JSON forms are."""
    encoded = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(encoded.encode()).hexdigest()[:16]
