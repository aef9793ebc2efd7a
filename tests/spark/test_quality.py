"""The quality report: what is wrong, what is odd, and that each is counted once."""

from pathlib import Path
from typing import Any

import pytest

from ibrik_log.batch import encode
from ibrik_log.log import Log
from ibrik_log.record import Record
from ibrik_spark.errors import ExitCode
from ibrik_spark.jobs.quality import AHEAD_MS, run
from ibrik_spark.reports import Report
from ibrik_spark.spread import Options
from tests.spark.volumes import NOW_MS, TOPIC, append, break_a_batch, fill, new_log

FIELDS = {"records", "bytes", "nullKeys", "nullValues", "emptyValues", "damaged"}


def judged(data: Path, **options: Any) -> Report:
    return run(Options(data, **options))


def facts(report: Report) -> dict[str, Any]:
    (part,) = report.parts
    (partition,) = (p for p in part.facts["partitions"] if p["partition"] == 1)
    found: dict[str, Any] = partition
    return found


def seal(log: Log, *batches: list[Record]) -> None:
    append(log, *batches)
    log.roll(NOW_MS)


def test_a_healthy_log_is_clean(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    fill(log, 3)
    fill(log, 2)
    log.close()
    report = judged(tmp_path)
    assert (report.code, report.rows, report.parts[0].detail) == (ExitCode.DONE, 15, "")
    found = facts(report)
    assert {name: found[name] for name in FIELDS} == {
        "records": 15,
        "bytes": sum(2 * len(str(n)) + 2 for n in range(15)),
        "nullKeys": 0,
        "nullValues": 0,
        "emptyValues": 0,
        "damaged": 0,
    }
    assert "15 records: no problem" in report.table()


def test_what_is_odd_is_counted_and_not_wrong(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    twice = [("ce_id", b"7"), ("other", b"7")]
    seal(
        log,
        [Record(None, b"abc", twice), Record(b"", None, twice), Record(b"\xff", b"")],
        [Record(b"k", b"abc", [("ce_id", b"8")]), Record(b"k", bytes(5_000))],
    )
    log.close()
    report = judged(tmp_path)
    found = facts(report)
    assert report.code is ExitCode.DONE
    assert "orders  1 ids were there before" in report.table()
    assert {name: found[name] for name in FIELDS} == {
        "records": 5,
        "bytes": 3 + 0 + 1 + 4 + 5_001,
        "nullKeys": 1,
        "nullValues": 1,
        "emptyValues": 1,
        "damaged": 0,
    }
    assert (found["largestBytes"], found["largestOffset"], found["outliers"]) == (5_001, 4, 1)


def test_a_flipped_bit_is_named_with_its_offsets(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    fill(log, 3)
    log.close()
    break_a_batch(tmp_path)
    report = judged(tmp_path)
    assert report.code is ExitCode.CONFIGURATION
    assert facts(report)["damaged"] == 3
    assert [r[:2] for r in facts(report)["damagedRanges"]] == [[3, 6]]
    assert "offsets 3 to 5" in report.parts[0].detail
    assert report.parts[0].detail in report.table()


def test_a_segment_that_is_gone_is_a_gap(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    fill(log, 1)
    fill(log, 1)
    log.close()
    min((tmp_path / "topics" / TOPIC / "1").glob("*.log")).unlink()
    assert judged(tmp_path).code is ExitCode.RETRY


@pytest.mark.parametrize(("ahead_ms", "is_wrong"), [(0, False), (AHEAD_MS + 60_000, True)])
def test_a_clock_that_is_ahead_is_told(tmp_path: Path, ahead_ms: int, is_wrong: bool) -> None:
    import time

    log = new_log(tmp_path)
    log.append([encode([Record(b"k", b"v")])], time.time_ns() // 1_000_000 + ahead_ms)
    log.roll(NOW_MS)
    log.close()
    report = judged(tmp_path)
    assert (report.code is ExitCode.CONFIGURATION) is is_wrong
    assert ("clocks" in report.parts[0].detail) is is_wrong


def test_nothing_that_is_sealed_is_nothing_to_do(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    append(log, [Record(b"k", b"v")])
    log.close()
    assert judged(tmp_path).code is ExitCode.NOTHING_TO_DO


def test_what_is_no_volume_and_what_it_does_not_hold_are_configuration(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert judged(tmp_path / "empty").code is ExitCode.CONFIGURATION
    new_log(tmp_path / "data").close()
    report = judged(tmp_path / "data", topics=("ordres",))
    assert (report.code, "ordres" in report.detail) == (ExitCode.CONFIGURATION, True)
