"""A week of simulated time: endpoints that fail by a script, both presets, exact attempt times."""

from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import accumulate

import pytest

from ibrik_api.durations import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from ibrik_api.resources.subscription import Retry
from ibrik_api.resources.topic import RetryPreset
from ibrik_broker.delivery.answers import (
    Answer,
    Verdict,
    answered,
    failed,
    judge,
    parse_retry_after,
)
from ibrik_broker.delivery.retry import resolve_policy

WEEK_MS = 7 * DAY_MS
IN_CLUSTER, WEBHOOK = RetryPreset.IN_CLUSTER, RetryPreset.WEBHOOK
WAITS_MS = {
    IN_CLUSTER: [500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, *[60_000] * 4],
    WEBHOOK: [
        5 * SECOND_MS,
        5 * MINUTE_MS,
        30 * MINUTE_MS,
        *[hours * HOUR_MS for hours in (2, 5, 10, 14, 20, 24)],
    ],
}
Script = Callable[[int, int], Answer]
"""Time and number of the attempt in, answer out."""

OK = answered(200, duration_ms=0)
DOWN = answered(503, duration_ms=0)


def always_down(_now_ms: int, _attempt: int) -> Answer:
    return DOWN


def first_three_fail(_now_ms: int, attempt: int) -> Answer:
    return OK if attempt > 3 else failed("connect-failed", "refused", duration_ms=0)


def closed_until_noon(now_ms: int, _attempt: int) -> Answer:
    return OK if now_ms % DAY_MS >= 12 * HOUR_MS else DOWN


def busy_for_twenty_minutes(now_ms: int, attempt: int) -> Answer:
    if attempt > 1:
        return OK
    return answered(429, duration_ms=0, retry_after_ms=parse_retry_after("1200", now_ms))


def every_kind_of_failure(_now_ms: int, attempt: int) -> Answer:
    if attempt % 2:
        return failed("timeout", "no answer within 15 s", duration_ms=15_000)
    return answered(302, duration_ms=0)


def rejects_the_message(_now_ms: int, attempt: int) -> Answer:
    return answered(422, duration_ms=0) if attempt == 2 else DOWN


@dataclass
class Endpoint:
    script: Script
    attempts_ms: list[int] = field(default_factory=list)
    outcome: str | None = None
    ended_ms: int | None = None
    rests_until_ms: int = 0


def live_a_week(preset: RetryPreset, *scripts: Script, chance: float = 1.0) -> list[Endpoint]:
    """One message to each endpoint, all from the same heap of due times."""
    policy = resolve_policy(Retry(), preset)
    endpoints = [Endpoint(script) for script in scripts]
    due = [(0, number) for number in range(len(endpoints))]
    while due:
        now_ms, number = heappop(due)
        endpoint = endpoints[number]
        assert now_ms <= WEEK_MS
        if now_ms < endpoint.rests_until_ms:  # a rest costs no attempt
            heappush(due, (endpoint.rests_until_ms, number))
            continue
        endpoint.attempts_ms.append(now_ms)
        answer = endpoint.script(now_ms, len(endpoint.attempts_ms))
        endpoint.rests_until_ms = now_ms + (answer.retry_after_ms or 0)
        verdict = judge(answer)
        next_ms = None
        if verdict is Verdict.RETRY:
            next_ms = policy.next_attempt_ms(
                len(endpoint.attempts_ms), endpoint.attempts_ms[0], now_ms, lambda: chance
            )
        if next_ms is not None:
            heappush(due, (next_ms, number))
            continue
        endpoint.outcome = "delivered" if verdict is Verdict.DELIVERED else "dead-lettered"
        endpoint.ended_ms = now_ms
    return endpoints


def times(preset: RetryPreset, attempts: int | None = None, share: float = 1.0) -> list[int]:
    """When the first `attempts` attempts of a preset begin, in milliseconds."""
    waits = (round(wait * share) for wait in WAITS_MS[preset])
    return list(accumulate(waits, initial=0))[:attempts]


@pytest.mark.parametrize(("preset", "days"), [(IN_CLUSTER, 0.004), (WEBHOOK, 3.2)])
def test_an_endpoint_that_is_always_down_gets_every_attempt_and_then_a_dead_letter(
    preset: RetryPreset, days: float
) -> None:
    (endpoint,) = live_a_week(preset, always_down)
    assert endpoint.attempts_ms == times(preset)
    assert endpoint.outcome == "dead-lettered"
    assert endpoint.ended_ms == endpoint.attempts_ms[-1] < days * DAY_MS


@pytest.mark.parametrize("preset", [IN_CLUSTER, WEBHOOK])
def test_the_shortest_jitter_halves_every_wait(preset: RetryPreset) -> None:
    (endpoint,) = live_a_week(preset, always_down, chance=0.0)
    assert endpoint.attempts_ms == times(preset, share=0.5)


@pytest.mark.parametrize("preset", [IN_CLUSTER, WEBHOOK])
def test_the_first_success_ends_the_attempts(preset: RetryPreset) -> None:
    (endpoint,) = live_a_week(preset, first_three_fail)
    assert endpoint.attempts_ms == times(preset, 4)
    assert endpoint.outcome == "delivered"


def test_a_webhook_survives_a_night_and_a_message_in_the_cluster_does_not() -> None:
    (webhook,) = live_a_week(WEBHOOK, closed_until_noon)
    assert webhook.attempts_ms == times(WEBHOOK, 7)  # the seventh after 17 h 35 min
    assert webhook.outcome == "delivered"
    (in_cluster,) = live_a_week(IN_CLUSTER, closed_until_noon)
    assert in_cluster.attempts_ms == times(IN_CLUSTER)
    assert in_cluster.outcome == "dead-lettered"


@pytest.mark.parametrize("preset", [IN_CLUSTER, WEBHOOK])
def test_a_retry_after_moves_the_attempt_and_costs_none(preset: RetryPreset) -> None:
    (endpoint,) = live_a_week(preset, busy_for_twenty_minutes)
    assert endpoint.attempts_ms == [0, 20 * MINUTE_MS]
    assert endpoint.outcome == "delivered"


@pytest.mark.parametrize("preset", [IN_CLUSTER, WEBHOOK])
def test_an_answer_that_will_never_change_ends_the_attempts(preset: RetryPreset) -> None:
    (endpoint,) = live_a_week(preset, rejects_the_message)
    assert endpoint.attempts_ms == times(preset, 2)
    assert endpoint.outcome == "dead-lettered"


@pytest.mark.parametrize("preset", [IN_CLUSTER, WEBHOOK])
@pytest.mark.parametrize("chance", [0.0, 0.37, 1.0])
def test_every_message_ends_within_its_attempts_whatever_the_neighbours_do(
    preset: RetryPreset, chance: float
) -> None:
    scripts = [
        always_down,
        first_three_fail,
        closed_until_noon,
        busy_for_twenty_minutes,
        every_kind_of_failure,
        rejects_the_message,
    ]
    together = live_a_week(preset, *scripts, chance=chance)
    most = len(WAITS_MS[preset]) + 1
    assert all(1 <= len(endpoint.attempts_ms) <= most for endpoint in together)
    assert all(endpoint.outcome in ("delivered", "dead-lettered") for endpoint in together)
    alone = [live_a_week(preset, script, chance=chance)[0] for script in scripts]
    assert together == alone
