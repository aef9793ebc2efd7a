"""The cursor and the settled ranges beyond it, against a plain set."""

from hypothesis import given
from hypothesis import strategies as st

from ibrik_broker.delivery.progress import Progress

START = 10
RANGES = st.lists(
    st.tuples(st.integers(0, 60), st.integers(1, 8)).map(lambda r: (r[0], r[0] + r[1])),
    max_size=40,
)


def model(ranges: list[tuple[int, int]], start: int = START) -> tuple[int, set[int]]:
    settled = {offset for first, end in ranges for offset in range(first, end) if offset >= start}
    cursor = start
    while cursor in settled:
        cursor += 1
    return cursor, {offset for offset in settled if offset > cursor}


@given(RANGES)
def test_it_is_what_a_set_would_say(ranges: list[tuple[int, int]]) -> None:
    progress = Progress(START)
    for first, end in ranges:
        progress.settle(first, end)
    cursor, beyond = model(ranges)
    assert progress.next_offset == cursor
    assert progress.settled_count == len(beyond)
    for offset in range(80):
        assert progress.is_settled(offset) == (offset < cursor or offset in beyond)


@given(RANGES)
def test_it_comes_back_from_its_encoding(ranges: list[tuple[int, int]]) -> None:
    progress = Progress(START)
    for first, end in ranges:
        progress.settle(first, end)
    again = Progress(progress.next_offset, progress.encode())
    assert again.encode() == progress.encode()
    assert [again.is_settled(o) for o in range(80)] == [progress.is_settled(o) for o in range(80)]


@given(RANGES)
def test_the_cursor_never_moves_backwards(ranges: list[tuple[int, int]]) -> None:
    progress = Progress(START)
    for first, end in ranges:
        before = progress.next_offset
        progress.settle(first, end)
        assert progress.next_offset >= before


@given(RANGES, st.sets(st.integers(0, 75)))
def test_reopened_offsets_are_the_only_ones_that_are_open_again(
    ranges: list[tuple[int, int]], again: set[int]
) -> None:
    progress = Progress(START)
    for first, end in ranges:
        progress.settle(first, end)
    opened = progress.reopened(sorted(again))
    lowest = min(opened.next_offset, progress.next_offset)
    for offset in range(lowest, 80):
        assert opened.is_settled(offset) == (progress.is_settled(offset) and offset not in again)


def test_settled_between_counts_what_lies_in_the_range() -> None:
    progress = Progress(0)
    progress.settle(2, 5)
    progress.settle(8, 9)
    assert progress.settled_between(0, 10) == 4
    assert progress.settled_between(3, 8) == 2
