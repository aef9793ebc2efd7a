"""What retention holds back for an archive that is behind, and when that is too much. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ibrik_api.resources.topic import Archive, HoldAction
from ibrik_log.checkpoint import SegmentSummary


@dataclass(frozen=True, slots=True)
class Hold:
    """How much may be held back of one partition, and what happens beyond it."""

    size_bytes: int | None
    time_ms: int | None
    action: HoldAction


class Held(NamedTuple):
    """What is held back of one partition now."""

    size_bytes: int = 0
    over: tuple[SegmentSummary, ...] = ()
    """The oldest segments, without which the rest would be within the limits."""


def hold_of(archive: Archive) -> Hold | None:
    """None when nothing is held back: the topic has no archive."""
    if not archive.enabled:
        return None
    limit = archive.hold_max
    return Hold(limit.size_bytes, limit.time_ms, limit.action)


def held_back(
    expired: Sequence[SegmentSummary],
    archived_up_to: int,
    hold: Hold,
    *,
    now_ms: int,
    retention_ms: int | None,
) -> Held:
    """Of the segments that retention lets go, oldest first, those that are not archived."""
    held = [segment for segment in expired if segment.next_offset > archived_up_to]
    size_bytes = left_bytes = sum(segment.size_bytes for segment in held)
    over: list[SegmentSummary] = []
    for segment in held:
        held_ms = now_ms - segment.last_append_ms - (retention_ms or 0)
        is_too_much = hold.size_bytes is not None and left_bytes > hold.size_bytes
        is_too_long = hold.time_ms is not None and held_ms > hold.time_ms
        if not (is_too_much or is_too_long):
            break
        over.append(segment)
        left_bytes -= segment.size_bytes
    return Held(size_bytes, tuple(over))
