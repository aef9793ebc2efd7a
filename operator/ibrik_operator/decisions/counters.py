"""When counts have moved far enough to be written into a status. Pure.

An idle object never changes; a busy one at most once for each look at the brokers, and only after a
change of a tenth.
"""

from typing import Any

from ibrik_operator.keys import Document

COUNTS = ("messages", "bytes", "backlog", "inFlight", "retrying", "deadLettered")
ARCHIVE_COUNTS = ("lag", "heldBytes")
WORDS = ("state", "circuit", "topicId", "subscriptionId", "channelId")


def is_news(resource: Document, seen: dict[str, Any]) -> bool:
    """Whether what the brokers observe says something that the status does not."""
    status = resource.get("status") or {}
    return (
        any(has_moved(status.get(name), seen.get(name)) for name in COUNTS)
        or any(seen.get(name) is not None and seen.get(name) != status.get(name) for name in WORDS)
        or _is_archive_news(status.get("archive"), seen.get("archive"))
    )


def _is_archive_news(before: Document | None, now: Document | None) -> bool:
    """A run moves the offsets; between runs the lag grows with every message."""
    if before is None or now is None:
        return before is not now
    settled = (before.keys() | now.keys()) - set(ARCHIVE_COUNTS)
    return any(before.get(name) != now.get(name) for name in settled) or any(
        has_moved(before.get(name), now.get(name)) for name in ARCHIVE_COUNTS
    )


def has_moved(before: Any, now: Any) -> bool:
    if not isinstance(now, int):
        return False
    if not isinstance(before, int):
        return True
    if 0 in {before, now}:
        return before != now
    return abs(now - before) * 10 >= before
