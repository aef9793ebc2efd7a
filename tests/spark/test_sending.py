"""Records in batches, and what a broker says of those that it holds already."""

import pytest

from ibrik_client import InvalidRequest
from ibrik_log.record import Record
from ibrik_spark.errors import BrokerRefused
from ibrik_spark.sending import BATCH_BYTES, BATCH_RECORDS, SEQUENCES, batches, there


def refusal(expected: int) -> InvalidRequest:
    problem = {"code": "out-of-order-sequence", "expected_sequence": expected}
    return InvalidRequest("a hole", problem)


def sizes(records: list[Record], most: int = BATCH_RECORDS) -> list[int]:
    return [len(batch) for batch in batches(records, most)]


def test_a_batch_is_bounded_in_records_and_in_bytes() -> None:
    small, large = Record(None, b"x", []), Record(b"k", b"x" * (BATCH_BYTES // 2), [])
    assert sizes([]) == []
    assert sizes([small] * 2_001) == [1_000, 1_000, 1]
    assert sizes([small] * 5, most=2) == [2, 2, 1]
    assert sizes([large, small, large]) == [2, 1]


def test_a_record_that_is_too_large_for_a_batch_goes_alone() -> None:
    small, huge = Record(None, None, [("h", None)]), Record(None, b"x" * 2 * BATCH_BYTES, [])
    assert sizes([small, huge, huge, small]) == [1, 1, 1, 1]


def test_what_the_broker_holds_is_passed_by() -> None:
    assert there(refusal(expected=700), 0) == 700
    assert there(refusal(expected=5), SEQUENCES - 5) == 10


def test_another_refusal_says_nothing_of_it() -> None:
    assert there(InvalidRequest("no", {"code": "message-too-large"}), 0) == 0


def test_a_broker_that_lost_what_it_acknowledged_ends_the_run() -> None:
    with pytest.raises(BrokerRefused, match="holds less of this replay than it acknowledged"):
        there(refusal(expected=5), 700)
