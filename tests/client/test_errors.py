"""Problem documents become errors by what the caller should do."""

import pytest

from ibrik_api.errors import CODES, Refusal
from ibrik_client import (
    DamagedRange,
    Forbidden,
    IbrikError,
    InvalidRequest,
    OffsetOutOfRange,
    ServerFailed,
    Unavailable,
)
from ibrik_client.errors import error_of
from ibrik_client.transport import parse_retry_after


@pytest.mark.parametrize("code", sorted(CODES))
def test_every_code_of_the_table_becomes_an_error_that_says_what_to_do(code: str) -> None:
    problem = Refusal(code, "what happened").problem()
    error = error_of(problem)
    assert error.code == code
    assert str(error) == "what happened"
    assert error.advice == CODES[code].advice
    assert isinstance(error, Unavailable) or not CODES[code].retryable


def test_the_kind_follows_from_the_status() -> None:
    assert type(error_of({"status": 403})) is Forbidden
    assert type(error_of({"status": 418})) is InvalidRequest
    assert type(error_of({"status": 500})) is ServerFailed
    assert (
        type(error_of({"code": "corrupt-range", "from_offset": 3, "to_offset": 9})) is DamagedRange
    )


def test_an_offset_out_of_range_carries_the_range() -> None:
    refusal = Refusal("offset-below-start", "too old", earliest=5, latest=9)
    error = error_of(refusal.problem())
    assert isinstance(error, OffsetOutOfRange)
    assert (error.earliest, error.latest) == (5, 9)


def test_the_wait_is_the_documents_or_the_headers() -> None:
    refusal = Refusal("buffer-full", "later", retry_after_ms=1_500)
    error = error_of(refusal.problem(), retry_after_s=9)
    assert isinstance(error, Unavailable)
    assert error.retry_after_s == 1.5
    plain = error_of({"status": 503, "retryable": True}, retry_after_s=9)
    assert isinstance(plain, Unavailable)
    assert plain.retry_after_s == 9


def test_one_message_of_a_batch_is_judged_by_its_code_alone() -> None:
    error = error_of({"code": "buffer-full", "detail": "full", "index": 3})
    assert isinstance(error, Unavailable)
    assert isinstance(error, IbrikError)
    assert error.status == 429


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ("7", 7.0),
        ("Sat, 31 Jan 2026 10:00:10 GMT", 10.0),
        ("Sat, 31 Jan 2026 09:00:00 GMT", 0.0),
        ("soon", None),
        ("-1", None),
    ],
)
def test_retry_after_is_a_number_or_a_date(value: str | None, expected: float | None) -> None:
    assert parse_retry_after(value, 1_769_853_600.0) == expected
