"""The standard shape of a condition, and how a new verdict becomes one. Pure: time comes in.

After KEP-1623 (standard conditions) and the conventions of kstatus: besides Ready there are
Reconciling (work is under way by itself) and Stalled (only a person can change it).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ibrik_operator.keys import Document

MAX_MESSAGE = 2_048
"""Characters; what the definitions let through. Sentences of the API server may be longer."""
Status = Literal["True", "False", "Unknown"]


@dataclass(frozen=True, slots=True)
class Violation:
    """Why a condition does not hold."""

    reason: str
    """One word of the closed list."""
    message: str
    """A sentence that says the next human step."""
    is_stalled: bool = False
    """Nothing changes until a person does something."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is said of one type now."""

    type: str
    status: Status
    reason: str
    message: str = ""


def verdict(type_: str, violation: Violation | None, *, fine: str = "AsWished") -> Verdict:
    """True with the reason `fine`, or False with that of the violation."""
    if violation is None:
        return Verdict(type_, "True", fine)
    return Verdict(type_, "False", violation.reason, violation.message)


def summary(violations: Sequence[Violation | None]) -> list[Verdict]:
    """Ready as the AND of its aspects, with the first reason; Reconciling and Stalled from it."""
    first = next((one for one in violations if one is not None), None)
    if first is None:
        return [
            Verdict("Ready", "True", "Ready"),
            Verdict("Reconciling", "False", "Ready"),
            Verdict("Stalled", "False", "Ready"),
        ]
    stuck = next((one for one in violations if one is not None and one.is_stalled), None)
    return [
        Verdict("Ready", "False", first.reason, first.message),
        Verdict("Reconciling", "True" if stuck is None else "False", first.reason, first.message),
        Verdict(
            "Stalled",
            "False" if stuck is None else "True",
            (stuck or first).reason,
            (stuck or first).message,
        ),
    ]


def merged(
    before: Sequence[Document], verdicts: Sequence[Verdict], *, generation: int, now: str
) -> list[dict[str, Any]]:
    """The conditions to write, in the order of the verdicts; `now` is RFC 3339.

    The time of the last transition stays unless the status flips. Types that are not among the
    verdicts go: no condition speaks of what nobody judges any more.
    """
    known = {condition["type"]: condition for condition in before}
    return [_written(one, known.get(one.type), generation, now) for one in verdicts]


def _written(one: Verdict, old: Document | None, generation: int, now: str) -> dict[str, Any]:
    has_flipped = old is None or old.get("status") != one.status
    return {
        "type": one.type,
        "status": one.status,
        "reason": one.reason,
        "message": _shortened(one.message),
        "observedGeneration": generation,
        "lastTransitionTime": now if has_flipped or old is None else old["lastTransitionTime"],
    }


def _shortened(message: str) -> str:
    return message if len(message) <= MAX_MESSAGE else f"{message[: MAX_MESSAGE - 1]}…"
