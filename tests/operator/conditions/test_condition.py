"""Conditions: times move with flips only, and the first reason is the one that people see."""

from ibrik_operator.conditions.condition import Verdict, Violation, merged, summary, verdict

EARLIER, NOW = "2026-11-28T10:00:00Z", "2026-11-28T11:00:00Z"


def test_the_time_of_a_transition_stays_while_the_status_does() -> None:
    first = merged(
        [], [Verdict("Ready", "False", "PoolNotReady", "Wait.")], generation=1, now=EARLIER
    )
    second = merged(
        first, [Verdict("Ready", "False", "Conflict", "Rename.")], generation=2, now=NOW
    )
    assert second == [
        {
            "type": "Ready",
            "status": "False",
            "reason": "Conflict",
            "message": "Rename.",
            "observedGeneration": 2,
            "lastTransitionTime": EARLIER,
        }
    ]
    third = merged(second, [Verdict("Ready", "True", "Ready")], generation=2, now=NOW)
    assert third[0]["lastTransitionTime"] == NOW


def test_a_type_that_nobody_judges_any_more_goes() -> None:
    before = merged([], [Verdict("Old", "True", "AsWished")], generation=1, now=EARLIER)
    assert merged(before, [], generation=1, now=NOW) == []


def test_ready_has_the_first_reason_and_says_whether_a_person_is_needed() -> None:
    waits = Violation("PoolNotReady", "The pool starts.")
    stuck = Violation("Conflict", "Set another topicName.", is_stalled=True)
    told = {one.type: (one.status, one.reason) for one in summary([None, waits, stuck])}
    assert told == {
        "Ready": ("False", "PoolNotReady"),
        "Reconciling": ("False", "PoolNotReady"),
        "Stalled": ("True", "Conflict"),
    }
    assert [one.status for one in summary([None, None])] == ["True", "False", "False"]
    assert summary([waits])[1].status == "True"


def test_a_verdict_repeats_the_violation() -> None:
    assert verdict("Accepted", None) == Verdict("Accepted", "True", "AsWished")
    assert verdict("Accepted", Violation("Conflict", "Rename.")) == Verdict(
        "Accepted", "False", "Conflict", "Rename."
    )


def test_a_message_is_never_longer_than_the_definitions_allow() -> None:
    (written,) = merged(
        [], [Verdict("Ready", "False", "Invalid", "x" * 9_000)], generation=1, now=NOW
    )
    assert len(written["message"]) == 2_048
    assert written["message"].endswith("x…")
