"""Which sealed segments retention lets go. Pure: decides, deletes nothing."""

from collections.abc import Sequence

from .checkpoint import SegmentSummary


def count_expired(
    segments: Sequence[SegmentSummary],
    active_bytes: int,
    *,
    now_ms: int,
    retention_ms: int | None,
    retention_bytes: int | None,
    keep_from: int | None = None,
) -> int:
    """How many of the sealed `segments`, oldest first, may go.

    By append time: all of the segment is older than `retention_ms`. By size: at least
    `retention_bytes` stay. Nothing at or above the offset `keep_from` goes.
    """
    total_bytes = active_bytes + sum(segment.size_bytes for segment in segments)
    count = 0
    for segment in segments:
        # A segment without a readable frame has no time: it is not old, it is damaged.
        is_old = retention_ms is not None and 0 < segment.last_append_ms < now_ms - retention_ms
        is_surplus = (
            retention_bytes is not None and total_bytes - segment.size_bytes >= retention_bytes
        )
        is_kept = keep_from is not None and segment.next_offset > keep_from
        if is_kept or not (is_old or is_surplus):
            break
        total_bytes -= segment.size_bytes
        count += 1
    return count
