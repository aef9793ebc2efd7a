"""A volume that was brought back to an older copy: its records are not those of the table."""

import shutil
from pathlib import Path

import pytest

from ibrik_log.files import RealDisk
from ibrik_log.log import Log
from ibrik_log.record import Record
from ibrik_log.segment import segment_name
from ibrik_spark.errors import ExitCode, SegmentDeleted
from ibrik_spark.history import newest_record
from ibrik_spark.jobs.archive import Options, run
from ibrik_spark.reports import Report
from tests.spark.lakes import table_of, table_rows
from tests.spark.volumes import LARGE, TOPIC, append, break_a_batch, fill, listed, new_log


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two sealed segments of nine records each, archived, and a copy from between them."""
    log = new_log(tmp_path / "data")
    fill(log, 3)
    log.close()
    shutil.copytree(tmp_path / "data", tmp_path / "copy")
    fill_more(tmp_path / "data", 3)
    return tmp_path


def fill_more(data: Path, batches: int) -> None:
    log = Log.open(RealDisk(), data / "topics" / TOPIC / "1", LARGE)
    fill(log, batches)
    log.close()


def bring_back_the_copy(folder: Path) -> None:
    shutil.rmtree(folder / "data")
    (folder / "copy").rename(folder / "data")


async def archive(folder: Path, target: str = "lake", **options: bool) -> Report:
    return await run(Options(folder / "data", str(folder / target), **options))


async def test_a_log_that_ends_before_the_table_is_refused(folder: Path) -> None:
    await archive(folder)
    bring_back_the_copy(folder)
    report = await archive(folder)
    assert report.code == ExitCode.CONFIGURATION
    detail = report.parts[0].detail
    assert "sealed up to offset 9, and the table ends at 18" in detail
    assert "--new-table" in detail


async def test_a_log_that_has_grown_past_the_table_again_is_refused(folder: Path) -> None:
    await archive(folder)
    bring_back_the_copy(folder)
    log = Log.open(RealDisk(), folder / "data" / "topics" / TOPIC / "1", LARGE)
    for _ in range(4):
        append(log, [Record(b"other", b"record")] * 3)
    log.roll(1)
    log.close()
    report = await archive(folder)
    assert report.code == ExitCode.CONFIGURATION
    assert "offset 17 is another record in the log" in report.parts[0].detail
    assert len(table_rows(table_of(folder))) == 18
    assert (await archive(folder, "another")).rows == 21


async def test_the_same_record_at_another_time_is_another_record(folder: Path) -> None:
    await archive(folder)
    bring_back_the_copy(folder)
    log = Log.open(RealDisk(), folder / "data" / "topics" / TOPIC / "1", LARGE)
    append(log, [Record(b"k%d" % n, b"v%d" % n) for n in range(9, 18)])
    log.roll(1)
    log.close()
    assert (await archive(folder)).code == ExitCode.CONFIGURATION


async def test_damage_of_what_is_archived_is_stepped_over(folder: Path) -> None:
    await archive(folder)
    break_a_batch(folder / "data")
    newest = newest_record(listed(folder / "data"), 6)
    assert newest is not None
    assert newest.offset == 2
    fill_more(folder / "data", 1)
    assert (await archive(folder)).rows == 3


async def test_a_gap_in_the_table_is_compared_with_nothing(folder: Path) -> None:
    break_a_batch(folder / "copy")
    bring_back_the_copy(folder)
    await archive(folder, records_gaps=True)
    assert (await archive(folder)).code == ExitCode.NOTHING_TO_DO


def test_without_a_readable_record_there_is_none(folder: Path) -> None:
    partition = listed(folder / "data")
    assert newest_record(partition, 0) is None


def test_a_segment_that_is_gone_is_told(folder: Path) -> None:
    partition = listed(folder / "data")
    (partition.path / segment_name(9)).unlink()
    with pytest.raises(SegmentDeleted):
        newest_record(partition, 18)
