"""When counts have moved far enough to be written into a status. Pure.

An idle object never changes; a busy one at most once for each look at the brokers, and only after a
change of a tenth.
"""

from typing import Any

from ibrik_operator.keys import Document

COUNTS = ("messages", "bytes", "backlog", "inFlight", "retrying", "deadLettered")
WORDS = ("state", "circuit", "topicId", "subscriptionId", "channelId")


def is_news(resource: Document, seen: dict[str, Any]) -> bool:
    """Whether what the brokers observe says something that the status does not."""
    status = resource.get("status") or {}
    return any(has_moved(status.get(name), seen.get(name)) for name in COUNTS) or any(
        seen.get(name) is not None and seen.get(name) != status.get(name) for name in WORDS
    )


def has_moved(before: Any, now: Any) -> bool:
    if not isinstance(now, int):
        return False
    if not isinstance(before, int):
        return True
    if 0 in {before, now}:
        return before != now
    return abs(now - before) * 10 >= before
