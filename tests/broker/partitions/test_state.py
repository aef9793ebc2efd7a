"""The arithmetic of the input buffer."""

from hypothesis import given
from hypothesis import strategies as st

from ibrik_broker.partitions.state import BufferState


def test_a_buffer_is_full_by_records() -> None:
    buffer = BufferState(records_limit=2, bytes_limit=1_000)
    buffer.claim(2, 10)
    assert not buffer.has_room(1, 10)


def test_a_buffer_is_full_by_bytes() -> None:
    buffer = BufferState(records_limit=100, bytes_limit=50)
    buffer.claim(1, 40)
    assert buffer.has_room(1, 10)
    assert not buffer.has_room(1, 11)


def test_an_empty_buffer_takes_one_request_of_any_size() -> None:
    assert BufferState(records_limit=1, bytes_limit=1).has_room(500, 5_000)


def test_consumed_records_make_room_again() -> None:
    buffer = BufferState(records_limit=1, bytes_limit=100)
    buffer.claim(1, 10)
    buffer.consume(1, 10)
    assert buffer.pending_records == 0
    assert buffer.has_room(1, 10)


@given(st.lists(st.tuples(st.integers(1, 20), st.integers(1, 200)), max_size=60))
def test_no_more_is_pending_than_the_limits_allow(requests: list[tuple[int, int]]) -> None:
    buffer = BufferState(records_limit=10, bytes_limit=100)
    pending: list[tuple[int, int]] = []
    for request in requests:
        if buffer.has_room(*request):
            was_empty = not pending
            buffer.claim(*request)
            pending.append(request)
            assert was_empty or (buffer.pending_records <= 10 and buffer.pending_bytes <= 100)
        elif pending:
            buffer.consume(*pending.pop(0))
    for request in pending:
        buffer.consume(*request)
    assert (buffer.pending_records, buffer.pending_bytes) == (0, 0)
