"""The traffic report: every record counted once, in its minute, its partition and under its key."""

from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from ibrik_log.batch import encode
from ibrik_log.log import Log
from ibrik_log.record import Record
from ibrik_spark.errors import ExitCode
from ibrik_spark.jobs.traffic import TableOptions, run, run_on_tables
from ibrik_spark.reports import Report
from ibrik_spark.spread import Options
from tests.spark.lakes import LAKE, commit, rows_of, table_of, write
from tests.spark.volumes import NOW_MS, append, break_a_batch, fill, new_log

MINUTE_MS = 60_000
FIRST_MS = NOW_MS // MINUTE_MS * MINUTE_MS


def counted(data: Path, **options: Any) -> Report:
    return run(Options(data, **options))


def in_the_table(folder: Path, **options: Any) -> Report:
    return run_on_tables(TableOptions(str(folder / LAKE), **options))


def seal(log: Log, minute: int, *keys: bytes | None) -> None:
    log.append([encode([Record(key, b"12345") for key in keys])], FIRST_MS + minute * MINUTE_MS)


def test_every_record_is_counted_in_its_minute_and_under_its_key(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    seal(log, 0, b"a", b"a", b"b")
    log.roll(NOW_MS)
    seal(log, 0, b"a")
    seal(log, 1, None, b"\xff")
    seal(log, 5, b"b\n")
    log.roll(NOW_MS)
    log.close()
    report = counted(tmp_path)
    (part,) = report.parts
    assert (report.code, part.rows) == (ExitCode.DONE, 7)
    facts = part.facts
    assert [(m["time"][14:16], m["records"], m["bytes"]) for m in facts["minutes"]] == [
        ("13", 4, 24),
        ("14", 2, 11),
        ("18", 1, 7),
    ]
    assert [(q["from"][14:16], q["minutes"]) for q in facts["quiet"]] == [("15", 3)]
    assert facts["hotKeys"][0] == {"key": "a", "records": 3, "share": 0.4286}
    assert {hot["key"] for hot in facts["hotKeys"]} == {"a", "b", "base64:/w==", "'b\\n'"}
    assert facts["partitions"] == [{"partition": 1, "records": 7, "share": 1.0}]
    assert "busiest minute" in report.table()


def test_what_cannot_be_read_is_said_and_not_counted(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    fill(log, 3)
    log.close()
    break_a_batch(tmp_path)
    (part,) = counted(tmp_path).parts
    assert (part.rows, part.facts["damaged"]) == (6, 3)


def test_nothing_that_is_sealed_is_nothing_to_do(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    append(log, [Record(b"k", b"v")])
    log.close()
    report = counted(tmp_path)
    assert report.code is ExitCode.NOTHING_TO_DO
    assert "nothing is sealed" in report.table()


def archive(folder: Path) -> None:
    table = table_of(folder)
    commit(table.create(), write(folder, records_gaps=True))


def test_a_table_counts_as_the_log_that_it_comes_from(tmp_path: Path) -> None:
    log = new_log(tmp_path / "data")
    for minute, keys in enumerate([(b"a", b"b"), (b"a", None), (), (b"\xff",)]):
        if keys:
            seal(log, minute, *keys)
        log.roll(NOW_MS)
    log.close()
    archive(tmp_path)
    (of_the_log,), (of_the_table,) = counted(tmp_path / "data").parts, in_the_table(tmp_path).parts
    assert (of_the_table.topic, of_the_table.rows) == ("orders", 5)
    assert of_the_table == of_the_log


def test_lost_offsets_of_a_table_are_said_and_not_counted(tmp_path: Path) -> None:
    log = new_log(tmp_path / "data")
    fill(log, 3)
    log.close()
    break_a_batch(tmp_path / "data")
    archive(tmp_path)
    (part,) = in_the_table(tmp_path, topics=["orders"]).parts
    assert (part.rows, part.facts["damaged"]) == (6, 3)


def test_a_file_of_several_partitions_counts_for_each(tmp_path: Path) -> None:
    """As somebody's own compaction may leave it."""
    log = new_log(tmp_path / "data")
    fill(log, 3)
    log.close()
    archive(tmp_path)
    delta = DeltaTable(table_of(tmp_path).location)
    rows = rows_of(delta)
    number = rows.schema.get_field_index("partition")
    two = pa.array([2] * rows.num_rows, pa.int32())
    both = pa.concat_tables([rows, rows.set_column(number, rows.schema.field(number), two)])
    write_deltalake(delta, both, mode="overwrite")
    (part,) = in_the_table(tmp_path).parts
    assert [(p["partition"], p["records"]) for p in part.facts["partitions"]] == [(1, 9), (2, 9)]


def test_a_target_without_tables_is_refused(tmp_path: Path) -> None:
    report = in_the_table(tmp_path)
    assert report.code is ExitCode.CONFIGURATION
    assert "holds no table of an archive" in report.table()
