"""What has to come out, computed from the payloads alone, and how it is compared with what did."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from payloads import Payload
from quickstart import proof
from sinks import Sink

import ibrik_client

# Known of the source, so that a mistake in reading it cannot agree with itself.
PAYLOADS, EVENTS = 329, 58
HANGING_ATTEMPTS = 2


class Figures(NamedTuple):
    """What one subscription comes to."""

    delivered: int
    attempts: int
    failed: int
    dead: int


class Row(NamedTuple):
    """A subscription's figures, from the source and from the broker and its sinks."""

    name: str
    expected: Figures
    found: Figures


def _is_private(payload: Payload) -> bool:
    repository = payload.document.get("repository") or {}
    return repository.get("private") is True


# The filters of subscriptions.yaml once more, in Python.
WANTED: Mapping[str, Callable[[Payload], bool]] = {
    "pulls": lambda p: p.event.startswith("pull_request"),
    "issues": lambda p: p.event in ("issues", "issue_comment") and p.action != "deleted",
    "hanging": lambda p: p.event == "push" and p.document["deleted"] is True,
    "gone": _is_private,
}


def wanted(payloads: Sequence[Payload]) -> dict[str, list[Payload]]:
    """The payloads of each subscription, after checking the source against what is known of it."""
    events = len({payload.event for payload in payloads})
    proof.check(len(payloads) == PAYLOADS, f"the source has {len(payloads)}, not {PAYLOADS}")
    proof.check(events == EVENTS, f"the source has {events} types of events, not {EVENTS}")
    return {name: [p for p in payloads if wants(p)] for name, wants in WANTED.items()}


def expected(name: str, count: int) -> Figures:
    match name:
        case "issues":  # each message fails once
            return Figures(delivered=count, attempts=2 * count, failed=count, dead=0)
        case "hanging":
            attempts = HANGING_ATTEMPTS * count
            return Figures(delivered=0, attempts=attempts, failed=attempts, dead=count)
        case "gone":  # the first message found out
            return Figures(delivered=count, attempts=count + 1, failed=1, dead=0)
        case _:
            return Figures(delivered=count, attempts=count, failed=0, dead=0)


def check_sink(name: str, sink: Sink, payloads: Sequence[Payload]) -> None:
    """Every payload that was wanted arrived once: these bytes, this type, in this order."""
    taken, ids = sink.taken, [payload.id for payload in payloads]
    proof.check(sink.unsigned == 0, f"{name}: {sink.unsigned} requests without a good signature")
    proof.check(len(set(taken)) == len(taken), f"{name}: something was delivered twice")
    proof.check(set(taken) == set(ids), f"{name}: {sorted(set(taken) ^ set(ids))} differ")
    for payload in payloads:
        is_same = sink.digests[payload.id] == hashlib.sha256(payload.body).digest()
        proof.check(is_same, f"{name}: {payload.id} arrived with other bytes")
        kind = (f"github.{payload.event}", payload.action)
        proof.check(sink.types[payload.id] == kind, f"{name}: {payload.id} has another type")
    if name == "issues":
        proof.check(taken == ids, "issues: the order is not that of the topic")


def check_dead_letters(
    letters: Sequence[ibrik_client.Message], payloads: Sequence[Payload]
) -> None:
    """The dead letters are the payloads of `hanging`, with the reason."""
    bodies = {letter.headers["ce_id"]: letter.value for letter in letters}
    proof.check(
        bodies == {payload.id: payload.body for payload in payloads},
        "the dead letters are not the messages that nobody answered",
    )
    for letter in letters:
        told = letter.headers["dlq-reason"], letter.headers["dlq-attempts"]
        proof.check(told == ("timeout", str(HANGING_ATTEMPTS)), f"a dead letter says {told}")
