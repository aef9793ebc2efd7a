"""What follows from an answer, and what Retry-After says."""

from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibrik_api.durations import HOUR_MS
from ibrik_broker.delivery.answers import (
    CONNECT_ERRORS,
    ERRORS,
    Answer,
    Verdict,
    answered,
    failed,
    judge,
    parse_retry_after,
)

NOW_MS = 1_795_000_000_000
DEAD = {400, 405, 406, 411, 413, 414, 415, 422, 431, 501}


def verdict_of(status: int) -> Verdict:
    return judge(answered(status, duration_ms=1))


@pytest.mark.parametrize("status", range(200, 300))
def test_every_2xx_delivers(status: int) -> None:
    assert verdict_of(status) is Verdict.DELIVERED


@pytest.mark.parametrize("status", [300, 301, 302, 303, 304, 307, 308, 399])
def test_a_redirect_is_a_failure_that_is_tried_again(status: int) -> None:
    answer = answered(status, duration_ms=1)
    assert answer.error == "redirect"
    assert judge(answer) is Verdict.RETRY


def test_a_status_above_399_is_dead_gone_or_tried_again() -> None:
    for status in range(400, 1_000):
        expected = Verdict.DEAD if status in DEAD else Verdict.RETRY
        assert verdict_of(status) is (Verdict.GONE if status == 410 else expected), status


@pytest.mark.parametrize("status", [0, 100, 101, 103, 199])
def test_an_answer_that_is_no_answer_is_tried_again(status: int) -> None:
    assert verdict_of(status) is Verdict.RETRY


@pytest.mark.parametrize("error", sorted(ERRORS))
def test_every_error_is_tried_again(error: str) -> None:
    assert judge(failed(error, "it failed", duration_ms=1)) is Verdict.RETRY


def test_a_body_that_never_ended_makes_no_success_of_a_200() -> None:
    cut = failed("timeout", "the answer did not end", status=200, duration_ms=15_000)
    assert judge(cut) is Verdict.RETRY
    assert judge(cut._replace(status=410)) is Verdict.RETRY


def test_a_protocol_without_statuses_delivers_without_an_error() -> None:
    assert judge(Answer(None, None, "", None, 1)) is Verdict.DELIVERED


def test_an_unknown_error_is_a_defect() -> None:
    with pytest.raises(AssertionError):
        failed("oops", "", duration_ms=1)


def test_connect_errors_are_known_errors() -> None:
    assert CONNECT_ERRORS < ERRORS
    assert failed("dns-failed", "", duration_ms=1).is_connect_error
    assert not failed("timeout", "", duration_ms=1).is_connect_error
    assert not answered(200, duration_ms=1).is_connect_error


def test_detail_and_body_are_kept_short() -> None:
    assert len(failed("refused", "x" * 5_000, duration_ms=1).detail) == 1_024
    assert len(answered(500, duration_ms=1, body=b"x" * 50_000).body) == 4_096


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [
        ("0", 0),
        ("120", 120_000),
        (" 7 ", 7_000),
        ("3600", HOUR_MS),
        ("3601", HOUR_MS),
        ("9" * 60, HOUR_MS),
        (formatdate(NOW_MS / 1000 + 90, usegmt=True), 90_000),
        (formatdate(NOW_MS / 1000 + 90), 90_000),  # -0000: the zone is unknown, UTC then
        (formatdate(NOW_MS / 1000 + 90_000, usegmt=True), HOUR_MS),
        (formatdate(NOW_MS / 1000 - 90, usegmt=True), 0),
    ],
)
def test_retry_after_is_seconds_or_a_date_up_to_an_hour(text: str, expected_ms: int) -> None:
    assert parse_retry_after(text, NOW_MS) == expected_ms


@pytest.mark.parametrize(
    "text",
    [None, "", " ", "-1", "+5", "1.5", "1e3", "0x10", "soon", "١٢", "²", "9" * 65, "\x00", "5,6"],
)
def test_a_retry_after_that_is_garbage_is_none(text: str | None) -> None:
    assert parse_retry_after(text, NOW_MS) is None


@given(st.one_of(st.text(max_size=80), st.from_regex(r"[A-Z][a-z]{2}, .{1,40}", fullmatch=True)))
def test_any_retry_after_is_none_or_at_most_an_hour(text: str) -> None:
    wait_ms = parse_retry_after(text, NOW_MS)
    assert wait_ms is None or 0 <= wait_ms <= HOUR_MS
