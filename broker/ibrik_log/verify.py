"""Checking a segment against itself and the lineage: every frame is read and judged once.

Changes nothing; for `ibrik log verify`, also beside a running broker. Indexes are caches, so they
are no matter of truth and not looked at.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

from .epochs import Lineage
from .scan import scan_segment
from .segment import Segment


class Problem(NamedTuple):
    """Records from `from_offset` up to and without `to_offset` are not as they were written."""

    file: str
    position: int
    from_offset: int
    to_offset: int
    reason: str


def verify_segments(
    segments: Sequence[Segment],
    start_offset: int,
    pinned: Callable[[Segment], AbstractContextManager[bool]],
    lineage: Lineage,
    index_interval_bytes: int,
) -> Iterator[Problem]:
    """Walk all segments of a log, oldest first; one that is `pinned` in vain was let go."""
    expected = start_offset
    for segment in segments:
        if expected < segment.base_offset:
            yield Problem(
                segment.path.name,
                0,
                expected,
                segment.base_offset,
                "the segment before it is missing",
            )
        with pinned(segment) as is_there:
            if is_there:
                yield from verify_segment(segment, lineage, index_interval_bytes)
        expected = segment.next_offset


def verify_segment(
    segment: Segment, lineage: Lineage, index_interval_bytes: int
) -> Iterator[Problem]:
    """Walk every frame; yields the damaged ranges in order."""
    next_offset, size_bytes = segment.next_offset, segment.size_bytes
    try:
        file = segment.open()
    except FileNotFoundError:
        yield Problem(segment.path.name, 0, segment.base_offset, next_offset, "the file is missing")
        return
    with file:
        scan = scan_segment(file, segment.base_offset, size_bytes, lineage, index_interval_bytes)
    for damage in scan.damages:
        segment.note_damage(damage)
        yield Problem(
            segment.path.name,
            damage.position,
            damage.from_offset,
            damage.to_offset,
            damage.reason,
        )
    if scan.next_offset < next_offset:
        reason = scan.fault or "the segment ends before it should"
        yield Problem(segment.path.name, scan.end_position, scan.next_offset, next_offset, reason)
