"""The traffic report: every record counted once, in its minute, its partition and under its key."""

from pathlib import Path
from typing import Any

from ibrik_log.batch import encode
from ibrik_log.log import Log
from ibrik_log.record import Record
from ibrik_spark.errors import ExitCode
from ibrik_spark.jobs.traffic import run
from ibrik_spark.reports import Report
from ibrik_spark.spread import Options
from tests.spark.volumes import NOW_MS, append, break_a_batch, fill, new_log

MINUTE_MS = 60_000
FIRST_MS = NOW_MS // MINUTE_MS * MINUTE_MS


def counted(data: Path, **options: Any) -> Report:
    return run(Options(data, **options))


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
