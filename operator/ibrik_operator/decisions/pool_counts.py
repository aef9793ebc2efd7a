"""What the status of a pool says of its brokers. Pure.

How full the volumes are is told anew only after a change of a tenth: an idle pool never changes.
"""

import re
from collections.abc import Sequence
from typing import Any

from ibrik_api.observed import ObservedBroker
from ibrik_operator.decisions.counters import has_moved
from ibrik_operator.keys import Document

KEPT = ("version", "metadataStore", "storage", "topics")


def pool_counts(before: Document, brokers: Sequence[ObservedBroker]) -> dict[str, Any]:
    """Fields of the status; those of before while no broker says anything."""
    if not brokers:
        return {name: before.get(name) for name in KEPT}
    return {
        "version": min((broker.version for broker in brokers), key=_numbers),
        "metadataStore": brokers[0].metadata_store,
        "storage": _storage(before.get("storage") or {}, brokers),
        "topics": len({topic for broker in brokers for topic in broker.topics}),
    }


def _storage(before: Document, brokers: Sequence[ObservedBroker]) -> dict[str, int]:
    capacity = sum(broker.capacity_bytes for broker in brokers)
    used = capacity - sum(broker.free_bytes for broker in brokers)
    told = before.get("usedBytes")
    is_same = before.get("capacityBytes") == capacity and not has_moved(told, used)
    return {"capacityBytes": capacity, "usedBytes": told if is_same and told is not None else used}


def _numbers(version: str) -> list[int]:
    """1.10 comes after 1.9."""
    return [int(part) for part in re.findall(r"\d+", version)]
