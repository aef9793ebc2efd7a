"""A read of the format `ibrik` as Spark asks for it, step by step; no Spark is started."""

import pickle
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import (
    DataSourceReader,
    EqualTo,
    Filter,
    GreaterThanOrEqual,
    InputPartition,
)

from ibrik_spark.errors import DamageFound, WrongOption, WrongVolume
from ibrik_spark.schema import SCHEMA
from ibrik_spark.source import FilteredReader, IbrikSource, SegmentReader
from tests.spark.volumes import NOW_MS, TOPIC, append, break_a_batch, fill, new_log, numbered


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Offsets 0 to 8 in three batches of one segment and 9 to 17 in another, a millisecond each."""
    log = new_log(tmp_path)
    fill(log, 3)
    fill(log, 3)
    append(log, numbered(log, 3))
    log.close()
    return tmp_path


def source(data: Path, **options: str) -> SegmentReader:
    options = {"path": str(data), "topic": "orders", "sliceBytes": "1"} | options
    return IbrikSource(options).reader(SCHEMA)


def filtered(data: Path, *filters: Filter) -> SegmentReader:
    reader = source(data, pushFilters="true")
    assert isinstance(reader, FilteredReader)
    assert list(reader.pushFilters(list(filters))) == list(filters)
    return reader


def batches(reader: SegmentReader) -> list[pa.RecordBatch]:
    tasks = pickle.loads(pickle.dumps((reader, reader.partitions())))
    return [batch for task in tasks[1] for batch in tasks[0].read(task)]


def rows(reader: SegmentReader) -> list[dict[str, Any]]:
    return [row for batch in batches(reader) for row in batch.to_pylist()]


def test_all_that_is_sealed_has_the_columns_of_the_table(data: Path) -> None:
    found = batches(source(data))
    assert {batch.schema for batch in found} == {SCHEMA}
    table = pa.Table.from_batches(found).to_pylist()
    assert [row["offset"] for row in table] == list(range(18))
    assert table[4] == {
        "date": datetime(2023, 11, 14, tzinfo=UTC).date(),
        "partition": 1,
        "offset": 4,
        "timestamp": datetime.fromtimestamp((NOW_MS + 3) / 1000, UTC),
        "key": b"k4",
        "value": b"v4",
        "headers": [],
        "leader_epoch": table[0]["leader_epoch"],
        "gap_to": None,
        "gap_reason": None,
    }


def test_what_no_filter_wants_is_not_read(data: Path) -> None:
    reader = filtered(data, GreaterThanOrEqual(("offset",), 11), EqualTo(("key",), b"k1"))
    (task,) = reader.partitions()
    assert (task.slice.start, task.slice.end) == (11, 18)
    first = next(segment for segment in sorted((data / "topics" / TOPIC / "1").glob("*.log")))
    first.unlink()
    assert [row["offset"] for row in rows(reader)] == list(range(11, 18))


def test_records_of_other_times_stay_in_the_task(data: Path) -> None:
    time = datetime.fromtimestamp(NOW_MS / 1000, UTC)
    reader = filtered(data, EqualTo(("timestamp",), time))
    assert [row["offset"] for row in rows(reader)] == [0, 1, 2]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"partitions": "0,1"}, range(18)),
        ({"partitions": "0"}, []),
        ({"fromOffset": "4", "toOffset": "11"}, range(4, 11)),
        ({"toTime": "2023-11-14T22:13:20.003Z"}, range(3)),
        ({"fromTime": "2023-11-14T22:13:20.003", "toOffset": "7"}, range(3, 7)),
        ({"fromTime": "2023-11-14T23:13:20.0031+01:00"}, range(6, 18)),
    ],
)
def test_options_say_what_is_read(data: Path, options: dict[str, str], expected: Any) -> None:
    assert [row["offset"] for row in rows(source(data, **options))] == list(expected)


def test_filters_are_pushed_only_into_a_reader_that_was_asked_for_it(data: Path) -> None:
    assert not isinstance(source(data), FilteredReader)
    assert type(source(data)).pushFilters is DataSourceReader.pushFilters


def test_only_the_columns_that_are_wanted_leave_the_task(data: Path) -> None:
    reader = source(data, columns="value, offset")
    assert rows(reader)[:2] == [{"value": b"v0", "offset": 0}, {"value": b"v1", "offset": 1}]


def test_damage_ends_the_read_unless_gaps_are_wished(data: Path) -> None:
    break_a_batch(data)
    with pytest.raises(DamageFound, match="offsets 3 to 5 of partition 1 of orders cannot be read"):
        rows(source(data))
    found = rows(source(data, damage="record-gap"))
    assert [row["offset"] for row in found] == [0, 1, 2, 3, *range(6, 18)]
    gap = found[3]
    assert (gap["gap_to"], gap["value"]) == (6, None)
    assert gap["gap_reason"]
    assert gap["timestamp"] == found[2]["timestamp"]


def test_a_plan_without_a_slice_reads_nothing(data: Path) -> None:
    reader = filtered(data, EqualTo(("partition",), 0))
    assert reader.partitions() == []
    assert list(reader.read(InputPartition(None))) == []


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"topic": ""}, "needs the option topic"),
        ({"path": ""}, "needs the option path"),
        ({"columns": "value,colour"}, "no column colour; it has date, partition"),
        ({"damage": "skip"}, "knows fail and record-gap"),
        ({"pushFilters": "maybe"}, "knows false and true"),
        ({"fromOffset": "first"}, "a whole number in place of 'first'"),
        ({"toTime": "noon"}, "a time like 2026"),
    ],
)
def test_an_option_that_cannot_be_meant_is_refused(
    data: Path, options: dict[str, str], sentence: str
) -> None:
    with pytest.raises(WrongOption, match=sentence):
        source(data, **options)


def test_what_is_no_volume_or_no_topic_of_it_is_refused(data: Path, tmp_path: Path) -> None:
    with pytest.raises(WrongVolume, match="does not hold bills"):
        source(data, topic="bills").partitions()
    with pytest.raises(WrongVolume, match="no volume of a broker"):
        source(tmp_path / "elsewhere").partitions()


def test_spark_is_told_the_columns_of_the_table() -> None:
    told = IbrikSource({}).schema()
    assert told.fieldNames() == SCHEMA.names
    assert IbrikSource({"columns": "offset"}).schema().simpleString() == "struct<offset:bigint>"
