"""Is every Topic, Subscription and Channel ready, and did Kubernetes warn? Pure."""

from collections import defaultdict
from collections.abc import Iterator

from ibrik_api.timestamps import parse_timestamp
from ibrik_cli.doctor.finding import Document, Finding, Seen, condition_of, name_of

SHOWN_OF_A_REASON = 5
"""Resources that are named of those that wait for the same reason."""
SHOWN_EVENTS = 10
RECENT_S = 3_600.0
YOUNG_S = 30.0
"""A resource of that age may simply not have been looked at yet."""


def resources_are_ready(seen: Seen) -> Iterator[Finding]:
    for documents, word, plural in (
        (seen.topics, "topic", "topics"),
        (seen.subscriptions, "subscription", "subscriptions"),
        (seen.channels, "channel", "channels"),
    ):
        unready = [
            (document, finding)
            for document in documents
            if (finding := judge(document, word, plural, seen.now_s)) is not None
        ]
        yield from _grouped(unready, word)
        if documents:
            ready = len(documents) - len(unready)
            yield Finding("fine", f"{word}s {ready:,} of {len(documents):,} ready")


def _grouped(unready: list[tuple[Document, Finding]], word: str) -> Iterator[Finding]:
    by_reason: dict[str, list[Finding]] = defaultdict(list)
    for document, finding in unready:
        by_reason[str(condition_of(document, "Ready").get("reason"))].append(finding)
    for reason, findings in by_reason.items():
        yield from findings[:SHOWN_OF_A_REASON]
        more = len(findings) - SHOWN_OF_A_REASON
        if more > 0:
            yield Finding("problem", f"{more:,} more {word}s for the same reason: {reason}")


def judge(document: Document, word: str, plural: str, now_s: float | None = None) -> Finding | None:
    """None when it is ready, and what it is now is what was written last."""
    name = f"{word} {name_of(document)}"
    ready = condition_of(document, "Ready")
    metadata = document["metadata"]
    describe = (
        f"kubectl -n {metadata.get('namespace')} describe {plural}.ibrik.dev {metadata['name']}"
    )
    if "deletionTimestamp" in metadata:
        return Finding("warning", f"{name} is being deleted: {ready.get('message', '')}", describe)
    if not ready:
        if now_s is not None and _age_s(metadata, now_s) < YOUNG_S:
            return None
        return Finding("problem", f"{name} has no status: no operator has looked at it", describe)
    if ready.get("status") != "True":
        return Finding(
            "problem",
            f"{name} is not ready: {ready.get('reason')}: {ready.get('message') or 'no message'}",
            describe,
        )
    if ready.get("observedGeneration", 0) < metadata.get("generation", 0):
        return Finding("warning", f"{name} was changed, and the change is not carried out yet")
    return None


def nothing_was_warned_of(seen: Seen) -> Iterator[Finding]:
    """The newest warnings of the last hour, each kind once."""
    latest: dict[tuple[str, str], Document] = {}
    for event in sorted(seen.events, key=_time_of):
        involved = event.get("involvedObject") or {}
        is_ours = involved.get("kind") != "Node"  # the administrator's, and they are many
        if is_ours and event.get("type") == "Warning" and _is_recent(event, seen.now_s):
            about = f"{involved.get('kind')} {involved.get('name')}"
            latest[(about, str(event.get("reason")))] = event
    for (about, reason), event in list(latest.items())[-SHOWN_EVENTS:]:
        count = event.get("count") or 1
        times = f" ({count} times)" if count > 1 else ""
        yield Finding("warning", f"event on {about}: {reason}: {event.get('message')}{times}")


def _time_of(event: Document) -> str:
    times = (event.get("lastTimestamp"), event.get("eventTime"))
    return str(next((t for t in times if t), event["metadata"].get("creationTimestamp", "")))


def _is_recent(event: Document, now_s: float) -> bool:
    when = _time_of(event)
    return not when or now_s - parse_timestamp(when) / 1000 < RECENT_S


def _age_s(metadata: Document, now_s: float) -> float:
    created = metadata.get("creationTimestamp")
    return now_s - parse_timestamp(str(created)) / 1000 if created else float("inf")
