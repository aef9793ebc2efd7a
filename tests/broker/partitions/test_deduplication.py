"""The deduplication window: bounded in time and number, and the same after a restart."""

from ibrik_broker.partitions.deduplication import (
    DeduplicationWindow,
    Identified,
    Known,
    Pending,
    identity_digest,
    identity_in,
    payload_digest,
)
from ibrik_log.record import Record


def known(offset: int, timestamp_ms: int = 1_000) -> Known:
    return Known(0, offset, timestamp_ms, b"payload8")


def test_source_and_id_cannot_run_into_each_other() -> None:
    assert identity_digest(b"bc", b"a") != identity_digest(b"c", b"ab")
    assert identity_digest(b"a", None) == identity_digest(b"a", b"")


def test_key_and_value_cannot_run_into_each_other() -> None:
    assert payload_digest(Record(b"ab", b"c")) != payload_digest(Record(b"b", b"ca"))


def test_an_idempotency_key_goes_before_the_id_of_the_event() -> None:
    headers = [("ce_id", b"1"), ("ce_source", b"shop"), ("ibrik-id", b"2")]
    assert identity_in(headers) == identity_digest(b"2", b"shop")  # type: ignore[arg-type]
    assert identity_in([("ce_source", b"shop")]) is None


def test_a_known_id_is_found_until_its_time_is_over() -> None:
    window = DeduplicationWindow(window_ms=100)
    window.remember(b"a", known(5, timestamp_ms=1_000))
    assert window.find(b"a", 1_099) == known(5, 1_000)
    assert window.find(b"a", 1_100) is None


def test_the_oldest_id_leaves_when_there_are_too_many() -> None:
    window = DeduplicationWindow(window_ms=1_000, id_limit=2)
    for offset, identity in enumerate((b"a", b"b", b"c")):
        window.remember(identity, known(offset))
    assert window.find(b"a", 1_000) is None
    assert len(window) == 2


def test_an_id_on_its_way_is_found_before_it_is_known() -> None:
    window = DeduplicationWindow(window_ms=100)
    pending = Pending(object(), 0, b"payload8")
    window.begin(b"a", pending)
    assert window.find(b"a", 1_000) is pending
    window.settle(b"a", known(5))
    assert window.find(b"a", 1_000) == known(5)


def test_a_refused_message_may_be_sent_again() -> None:
    window = DeduplicationWindow(window_ms=100)
    window.begin(b"a", Pending(object(), 0, b"payload8"))
    window.settle(b"a", None)
    assert window.find(b"a", 1_000) is None


def test_a_window_comes_back_in_the_order_of_time_and_without_what_is_too_old() -> None:
    window = DeduplicationWindow(window_ms=100)
    late, early, old = known(2, 1_050), known(1, 1_010), known(0, 900)
    window.restore([Identified(b"o", old), Identified(b"e", early), Identified(b"l", late)], 1_060)
    assert [entry.identity for entry in window.entries(1_060)] == [b"e", b"l"]
