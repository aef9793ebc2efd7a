"""Kubernetes Events: one for each transition that a person may want to know of, never more.

The newest conditions are compared with those before; what flipped becomes an event.
"""

import hashlib
import time
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import structlog

from ibrik_api.kubernetes import FIELD_MANAGER
from ibrik_api.timestamps import format_timestamp
from ibrik_operator.keys import Document, Key
from ibrik_operator.kube import Kube, KubeError

log = structlog.get_logger(__name__)

MAX_MESSAGE = 1_024


class News(NamedTuple):
    reason: str
    message: str
    is_warning: bool = False


def transitions(before: Sequence[Document], after: Sequence[Document]) -> list[News]:
    """What flipped, of the types that say whether a resource works. Pure."""
    known = {one["type"]: one for one in before}
    news = []
    for one in after:
        old = known.get(one["type"])
        if one["type"] in {"Reconciling", "Stalled"} or one["status"] == "Unknown":
            continue
        is_good = one["status"] == "True"
        if old is None and is_good:
            continue  # All is well from the start: the status says so.
        if old is not None and (old["status"], old["reason"]) == (one["status"], one["reason"]):
            continue
        if one["type"] == "Ready" and not is_good:
            continue  # The aspect that fails says why.
        news.append(
            News(one["reason"], one.get("message") or f"{one['type']} is fine", not is_good)
        )
    return news


async def publish(kube: Kube, document: Document, news: Iterable[News]) -> None:
    """Say it; an event that cannot be written stops nothing."""
    for one in news:
        try:
            await kube.create(event_of(document, one, now_ms=time.time_ns() // 1_000_000))
        except KubeError as error:
            log.info("event_not_written", about=str(Key.of(document)), reason=str(error))


def event_of(document: Document, one: News, *, now_ms: int) -> dict[str, Any]:
    """The Event about an object (core/v1)."""
    key = Key.of(document)
    metadata = document["metadata"]
    now = format_timestamp(now_ms)
    digest = hashlib.sha256(f"{one.reason} {now_ms}".encode()).hexdigest()[:12]
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{key.name[:200]}.{digest}", "namespace": key.namespace},
        "type": "Warning" if one.is_warning else "Normal",
        "reason": one.reason,
        "message": one.message[:MAX_MESSAGE],
        "involvedObject": {
            "apiVersion": document["apiVersion"],
            "kind": key.kind,
            "name": key.name,
            "namespace": key.namespace,
            "uid": metadata.get("uid", ""),
            "resourceVersion": metadata.get("resourceVersion", ""),
        },
        "source": {"component": FIELD_MANAGER},
        "reportingComponent": FIELD_MANAGER,
        "reportingInstance": FIELD_MANAGER,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
