"""Whether an object of Kubernetes is as desired. Pure.

Fields that others or the API server itself added do not count: what is desired has to be in it.
"""

from typing import Any

from ibrik_api.kubernetes import DESIRED_HASH
from ibrik_api.quantities import parse_quantity
from ibrik_operator.keys import Document

SERVERS = frozenset({"apiVersion", "kind", "status"})


def is_as_desired(desired: Document, actual: Document | None) -> bool:
    """`desired` is stamped: an older wish left another digest, also if it left things out."""
    if actual is None:
        return False
    wished = (desired["metadata"].get("annotations") or {}).get(DESIRED_HASH)
    found = (actual["metadata"].get("annotations") or {}).get(DESIRED_HASH)
    return wished == found and all(
        holds(value, actual.get(name)) for name, value in desired.items() if name not in SERVERS
    )


def holds(desired: Any, actual: Any) -> bool:
    """Whether `actual` has at least what is desired; empty counts as left out."""
    if isinstance(desired, dict):
        known = actual if isinstance(actual, dict) else {}
        return all(holds(value, known.get(name)) for name, value in desired.items())
    if isinstance(desired, list):
        return _holds_list(desired, actual if isinstance(actual, list) else [])
    if desired == actual:
        return True
    if desired in (None, "", False, 0) and actual is None:
        return True
    return _is_same_amount(desired, actual)


def _holds_list(desired: list[Any], found: list[Any]) -> bool:
    """What has names is found by them, since others may add to it; the rest is as it is."""
    if desired and all(_name(one) for one in desired):
        named = {_name(one): one for one in found}
        return all(holds(one, named.get(_name(one))) for one in desired)
    return len(desired) == len(found) and all(map(holds, desired, found))


def _name(item: Any) -> str | None:
    return item.get("name") if isinstance(item, dict) else None


def _is_same_amount(desired: Any, actual: Any) -> bool:
    """The API server writes quantities in its own way: 1024Mi as 1Gi, 0.5 as 500m."""
    try:
        return _amount(desired) == _amount(actual)
    except (ValueError, TypeError):
        return False


def _amount(value: Any) -> float:
    text = str(value)
    if text.endswith("m"):
        return float(text[:-1]) / 1000
    try:
        return float(text)
    except ValueError:
        return float(parse_quantity(text))
