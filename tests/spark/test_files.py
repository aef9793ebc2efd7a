"""Slices into Parquet files: days, gaps, damage, and everything a record can be."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from ibrik_log.batch import encode
from ibrik_log.record import Record
from ibrik_spark.errors import TableFailed
from ibrik_spark.files import BELOW_START, Written, write_slice
from ibrik_spark.folder import Folder
from ibrik_spark.layout import LAST_TIME_MS
from ibrik_spark.slices import Slice
from tests.spark.lakes import as_json, commit, parquet_files, table_of, table_rows, write
from tests.spark.volumes import NOW_MS, TOPIC, append, break_a_batch, fill, new_log

DAY_MS = 86_400_000


def segments(folder: Path) -> list[Path]:
    return sorted((folder / "data" / "topics" / TOPIC / "1").glob("*.log"))


def three_batches(folder: Path) -> None:
    log = new_log(folder / "data")
    fill(log, 3)
    log.close()


def test_every_kind_of_record_is_in_the_table_as_it_was_sent(tmp_path: Path) -> None:
    records = [
        Record(b"key", b"value", [("ce_id", b"1"), ("ü", None), ("", b"")]),
        Record(None, None),
        Record(b"", b""),
        Record(b"\xff\xfe\x00", bytes(range(256))),
        Record(b"large", b"x" * 20_000_000),
    ]
    log = new_log(tmp_path / "data")
    append(log, *([record] for record in records))
    log.roll(NOW_MS)
    log.close()
    table = table_of(tmp_path)
    commit(table.create(), write(tmp_path))
    found = table_rows(table)
    assert [(row["key"], row["value"]) for row in found] == [(r.key, r.value) for r in records]
    assert found[0]["headers"] == [
        {"name": "ce_id", "value": b"1"},
        {"name": "ü", "value": None},
        {"name": "", "value": b""},
    ]
    assert found[0]["timestamp"] == datetime.fromtimestamp(NOW_MS / 1000, UTC)
    assert {row["gap_to"] for row in found} == {None}


def test_each_day_is_a_file_of_its_own_also_when_a_clock_was_ahead(tmp_path: Path) -> None:
    log = new_log(tmp_path / "data")
    for time_ms in (NOW_MS, NOW_MS + DAY_MS, NOW_MS + 400 * 365 * DAY_MS):
        log.append([encode([Record(b"k", b"v")] * 2)], time_ms)
    log.roll(NOW_MS)
    log.close()
    written = write(tmp_path)
    files = [file for part in written for file in part.files]
    assert [(file.date, file.start, file.last) for file in files] == [
        ("2023-11-14", 0, 1),
        ("2023-11-15", 2, 3),
        ("2423-08-09", 4, 5),
    ]
    table = table_of(tmp_path)
    commit(table.create(), written)
    days = [row["date"].isoformat() for row in table_rows(table)]
    assert days[::2] == [file.date for file in files]


def test_times_that_no_reader_knows_are_damage(tmp_path: Path) -> None:
    log = new_log(tmp_path / "data")
    log.append([encode([Record(b"k", b"v")])], LAST_TIME_MS + 1)
    log.roll(NOW_MS)
    log.close()
    (written,) = write(tmp_path)
    assert written.damage == (0, 1, "the append time is impossible")
    assert written.files == []


def test_damage_ends_a_slice_and_what_lies_before_it_is_kept(tmp_path: Path) -> None:
    three_batches(tmp_path)
    break_a_batch(tmp_path / "data")
    (written,) = write(tmp_path)
    assert written.damage is not None
    assert (written.damage.from_offset, written.damage.to_offset) == (3, 6)
    assert written.end == 3
    assert [(file.start, file.last) for file in written.files] == [(0, 2)]


def test_a_recorded_gap_is_a_row_and_the_table_counts_as_whole(tmp_path: Path) -> None:
    three_batches(tmp_path)
    break_a_batch(tmp_path / "data")
    (written,) = write(tmp_path, records_gaps=True)
    assert [(gap.from_offset, gap.to_offset) for gap in written.gaps] == [(3, 6)]
    table = table_of(tmp_path)
    commit(table.create(), [written])
    assert table.opened().prove([1]) == {1: (0, 9)}
    found = table_rows(table)
    assert [row["offset"] for row in found] == [0, 1, 2, 3, 6, 7, 8]
    (gap,) = [row for row in found if row["gap_to"] is not None]
    assert (gap["gap_to"], gap["value"]) == (6, None)
    assert gap["gap_reason"] == written.gaps[0].reason


def test_what_was_deleted_first_is_a_gap_in_front(tmp_path: Path) -> None:
    three_batches(tmp_path)
    table = table_of(tmp_path)
    slice_ = Slice(TOPIC, 1, gap_start=0, start=4, end=9, size_bytes=1)
    for records_gaps in (False, True):
        written = write_slice(
            tmp_path / "data", table.location, slice_, records_gaps=records_gaps, now_ms=NOW_MS
        )
        if not records_gaps:
            assert written.damage == (0, 4, BELOW_START)
            assert written.end == 0
    commit(table.create(), [written])
    assert table.opened().prove([1]) == {1: (0, 9)}
    assert [row["offset"] for row in table_rows(table)] == [0, 4, 5, 6, 7, 8]


def test_what_was_written_survives_the_way_from_a_task(tmp_path: Path) -> None:
    three_batches(tmp_path)
    break_a_batch(tmp_path / "data")
    for records_gaps in (False, True):
        for written in write(tmp_path, records_gaps=records_gaps):
            assert Written.parse(as_json(written.document())) == written


def test_a_file_is_never_overwritten(tmp_path: Path) -> None:
    store = Folder(str(tmp_path))
    with store.create("date=2024-01-01/a.parquet") as file:
        file.write(b"first")
    with pytest.raises(TableFailed, match="File exists"), store.create("date=2024-01-01/a.parquet"):
        pass
    assert (tmp_path / "date=2024-01-01" / "a.parquet").read_bytes() == b"first"


def test_two_runs_over_the_same_records_make_files_of_their_own(tmp_path: Path) -> None:
    three_batches(tmp_path)
    write(tmp_path)
    write(tmp_path)
    assert len(parquet_files(table_of(tmp_path))) == 2


def test_one_batch_over_midnight_is_two_files(tmp_path: Path) -> None:
    log = new_log(tmp_path / "data")
    log.append([encode([Record(b"k", b"v")] * 2)], NOW_MS)
    log.append([encode([Record(b"k", b"v")] * 2)], NOW_MS + 2 * 3_600_000)
    log.roll(NOW_MS)
    log.close()
    files = [file for part in write(tmp_path) for file in part.files]
    assert [(file.date, file.start, file.last) for file in files] == [
        ("2023-11-14", 0, 1),
        ("2023-11-15", 2, 3),
    ]
