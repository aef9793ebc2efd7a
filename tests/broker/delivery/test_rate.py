"""How many messages a bucket lets through, and when the next."""

from hypothesis import given
from hypothesis import strategies as st

from ibrik_broker.delivery.rate import Rate


def test_a_full_bucket_gives_its_burst_and_then_waits() -> None:
    rate = Rate(10, burst=3)
    assert rate.take(0, 5) == 3
    assert rate.take(0, 1) == 0
    assert rate.next_ms(0) == 100
    assert rate.take(99, 1) == 0
    assert rate.take(100, 1) == 1


def test_without_a_burst_a_second_of_messages_may_go_at_once() -> None:
    assert Rate(7).take(0, 100) == 7


def test_an_idle_bucket_never_holds_more_than_its_burst() -> None:
    rate = Rate(10, burst=3)
    assert rate.take(0, 3) == 3
    assert rate.take(3_600_000, 100) == 3


def test_what_was_not_sent_can_go_again() -> None:
    rate = Rate(1)
    assert rate.take(0, 1) == 1
    rate.give_back(1)
    assert rate.next_ms(0) == 0
    assert rate.take(0, 2) == 1
    rate.give_back(5)
    assert rate.take(0, 5) == 1


def test_a_clock_that_is_set_back_neither_gives_nor_stops() -> None:
    rate = Rate(10, burst=1)
    assert rate.take(1_000_000, 1) == 1
    assert rate.take(5_000, 1) == 0
    assert rate.next_ms(5_000) == 5_100
    assert rate.take(5_100, 1) == 1


@given(
    per_second=st.integers(1, 1_000_000),
    burst=st.integers(1, 1_000),
    steps=st.lists(st.tuples(st.integers(0, 5_000), st.integers(0, 2_000)), max_size=50),
)
def test_never_more_than_the_rate_and_the_burst_together(
    per_second: int, burst: int, steps: list[tuple[int, int]]
) -> None:
    rate, now_ms, taken = Rate(per_second, burst), 0, 0
    for step_ms, count in steps:
        now_ms += step_ms
        got = rate.take(now_ms, count)
        assert 0 <= got <= count
        taken += got
        assert taken * 1_000 <= burst * 1_000 + now_ms * per_second


@given(per_second=st.integers(1, 1_000_000), start_ms=st.integers(0, 2**42))
def test_the_time_it_names_is_the_first_at_which_one_may_go(per_second: int, start_ms: int) -> None:
    rate = Rate(per_second, burst=1)
    assert rate.take(start_ms, 1) == 1
    next_ms = rate.next_ms(start_ms)
    assert next_ms > start_ms
    assert rate.take(next_ms - 1, 1) == 0
    assert rate.take(next_ms, 1) == 1
