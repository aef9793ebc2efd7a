"""Conditions: Ready is the AND, and a time moves only when a status flips."""

from typing import Any

from ibrik_api.resources.meta import ConditionStatus
from ibrik_broker.registrations.conditions import (
    SUBSCRIPTION_ASPECTS,
    Aspect,
    Fault,
    Health,
    Reason,
)

MADE_MS, LATER_MS, LAST_MS = 1_000, 2_000, 3_000
NO_TOPIC = {Aspect.TOPIC_RESOLVED: Fault(Reason.TOPIC_NOT_FOUND, "There is no topic.")}
NO_CHANNEL = {Aspect.DESTINATION_RESOLVED: Fault(Reason.DESTINATION_NOT_FOUND, "No channel.")}


def told(health: Health) -> dict[str, tuple[bool, str, str]]:
    found = health.conditions(SUBSCRIPTION_ASPECTS, generation=4, created_ms=MADE_MS)
    assert all(condition.observed_generation == 4 for condition in found)
    return {
        c.type: (c.status is ConditionStatus.TRUE, c.reason, c.last_transition_time[17:23])
        for c in found
    }


def test_without_faults_everything_holds_since_it_was_made() -> None:
    assert told(Health()) == {
        "Ready": (True, "Ready", "01.000"),
        "TopicResolved": (True, "AsWished", "01.000"),
        "DestinationResolved": (True, "AsWished", "01.000"),
        "DataPlaneReady": (True, "AsWished", "01.000"),
    }


def test_ready_has_the_first_fault_and_both_flip() -> None:
    health = Health()
    health.note(NO_CHANNEL | NO_TOPIC, LATER_MS)
    found = told(health)
    assert found["Ready"] == (False, "TopicNotFound", "02.000")
    assert found["TopicResolved"] == (False, "TopicNotFound", "02.000")
    assert found["DestinationResolved"] == (False, "DestinationNotFound", "02.000")
    assert found["DataPlaneReady"] == (True, "AsWished", "01.000")


def test_a_fault_that_stays_keeps_its_time_and_so_does_ready() -> None:
    health = Health()
    health.note(NO_TOPIC, LATER_MS)
    health.note(NO_TOPIC | NO_CHANNEL, LAST_MS)
    assert told(health)["Ready"][2] == "02.000"
    assert told(health)["DestinationResolved"][2] == "03.000"
    health.note({}, LAST_MS)
    assert told(health)["Ready"] == (True, "Ready", "03.000")
    assert told(health)["TopicResolved"] == (True, "AsWished", "03.000")


def test_every_fault_says_the_next_step_in_a_sentence() -> None:
    health = Health()
    health.note(NO_TOPIC, LATER_MS)
    conditions: list[Any] = health.conditions(SUBSCRIPTION_ASPECTS, generation=1, created_ms=0)
    assert conditions[0].message == "There is no topic."
    assert conditions[-1].message == ""
