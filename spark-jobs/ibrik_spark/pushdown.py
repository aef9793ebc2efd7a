"""Which records are asked for: ranges of partitions, offsets and times, of Spark's filters. No I/O.

Only narrows: what is left out no filter wants. A filter that is not understood here leaves
everything to Spark, which looks at each row again.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, TypeAlias

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from .slices import Slice, Span, cut
from .volume import SealedPartition

EVERY = Span(0, 1 << 63)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MS_US, DAY_US = 1_000, 86_400_000_000
MOST_VALUES = 64  # of an IN; a longer one counts as its smallest to its largest
Ranges: TypeAlias = tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is wanted, in alternatives; times in microseconds."""

    partitions: Ranges = (EVERY,)
    offsets: Ranges = (EVERY,)
    times_us: Ranges = (EVERY,)

    def narrowed(self, filters: Iterable[Filter]) -> "Wanted":
        """What all of these want too."""
        wanted = self
        for each in filters:
            name = _FIELDS.get(getattr(each, "attribute", None) or ())
            ranges = None if name is None else _ranges(each)
            if name is not None and ranges is not None:
                both = _intersection(getattr(wanted, name), ranges)
                wanted = replace(wanted, **{name: both})
        return wanted

    def slices(
        self, topic_id: str, partition: SealedPartition, *, slice_bytes: int
    ) -> Iterator[Slice]:
        """What is sealed of a partition and wanted, as portions of whole segments or parts."""
        if _hull(self.partitions, Span(partition.number, partition.number + 1)) is None:
            return
        segments = [
            segment
            for segment in partition.segments
            if _hull(self.offsets, Span(segment.base_offset, segment.next_offset))
            and _hull(self.times_us, _times_us(segment.first_append_ms, segment.last_append_ms))
        ]
        if not segments:
            return
        first, last = (partition.segments.index(segments[edge]) for edge in (0, -1))
        asked = replace(
            partition,
            start_offset=max(partition.start_offset, segments[0].base_offset),
            segments=partition.segments[first : last + 1],
        )
        for slice_ in cut(topic_id, asked, None, slice_bytes=slice_bytes):
            part = _hull(self.offsets, Span(slice_.start, slice_.end))
            if part is not None:
                yield replace(slice_, gap_start=part.start, start=part.start, end=part.end)

    def times_ms(self) -> Span | None:
        """The first append time that is wanted, and the first after them; None without any."""
        whole = _hull(self.times_us, EVERY)
        return None if whole is None else Span(-(-whole.start // MS_US), -(-whole.end // MS_US))


_FIELDS: dict[tuple[str, ...], str] = {
    ("partition",): "partitions",
    ("offset",): "offsets",
    ("timestamp",): "times_us",
    ("date",): "times_us",
}


def _ranges(each: Filter) -> Ranges | None:
    """What a filter of one column lets through; None when that is not known."""
    values = each.value if isinstance(each, In) else [getattr(each, "value", None)]
    spans = sorted(span for value in values if (span := _span(value)) is not None)
    if len(spans) < len(values) or not spans:
        return None
    if isinstance(each, EqualTo | EqualNullSafe | In):
        whole = Span(spans[0].start, spans[-1].end)
        return tuple(spans) if len(spans) <= MOST_VALUES else (whole,)
    (span,) = spans
    bounds = {
        GreaterThan: Span(span.end, EVERY.end),
        GreaterThanOrEqual: Span(span.start, EVERY.end),
        LessThan: Span(EVERY.start, span.start),
        LessThanOrEqual: Span(EVERY.start, span.end),
    }
    bound = bounds.get(type(each))
    return None if bound is None else (bound,)


def _span(value: Any) -> Span | None:
    """The numbers that a literal stands for: itself, or the microseconds of a day."""
    match value:
        case bool():
            return None
        case int():
            return Span(value, value + 1)
        case datetime() if value.tzinfo is not None:
            time = (value - EPOCH) // timedelta(microseconds=1)
            return Span(time, time + 1)
        case datetime():
            return None
        case date():
            day = (value - EPOCH.date()).days * DAY_US
            return Span(day, day + DAY_US)
    return None


def _intersection(left: Ranges, right: Ranges) -> Ranges:
    both = (Span(max(a.start, b.start), min(a.end, b.end)) for a in left for b in right)
    return tuple(span for span in both if span.start < span.end)


def _hull(ranges: Ranges, of: Span) -> Span | None:
    """From the first to the last of `of` that lies in a range; None without any."""
    found = _intersection(ranges, (of,))
    if not found:
        return None
    return Span(min(span.start for span in found), max(span.end for span in found))


def _times_us(first_ms: int, last_ms: int) -> Span:
    """All that a segment holds; without any trust that the clock never went back."""
    low, high = sorted((first_ms, last_ms))
    return Span(low * MS_US, (high + 1) * MS_US)
