"""The window: carefully up, quickly down."""

import pytest

from ibrik_broker.delivery.answers import Answer, answered, failed
from ibrik_broker.delivery.window import Window

OK = answered(204, duration_ms=1)


def test_it_begins_small_and_grows_to_the_limit_with_each_success() -> None:
    window = Window()
    sizes = []
    for _ in range(20):
        sizes.append(window.size(16))
        window.learn(OK, 16)
    assert sizes == [*range(4, 17), *[16] * 7]


@pytest.mark.parametrize(
    "answer",
    [
        failed("timeout", "", duration_ms=1),
        failed("connect-failed", "", duration_ms=1),
        answered(429, duration_ms=1),
        answered(503, duration_ms=1),
    ],
)
def test_overload_halves_it_down_to_one(answer: Answer) -> None:
    window = Window()
    for _ in range(60):
        window.learn(OK, 64)
    sizes = []
    for _ in range(8):
        sizes.append(window.size(64))
        window.learn(answer, 64)
    assert sizes == [64, 32, 16, 8, 4, 2, 1, 1]


@pytest.mark.parametrize("code", [400, 401, 404, 500])
def test_other_failures_say_nothing_of_how_much_it_copes_with(code: int) -> None:
    window = Window()
    window.learn(answered(code, duration_ms=1), 16)
    assert window.size(16) == 4


def test_it_is_never_over_a_limit_that_was_lowered() -> None:
    window = Window()
    for _ in range(60):
        window.learn(OK, 64)
    assert window.size(2) == 2
