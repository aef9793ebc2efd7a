"""Sinks answer by script, and leave the circuit closed."""

import pytest

from ibrik_broker.delivery.breaker import FAILED_PERCENT
from tests.crash_delivery.scripts import HANG, answer
from tests.crash_delivery.stage import PARTS
from tests.crash_delivery.values import name_of, value_of

MESSAGES = [f"0:{number}" for number in range(2_000)]
SCRIPTS = {part.script: part.max_attempts for part in PARTS if part.script is not None}
del SCRIPTS["ok"]


def failures(script: str, attempts: int) -> list[list[bool]]:
    """Of each message, which attempts fail until one succeeds."""
    tries = []
    for message in MESSAGES:
        outcomes: list[bool] = []
        while len(outcomes) < attempts and (not outcomes or outcomes[-1]):
            reply = answer(script, message, len(outcomes) + 1)
            outcomes.append(reply is HANG or not 200 <= reply.status <= 299)
        tries.append(outcomes)
    return tries


@pytest.mark.parametrize(("script", "attempts"), SCRIPTS.items())
def test_every_script_fails_sometimes_and_the_circuit_stays_closed(
    script: str, attempts: int
) -> None:
    outcomes = [outcome for tries in failures(script, attempts) for outcome in tries]
    percent = 100 * sum(outcomes) / len(outcomes)
    assert 0 < percent < FAILED_PERCENT


def test_only_the_fatal_script_never_takes_some_messages() -> None:
    hopeless = {
        script for script in SCRIPTS if any(t[-1] for t in failures(script, SCRIPTS[script]))
    }
    assert hopeless == {"fatal"}


def test_the_same_attempt_gets_the_same_answer() -> None:
    assert all(
        answer(script, message, 2) == answer(script, message, 2)
        for script in SCRIPTS
        for message in MESSAGES[:50]
    )


@pytest.mark.parametrize("sequence", [0, 7, 160])
def test_a_value_names_its_message_and_shows_damage(sequence: int) -> None:
    name = f"3:{sequence}"
    assert name_of(value_of(name)) == name
    assert name_of(value_of(name) + b".") == ""
    assert name_of(b"") == ""
