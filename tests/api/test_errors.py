"""The table of errors: complete, and each row of use to a person."""

import pytest

from ibrik_api.errors import CODES, ErrorCode, Refusal

BAD_INPUT = [
    "topic-exists",
    "topic-detached",
    "topic-not-empty",
    "invalid-name",
    "invalid-request",
    "unknown-topic",
    "unknown-partition",
    "message-too-large",
    "request-too-large",
    "batch-compressed",
    "unsupported-media-type",
    "unsupported-encoding",
    "body-not-decodable",
    "compression-bomb",
    "invalid-batch",
    "invalid-json",
    "invalid-offset",
    "offset-below-start",
    "offset-above-end",
    "idempotency-mismatch",
    "invalid-messages",
    "unknown-producer",
    "out-of-order-sequence",
    "producer-fenced",
    "publisher-not-registered",
    "unauthorized",
    "buffer-full",
    "storage-full",
    "not-ready",
    "shutting-down",
    "owner-unavailable",
    "corrupt-range",
    "storage-failed",
    "internal",
    "precondition-failed",
    "method-not-allowed",
    "not-acceptable",
    "request-timeout",
    "unsupported-field",
    "immutable-field",
    "partitions-shrink",
    "stale-generation",
    "managed-by-resource",
    "resource-conflict",
    "too-many-connections",
    "volume-in-use",
    "unknown-format",
    "foreign-file",
    "permission-denied",
]


@pytest.mark.parametrize("row", CODES.values(), ids=lambda row: row.code)
def test_a_row_says_what_happened_and_what_to_do(row: ErrorCode) -> None:
    assert 400 <= row.status <= 599
    assert row.code == row.code.lower()
    assert row.cause.endswith(".")
    assert row.advice.endswith((".", "NAME"))
    assert row.title[0].isupper()


@pytest.mark.parametrize("row", CODES.values(), ids=lambda row: row.code)
def test_only_what_may_pass_later_is_worth_a_retry(row: ErrorCode) -> None:
    if row.retryable:
        assert row.status in {408, 429, 500, 503}
    else:
        assert row.retry_after_ms is None


def test_every_refusal_of_bad_input_has_a_code() -> None:
    assert set(BAD_INPUT) <= CODES.keys()


def test_a_problem_document_carries_the_facts_of_its_refusal() -> None:
    refusal = Refusal("offset-below-start", "gone", earliest=5, latest=9)
    assert refusal.problem() == {
        "type": "https://ibrik.dev/errors/offset-below-start",
        "title": "Offset below the log start",
        "status": 410,
        "detail": "gone",
        "code": "offset-below-start",
        "retryable": False,
        "earliest": 5,
        "latest": 9,
    }


def test_the_table_advises_when_to_retry_unless_the_refusal_knows_better() -> None:
    assert Refusal("buffer-full", "x").problem()["retry_after_ms"] == 1_000
    assert Refusal("buffer-full", "x", retry_after_ms=7).problem()["retry_after_ms"] == 7
