"""Which offsets are archived in what portions, and whether ranges cover a partition. No I/O."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from .volume import SealedPartition

SLICE_BYTES = 128 * 1024 * 1024  # of segments: one task, and some files of a few dozen megabytes


class Span(NamedTuple):
    """From `start` up to and without `end`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Slice:
    """Sealed records of one partition that one task reads and writes.

    What lies between `gap_start` and `start` is below the log start and cannot be read any more.
    """

    topic_id: str
    partition: int
    gap_start: int
    start: int
    end: int
    size_bytes: int


class Hole(Exception):
    """Ranges do not follow each other: offsets are missing, or are there twice."""

    def __init__(self, at: int, found: int) -> None:
        what = "are missing" if found > at else "are there twice"
        super().__init__(f"offsets {min(at, found)} to {max(at, found) - 1} {what}")


def tiled(spans: Iterable[Span]) -> Span | None:
    """The range that these tile without a gap and without an overlap; None without any."""
    whole: Span | None = None
    for span in sorted(spans):
        if span.end <= span.start:
            raise Hole(span.start, span.end)
        if whole is None:
            whole = span
        elif span.start != whole.end:
            raise Hole(whole.end, span.start)
        else:
            whole = Span(whole.start, span.end)
    return whole


def cut(
    topic_id: str,
    partition: SealedPartition,
    archived_up_to: int | None,
    *,
    slice_bytes: int = SLICE_BYTES,
) -> list[Slice]:
    """What is sealed and not archived, in order; whole segments, so that none is walked twice.

    A partition of which nothing was archived yet begins at its log start, which is no gap.
    """
    start = partition.start_offset if archived_up_to is None else archived_up_to
    slices: list[Slice] = []
    gap_start = start
    start = max(start, partition.start_offset)
    size_bytes = 0
    for segment in partition.segments:
        if segment.next_offset <= start:
            continue
        size_bytes += segment.size_bytes
        if size_bytes >= slice_bytes or segment.next_offset == partition.end_offset:
            end = segment.next_offset
            slices.append(Slice(topic_id, partition.number, gap_start, start, end, size_bytes))
            gap_start = start = end
            size_bytes = 0
    if gap_start < start:
        slices.append(Slice(topic_id, partition.number, gap_start, start, start, 0))
    return slices
