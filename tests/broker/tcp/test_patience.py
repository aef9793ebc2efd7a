"""How long a client may take, on times that are passed in."""

import pytest

from ibrik_broker.settings import LimitSettings
from ibrik_broker.tcp.patience import Patience

LIMITS = LimitSettings(idle_timeout_ms=60_000, slow_timeout_ms=10_000, slow_bytes_per_second=100)


@pytest.fixture
def patience() -> Patience:
    return Patience(LIMITS, 0.0)


def judge(patience: Patience, now: float, *, busy: bool = False, reading: bool = True) -> object:
    return patience.judge(now, is_busy=busy, is_reading=reading)


def test_a_silent_client_is_idle_after_its_time(patience: Patience) -> None:
    assert judge(patience, 59.9) is None
    assert judge(patience, 60.0) == "idle"


def test_bytes_and_replies_count_as_traffic(patience: Patience) -> None:
    patience.on_bytes(50.0, 6, True, True)
    assert judge(patience, 60.0) is None
    patience.on_reply(100.0)
    assert judge(patience, 150.0) is None
    assert judge(patience, 160.0) == "idle"


def test_a_client_that_waits_for_us_is_never_idle(patience: Patience) -> None:
    assert judge(patience, 1_000.0, busy=True) is None


def test_a_command_that_trickles_in_is_too_slow(patience: Patience) -> None:
    for second in range(11):
        patience.on_bytes(float(second), 1, False, False)
    assert judge(patience, 9.0) is None
    assert judge(patience, 10.0) == "slow"


def test_a_large_payload_may_take_long_while_it_keeps_coming(patience: Patience) -> None:
    for second in range(100):
        patience.on_bytes(float(second), 1_000, False, False)
    assert judge(patience, 100.0) is None


def test_a_busy_stream_is_never_slow_though_it_always_ends_inside_a_command(
    patience: Patience,
) -> None:
    for second in range(100):
        patience.on_bytes(float(second), 10, True, False)
    assert judge(patience, 100.0) is None


def test_while_we_do_not_read_the_client_is_not_to_blame(patience: Patience) -> None:
    patience.on_bytes(0.0, 10, False, False)
    assert judge(patience, 30.0, reading=False) is None
    patience.on_reading_resumed(30.0)
    assert judge(patience, 31.0) is None
    assert judge(patience, 40.0) == "slow"


def test_a_client_that_does_not_read_its_replies_is_ended(patience: Patience) -> None:
    patience.on_write_paused(10.0)
    assert judge(patience, 69.0, busy=True) is None
    assert judge(patience, 70.0, busy=True) == "unread"
    patience.on_write_resumed(71.0)
    assert judge(patience, 72.0) is None
