"""What filters of Spark leave of a log: ranges that are never too narrow. No Spark is started."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from ibrik_log.checkpoint import SegmentSummary
from ibrik_log.epochs import Lineage
from ibrik_spark.pushdown import EVERY, MOST_VALUES, Wanted
from ibrik_spark.volume import SealedPartition

HOUR_MS = 3_600_000
# Ten records an hour, from midnight on, a segment for each hour.
LOG = SealedPartition(
    1,
    Path("nowhere"),
    0,
    tuple(
        SegmentSummary(10 * hour, 10 * hour + 10, 100, hour * HOUR_MS, (hour + 1) * HOUR_MS - 1)
        for hour in range(48)
    ),
    Lineage(),
)


def at(hour: float) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(hours=hour)


def left(*filters: Filter, partition: SealedPartition = LOG) -> list[tuple[int, int]]:
    """The ranges of offsets that are read, in slices of two segments."""
    slices = Wanted().narrowed(filters).slices("id", partition, slice_bytes=200)
    return [(slice_.start, slice_.end) for slice_ in slices]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([EqualTo(("offset",), 25)], [(25, 26)]),
        ([GreaterThan(("offset",), 459)], [(460, 480)]),
        ([GreaterThanOrEqual(("offset",), 459)], [(459, 470), (470, 480)]),
        ([LessThan(("offset",), 20)], [(0, 20)]),
        ([LessThanOrEqual(("offset",), 20)], [(0, 20), (20, 21)]),
        ([GreaterThan(("offset",), 5), LessThan(("offset",), 9)], [(6, 9)]),
        ([GreaterThan(("offset",), 9), LessThan(("offset",), 5)], []),
        ([GreaterThan(("offset",), 480)], []),
        ([In(("offset",), (3, 7))], [(3, 8)]),
        ([In(("offset",), (3, 475))], [(3, 4), (475, 476)]),
        ([EqualTo(("date",), date(1970, 1, 2)), LessThan(("offset",), 260)], [(240, 260)]),
        ([GreaterThan(("date",), date(1970, 1, 2))], []),
        ([LessThan(("timestamp",), at(1))], [(0, 10)]),
        ([LessThanOrEqual(("timestamp",), at(1))], [(0, 20)]),
        ([GreaterThanOrEqual(("timestamp",), at(47.5))], [(470, 480)]),
        ([EqualTo(("timestamp",), at(3.25))], [(30, 40)]),
        ([EqualTo(("partition",), 0)], []),
        ([In(("partition",), (0, 2))], []),
    ],
)
def test_a_filter_narrows_what_is_read(
    filters: list[Filter], expected: list[tuple[int, int]]
) -> None:
    assert left(*filters) == expected


@pytest.mark.parametrize(
    "each",
    [
        EqualTo(("partition",), 1),
        In(("partition",), (0, 1)),
        EqualTo(("key",), b"k"),
        EqualTo(("headers", "offset"), 1),
        IsNotNull(("offset",)),
        Not(EqualTo(("offset",), 1)),
        StringStartsWith(("gap_reason",), "no"),
        EqualTo(("offset",), None),
        EqualTo(("timestamp",), datetime(1970, 1, 1)),  # noqa: DTZ001 - whose zone nobody knows
    ],
)
def test_what_is_not_understood_leaves_everything_to_spark(each: Filter) -> None:
    assert left(each) == left()
    assert len(left()) == 24


def test_a_long_list_of_values_counts_as_its_ends() -> None:
    wanted = Wanted().narrowed([In(("offset",), tuple(range(10, 10 + 3 * MOST_VALUES, 2)))])
    assert wanted.offsets == ((10, 9 + 3 * MOST_VALUES),)


def test_records_below_the_log_start_are_not_asked_for() -> None:
    partition = replace(LOG, start_offset=15, segments=LOG.segments[1:])
    assert left(LessThan(("offset",), 20), partition=partition) == [(15, 20)]
    assert left(LessThan(("offset",), 15), partition=partition) == []


def test_times_to_the_millisecond_hold_every_record_that_a_filter_wants() -> None:
    def times(each: Any) -> Any:
        return Wanted().narrowed([each]).times_ms()

    half = at(1) + timedelta(microseconds=500)
    assert times(LessThan(("timestamp",), half)) == (EVERY.start, HOUR_MS + 1)
    assert times(GreaterThan(("timestamp",), half)) == times(GreaterThan(("timestamp",), at(1)))
    assert times(GreaterThanOrEqual(("timestamp",), at(1))).start == HOUR_MS
    assert times(EqualTo(("timestamp",), at(1))) == (HOUR_MS, HOUR_MS + 1)
    assert times(In(("timestamp",), ())) == Wanted().times_ms()
