"""When the next attempt is due: exact series, jitter, age."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibrik_api.durations import DAY_MS, HOUR_MS, MINUTE_MS
from ibrik_api.resources.subscription import Jitter, OnExhausted, Retry
from ibrik_api.resources.topic import RetryPreset
from ibrik_broker.delivery.retry import RetryPolicy, resolve_policy

IN_CLUSTER, WEBHOOK = RetryPreset.IN_CLUSTER, RetryPreset.WEBHOOK
IN_CLUSTER_MS = [500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000, 60_000]
WEBHOOK_MS = [
    5_000,
    5 * MINUTE_MS,
    30 * MINUTE_MS,
    2 * HOUR_MS,
    5 * HOUR_MS,
    10 * HOUR_MS,
    14 * HOUR_MS,
    20 * HOUR_MS,
    24 * HOUR_MS,
]


def policy(default: RetryPreset = IN_CLUSTER, /, **retry: Any) -> RetryPolicy:
    return resolve_policy(Retry.parse(retry), default)


def waits(policy: RetryPolicy, chance: float, limit: int = 2_000) -> list[int]:
    """The wait after each attempt, when every attempt takes no time."""
    found: list[int] = []
    now_ms = 1_000_000
    for made in range(1, limit):
        next_ms = policy.next_attempt_ms(made, 1_000_000, now_ms, lambda: chance)
        if next_ms is None:
            return found
        found.append(next_ms - now_ms)
        now_ms = next_ms
    raise AssertionError("it never ends")


@pytest.mark.parametrize(("chance", "share"), [(0.0, 0.5), (0.5, 0.75), (1.0, 1.0)])
@pytest.mark.parametrize(("preset", "exact"), [(IN_CLUSTER, IN_CLUSTER_MS), (WEBHOOK, WEBHOOK_MS)])
def test_a_preset_waits_as_its_list_says(
    preset: RetryPreset, exact: list[int], chance: float, share: float
) -> None:
    assert waits(policy(preset), chance) == [round(wait * share) for wait in exact]


@pytest.mark.parametrize(
    ("jitter", "chance", "expected"),
    [
        ("none", 0.3, [100, 300, 900, 1_000]),
        ("equal", 0.0, [50, 150, 450, 500]),
        ("equal", 0.5, [75, 225, 675, 750]),
        ("equal", 1.0, [100, 300, 900, 1_000]),
        ("full", 0.0, [0, 0, 0, 0]),
        ("full", 0.5, [50, 150, 450, 500]),
        ("full", 1.0, [100, 300, 900, 1_000]),
    ],
)
def test_own_numbers_grow_by_their_factor_up_to_max(
    jitter: str, chance: float, expected: list[int]
) -> None:
    backoff = {"initial": "100ms", "factor": 3.0, "max": "1s", "jitter": jitter}
    assert waits(policy(maxAttempts=5, backoff=backoff), chance) == expected


def test_the_preset_of_the_retry_wins_over_that_of_the_topic() -> None:
    assert waits(policy(IN_CLUSTER, preset="webhook"), 1.0) == WEBHOOK_MS
    assert waits(policy(WEBHOOK, preset="in-cluster"), 1.0) == IN_CLUSTER_MS


def test_a_number_of_attempts_wins_over_that_of_the_preset() -> None:
    assert waits(policy(preset="webhook", maxAttempts=3), 1.0) == WEBHOOK_MS[:2]
    longer = waits(policy(preset="webhook", maxAttempts=12), 1.0)
    assert longer == [*WEBHOOK_MS, 24 * HOUR_MS, 24 * HOUR_MS]
    assert waits(policy(maxAttempts=1), 1.0) == []


def test_waits_of_ones_own_keep_the_attempts_of_the_preset() -> None:
    backoff = {"initial": "1s", "factor": 1.0, "max": "1m", "jitter": "none"}
    assert waits(policy(preset="webhook", backoff=backoff), 0.0) == [1_000] * 9
    assert waits(policy(preset="in-cluster", backoff=backoff), 0.0) == [1_000] * 11


def test_no_attempt_begins_later_than_max_age_after_the_first() -> None:
    aged = policy(preset="webhook", maxAge="3h")
    assert waits(aged, 1.0) == WEBHOOK_MS[:4]  # the next one would begin after 7 h 35 min
    exactly = policy(maxAge="1500ms")
    assert waits(exactly, 1.0) == [500, 1_000]


def test_time_that_attempts_take_counts_for_max_age() -> None:
    aged = policy(maxAge="2s")
    assert aged.next_attempt_ms(1, 0, 1_400, lambda: 1.0) == 1_900
    assert aged.next_attempt_ms(1, 0, 1_501, lambda: 1.0) is None


def test_what_happens_at_the_end_is_kept() -> None:
    assert policy().on_exhausted is OnExhausted.DEAD_LETTER
    assert policy(onExhausted="block").on_exhausted is OnExhausted.BLOCK


@given(
    attempts=st.integers(1, 1_000),
    initial_ms=st.integers(1, DAY_MS),
    factor=st.floats(1.0, 10.0),
    max_ms=st.integers(1, 7 * DAY_MS),
    jitter=st.sampled_from(Jitter),
    chance=st.floats(0.0, 1.0),
)
def test_any_policy_ends_after_its_attempts_and_never_waits_longer_than_max(
    attempts: int, initial_ms: int, factor: float, max_ms: int, jitter: Jitter, chance: float
) -> None:
    backoff = {
        "initial": f"{initial_ms}ms",
        "factor": factor,
        "max": f"{max_ms}ms",
        "jitter": jitter,
    }
    found = waits(policy(maxAttempts=attempts, backoff=backoff), chance)
    assert len(found) == attempts - 1
    assert all(0 <= wait <= max_ms for wait in found)
    if jitter is not Jitter.FULL:
        assert all(wait >= min(initial_ms, max_ms) // 2 for wait in found)
