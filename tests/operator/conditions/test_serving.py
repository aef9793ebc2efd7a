"""What the brokers answered, as it counts for conditions."""

import pytest

from ibrik_api.desired import ApplyResult, Outcome
from ibrik_operator.conditions.serving import refusal_of, serving_of, unavailable


def outcome(result: ApplyResult, code: str | None = None, detail: str | None = None) -> Outcome:
    return Outcome(
        kind="Topic", namespace="shop", name="orders", result=result, code=code, detail=detail
    )


@pytest.mark.parametrize(
    "result", [ApplyResult.APPLIED, ApplyResult.ADOPTED, ApplyResult.UNCHANGED]
)
def test_what_is_applied_is_confirmed(result: ApplyResult) -> None:
    serving = serving_of(outcome(result), was_known=False, was_confirmed=False)
    assert (serving.is_known, serving.is_confirmed, serving.trouble) == (True, True, None)
    assert refusal_of(serving) is None


def test_a_refused_spec_is_for_a_person_even_when_it_once_was_confirmed() -> None:
    told = outcome(ApplyResult.REFUSED, "partitions-shrink", "Partitions can grow but not shrink.")
    serving = serving_of(told, was_known=True, was_confirmed=True)
    assert (serving.is_known, serving.is_confirmed, serving.trouble) == (True, False, None)
    refusal = refusal_of(serving)
    assert refusal is not None
    assert (refusal.reason, refusal.message, refusal.is_stalled) == (
        "SpecRefused",
        "Partitions can grow but not shrink.",
        True,
    )


def test_a_name_that_belongs_to_another_is_a_conflict() -> None:
    told = outcome(ApplyResult.CONFLICT, "resource-conflict", "Set another spec.topicName.")
    refusal = refusal_of(serving_of(told, was_known=False, was_confirmed=False))
    assert refusal is not None
    assert refusal.reason == "Conflict"


@pytest.mark.parametrize(
    "code", ["owner-elsewhere", "owner-unavailable", "storage-full", "stale-generation"]
)
@pytest.mark.parametrize("was_confirmed", [True, False])
def test_what_passes_by_itself_takes_nothing_back(code: str, was_confirmed: bool) -> None:
    told = outcome(ApplyResult.REFUSED, code, "Later.")
    serving = serving_of(told, was_known=was_confirmed, was_confirmed=was_confirmed)
    assert serving.is_confirmed is was_confirmed
    assert refusal_of(serving) is None
    assert serving.trouble is not None
    assert serving.trouble.reason == "BrokerRefused"
    assert serving.trouble.message == f"{code}: Later."
    assert not serving.trouble.is_stalled


def test_silent_brokers_take_nothing_back() -> None:
    serving = unavailable("no pods yet", was_known=True, was_confirmed=True)
    assert (serving.is_known, serving.is_confirmed) == (True, True)
    assert serving.trouble is not None
    assert (serving.trouble.reason, serving.trouble.message) == (
        "BrokersUnavailable",
        "no pods yet",
    )
