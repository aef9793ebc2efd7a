"""What the brokers say of one resource, in the shape that conditions are made from. Pure."""

from dataclasses import dataclass
from typing import Any

from ibrik_api.desired import CARRIED_OUT, ApplyResult, Outcome
from ibrik_api.errors import CODES
from ibrik_operator.conditions.condition import Violation
from ibrik_operator.conditions.reasons import Reason

LATER = frozenset({"owner-elsewhere", "stale-generation"})
"""Codes that pass by themselves although they are no fault of the brokers."""


@dataclass(frozen=True, slots=True)
class Serving:
    is_known: bool = False
    """Some generation of this very resource is served."""
    is_confirmed: bool = False
    """The newest generation is."""
    status: dict[str, Any] | None = None
    """What the brokers observe."""
    refusal: Outcome | None = None
    """The spec was refused: a person has to change it."""
    trouble: Violation | None = None
    """It did not work, and is tried again."""


def serving_of(outcome: Outcome, *, was_known: bool, was_confirmed: bool) -> Serving:
    """From the answer to an apply. What was once confirmed stays so, unless the spec is refused."""
    if outcome.result in CARRIED_OUT:
        return Serving(is_known=True, is_confirmed=True, status=outcome.observed)
    if outcome.result is ApplyResult.DELETED:
        return Serving()
    if _is_for_a_person(outcome):
        return Serving(is_known=was_known, refusal=outcome)
    return Serving(
        is_known=was_known,
        is_confirmed=was_confirmed,
        trouble=Violation(Reason.BROKER_REFUSED, f"{outcome.code}: {outcome.detail}"),
    )


def unavailable(reason: str, *, was_known: bool, was_confirmed: bool) -> Serving:
    """The brokers did not answer; what they once confirmed stays true."""
    return Serving(
        is_known=was_known,
        is_confirmed=was_confirmed,
        trouble=Violation(Reason.BROKERS_UNAVAILABLE, reason),
    )


def refusal_of(serving: Serving) -> Violation | None:
    if serving.refusal is None:
        return None
    reason = (
        Reason.CONFLICT if serving.refusal.result is ApplyResult.CONFLICT else Reason.SPEC_REFUSED
    )
    return Violation(reason, serving.refusal.detail or str(serving.refusal.code), is_stalled=True)


def _is_for_a_person(outcome: Outcome) -> bool:
    if outcome.result is ApplyResult.CONFLICT:
        return True
    row = CODES.get(outcome.code or "")
    is_permanent = row is not None and not row.retryable and row.status < 500
    return is_permanent and outcome.code not in LATER
