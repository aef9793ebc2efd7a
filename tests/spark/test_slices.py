"""What is archived in which portions, and whether ranges cover a partition."""

from pathlib import Path

import pytest

from ibrik_log.checkpoint import SegmentSummary
from ibrik_log.epochs import Lineage
from ibrik_spark.slices import Hole, Span, cut, tiled
from ibrik_spark.volume import SealedPartition


def sealed(start: int, *ends: int) -> SealedPartition:
    """Segments of 100 bytes that end at `ends`; the first begins at 0."""
    bases = [0, *ends[:-1]]
    segments = tuple(
        SegmentSummary(base, end, 100, 1, 1) for base, end in zip(bases, ends, strict=False)
    )
    return SealedPartition(1, Path("nowhere"), start, segments, Lineage())


def spans(partition: SealedPartition, archived: int | None, slice_bytes: int) -> list[Span]:
    cut_slices = cut("id", partition, archived, slice_bytes=slice_bytes)
    return [Span(slice_.start, slice_.end) for slice_ in cut_slices]


def test_slices_are_whole_segments_of_about_the_size_asked_for() -> None:
    assert spans(sealed(0, 10, 20, 30, 40, 50), None, 200) == [(0, 20), (20, 40), (40, 50)]


def test_what_is_archived_is_not_cut_again() -> None:
    assert spans(sealed(0, 10, 20, 30), 20, 1) == [(20, 30)]
    assert spans(sealed(0, 10, 20, 30), 25, 1) == [(25, 30)]
    assert spans(sealed(0, 10, 20, 30), 30, 1) == []


def test_a_first_run_begins_at_the_log_start_and_calls_nothing_a_gap() -> None:
    (only,) = cut("id", sealed(7, 10, 20), None, slice_bytes=1000)
    assert (only.gap_start, only.start, only.end) == (7, 7, 20)


def test_what_was_deleted_before_it_was_archived_is_a_gap() -> None:
    first, second = cut("id", sealed(15, 10, 20, 30), 5, slice_bytes=1)
    assert (first.gap_start, first.start, first.end) == (5, 15, 20)
    assert (second.gap_start, second.start) == (20, 20)


def test_a_gap_behind_which_nothing_is_sealed_is_seen_at_once() -> None:
    (only,) = cut("id", sealed(30), 10, slice_bytes=1)
    assert (only.gap_start, only.start, only.end) == (10, 30, 30)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ([(0, 10), (12, 20)], "offsets 10 to 11 are missing"),
        ([(0, 10), (8, 20)], "offsets 8 to 9 are there twice"),
        ([(0, 10), (0, 10)], "offsets 0 to 9 are there twice"),
    ],
)
def test_a_hole_or_an_overlap_is_named(found: list[tuple[int, int]], said: str) -> None:
    with pytest.raises(Hole, match=said):
        tiled([Span(*span) for span in found])


def test_ranges_that_follow_each_other_tile_in_any_order() -> None:
    assert tiled([Span(10, 20), Span(5, 10), Span(20, 21)]) == (5, 21)
    assert tiled([]) is None
