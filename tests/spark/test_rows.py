"""Rows of a table in the order of the log, whatever the files look like."""

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import write_deltalake

from ibrik_spark.errors import WrongTable
from ibrik_spark.rows import Range, in_order, place, ranges
from ibrik_spark.schema import SCHEMA
from ibrik_spark.table import Handle, open_known
from tests.spark.lakes import LAKE, commit, table_of, write
from tests.spark.volumes import TOPIC, break_a_batch, fill, new_log


def known(folder: Path) -> Handle:
    return open_known(str(folder / LAKE), TOPIC)


def filled(folder: Path) -> Handle:
    """A table of what is sealed, as the archive job writes it."""
    table = table_of(folder)
    table.create()
    commit(table.opened(), write(folder, records_gaps=True))
    return known(folder)


def row(partition: int, offset: int) -> dict[str, Any]:
    return {
        "date": date(2026, 1, 1),
        "partition": partition,
        "offset": offset,
        "timestamp": datetime(2026, 1, 1, tzinfo=UTC),
        "value": b"%d" % offset,
        "headers": [],
        "leader_epoch": 1,
    }


def rewritten(folder: Path, rows: list[dict[str, Any]]) -> Handle:
    """The same table with these rows in one file, as somebody else's rewrite may leave them."""
    location = table_of(folder).create()
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    write_deltalake(location.location, table, mode="append", partition_by=["date"])
    return known(folder)


def offsets(handle: Handle, range_: Range) -> list[int]:
    dataset = handle.dataset()
    return [n for rows in in_order(dataset, range_) for n in rows.column("offset").to_pylist()]


def test_a_table_says_itself_whose_it_is(tmp_path: Path) -> None:
    fill(new_log(tmp_path / "data"), 2)
    handle = filled(tmp_path)
    assert (handle.topic.topic_id, handle.topic.name) == (TOPIC, "orders")


def test_a_topic_without_a_table_is_said(tmp_path: Path) -> None:
    with pytest.raises(WrongTable, match="there is no table at"):
        open_known(str(tmp_path), TOPIC)


def test_records_come_in_order_and_gaps_are_counted(tmp_path: Path) -> None:
    fill(new_log(tmp_path / "data"), 5)
    break_a_batch(tmp_path / "data")
    handle = filled(tmp_path)
    (whole,) = ranges(handle.dataset(), [])
    assert (whole.partition, whole.start, whole.end) == (1, 0, 15)
    assert (whole.records, whole.lost, whole.missing) == (12, 3, 0)
    found = offsets(handle, whole)
    assert len(found) == 12
    assert found == sorted(found)


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [(None, None, (0, 15)), (4, None, (4, 15)), (None, 4, (0, 4)), (4, 5, (4, 5))],
)
def test_a_range_of_offsets_has_no_end_of_its_own(
    tmp_path: Path, start: int | None, end: int | None, expected: tuple[int, int]
) -> None:
    fill(new_log(tmp_path / "data"), 5)
    handle = filled(tmp_path)
    (found,) = ranges(handle.dataset(), place("offset", start=start, end=end))
    assert (found.start, found.end) == expected
    assert offsets(handle, found) == list(range(*expected))


def test_nothing_in_the_range_is_no_range(tmp_path: Path) -> None:
    fill(new_log(tmp_path / "data"), 1)
    dataset = filled(tmp_path).dataset()
    assert ranges(dataset, place("offset", start=99)) == []
    assert ranges(dataset, [pc.field("partition").isin([7])]) == []


def test_files_with_several_partitions_and_no_order_are_put_in_order(tmp_path: Path) -> None:
    fill(new_log(tmp_path / "data"), 1)
    rows = [row(n % 2, n // 2) for n in reversed(range(40))]
    handle = rewritten(tmp_path, rows)
    found = ranges(handle.dataset(), [])
    assert [(r.partition, r.start, r.end, r.records) for r in found] == [
        (0, 0, 20, 20),
        (1, 0, 20, 20),
    ]
    for range_ in found:
        assert offsets(handle, range_) == list(range(20))


def test_files_that_overlap_are_put_in_order(tmp_path: Path) -> None:
    fill(new_log(tmp_path / "data"), 1)
    rewritten(tmp_path, [row(1, n) for n in (0, 3, 4)])
    handle = rewritten(tmp_path, [row(1, n) for n in (1, 2, 6)])
    (found,) = ranges(handle.dataset(), [])
    assert (found.records, found.missing) == (6, 1)
    assert offsets(handle, found) == [0, 1, 2, 3, 4, 6]


def test_a_record_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    fill(new_log(tmp_path / "data"), 1)
    rewritten(tmp_path, [row(1, n) for n in (0, 1, 2)])
    handle = rewritten(tmp_path, [row(1, 2), row(1, 3)])
    (found,) = ranges(handle.dataset(), [])
    with pytest.raises(WrongTable, match="offset 2 of partition 1 is in the table twice"):
        offsets(handle, found)
