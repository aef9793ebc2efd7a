"""When a circuit opens, how long it stays open, and how it closes again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibrik_api.durations import MINUTE_MS, SECOND_MS
from ibrik_api.resources.channel import Circuit
from ibrik_broker.delivery.breaker import MAX_OPEN_MS, PROBE_MS, Breaker

CLOSED, OPEN, HALF_OPEN = Circuit.CLOSED, Circuit.OPEN, Circuit.HALF_OPEN


def breaker_after(results: str, *, step_ms: int = 0) -> tuple[Breaker, int]:
    """`+` a success, `-` a failure, `x` a connect error; the time of the last one comes along."""
    breaker, now_ms = Breaker(), 0
    for number, result in enumerate(results):
        now_ms = number * step_ms
        breaker.record(result == "+", result == "x", now_ms)
    return breaker, now_ms


@pytest.mark.parametrize(
    ("results", "state"),
    [
        ("", CLOSED),
        ("---------", CLOSED),  # nine results are too few
        ("----------", OPEN),
        ("+++-------", OPEN),  # 70 %
        ("++++------", CLOSED),  # 60 %
        ("xxxx", CLOSED),
        ("xxxxx", OPEN),
        ("xxxx+xxxx", CLOSED),  # a success between
        ("xxxx-x", OPEN),  # another failure is no success
    ],
)
def test_it_opens_at_seventy_percent_of_ten_or_five_connect_errors(
    results: str, state: Circuit
) -> None:
    breaker, now_ms = breaker_after(results)
    assert breaker.state(now_ms) is state
    assert breaker.allows(now_ms) is (state is CLOSED)


def test_results_older_than_five_minutes_do_not_count() -> None:
    slow, now_ms = breaker_after("-" * 30, step_ms=35 * SECOND_MS)  # nine within the window
    assert slow.state(now_ms) is CLOSED
    faster, now_ms = breaker_after("-" * 10, step_ms=29 * SECOND_MS)
    assert faster.state(now_ms) is OPEN


def test_it_is_open_for_thirty_seconds_and_then_lets_one_message_through() -> None:
    breaker, now_ms = breaker_after("xxxxx")
    assert breaker.opens_until_ms == now_ms + 30 * SECOND_MS
    assert not breaker.allows(now_ms + 30 * SECOND_MS - 1)
    probing_ms = now_ms + 30 * SECOND_MS
    assert breaker.state(probing_ms) is HALF_OPEN
    assert breaker.allows(probing_ms)
    assert not breaker.allows(probing_ms)
    assert not breaker.allows(probing_ms + 1_000)


def test_a_probe_that_succeeds_closes_it_with_a_clean_window() -> None:
    breaker, now_ms = breaker_after("----------")
    now_ms += 30 * SECOND_MS
    assert breaker.allows(now_ms)
    breaker.record(True, False, now_ms + 10)
    assert breaker.state(now_ms + 10) is CLOSED
    assert breaker.opens_until_ms is None
    for _ in range(9):
        breaker.record(False, False, now_ms + 20)
    assert breaker.allows(now_ms + 20)


def test_it_stays_open_twice_as_long_after_each_probe_that_fails_up_to_ten_minutes() -> None:
    breaker, now_ms = breaker_after("xxxxx")
    waits = []
    for _ in range(7):
        assert breaker.opens_until_ms is not None
        waits.append(breaker.opens_until_ms - now_ms)
        now_ms = breaker.opens_until_ms
        assert breaker.allows(now_ms)
        breaker.record(False, False, now_ms)
    assert waits == [30_000, 60_000, 120_000, 240_000, 480_000, 600_000, 600_000]
    assert breaker.opens_until_ms is not None
    assert breaker.allows(breaker.opens_until_ms)
    breaker.record(True, False, breaker.opens_until_ms)
    for _ in range(5):
        breaker.record(False, True, now_ms)
    assert breaker.opens_until_ms == now_ms + 30_000  # a success forgets how long it was


def test_results_of_what_was_sent_before_it_opened_change_nothing() -> None:
    breaker, now_ms = breaker_after("xxxxx")
    breaker.record(True, False, now_ms + 1)
    breaker.record(False, True, now_ms + 2)
    assert breaker.opens_until_ms == now_ms + 30 * SECOND_MS
    breaker.record(True, False, now_ms + 31 * SECOND_MS)  # half open, but no probe is on its way
    assert breaker.state(now_ms + 31 * SECOND_MS) is HALF_OPEN


def test_a_probe_without_a_result_makes_place_for_another() -> None:
    breaker, now_ms = breaker_after("xxxxx")
    now_ms += MINUTE_MS
    assert breaker.allows(now_ms)
    assert not breaker.allows(now_ms + PROBE_MS - 1)
    assert breaker.allows(now_ms + PROBE_MS)
    assert not breaker.allows(now_ms + PROBE_MS)


def test_a_person_closes_it_at_once() -> None:
    breaker, now_ms = breaker_after("xxxxx")
    breaker.reset()
    assert breaker.state(now_ms) is CLOSED
    assert breaker.allows(now_ms)


STEPS = st.lists(
    st.tuples(st.sampled_from(["ask", "+", "-", "x"]), st.integers(0, 5 * MINUTE_MS)), max_size=300
)


@given(STEPS)
def test_any_sequence_of_results_keeps_the_circuit_sane(steps: list[tuple[str, int]]) -> None:
    breaker, now_ms, probe_ms = Breaker(), 0, None
    for action, step_ms in steps:
        now_ms += step_ms
        before = breaker.state(now_ms)
        if action == "ask":
            allowed = breaker.allows(now_ms)
            if before is HALF_OPEN:
                is_free = probe_ms is None or now_ms >= probe_ms + PROBE_MS
                assert allowed is is_free, "one probe at a time, and never none for ever"
                probe_ms = now_ms if allowed else probe_ms
            else:
                assert allowed is (before is CLOSED)
            assert breaker.state(now_ms) is before, "asking moves nothing"
            continue
        breaker.record(action == "+", action == "x", now_ms)
        after = breaker.state(now_ms)
        if action == "+":
            assert after is not OPEN or before is OPEN, "no success opens a circuit"
        if before is HALF_OPEN and probe_ms is not None:
            assert after is (CLOSED if action == "+" else OPEN)
        elif before is not CLOSED:
            assert after is before
        if after is not HALF_OPEN:
            probe_ms = None
        if after is OPEN:
            assert breaker.opens_until_ms is not None
            assert now_ms < breaker.opens_until_ms <= now_ms + MAX_OPEN_MS
        assert len(breaker._buckets) <= 10, "memory does not grow with the results"
