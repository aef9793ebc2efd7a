"""The same slices by tasks of a real Spark; one session for all of it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from ibrik_spark.errors import ExitCode, SegmentDeleted, TableFailed
from ibrik_spark.jobs.archive import Options, run
from ibrik_spark.slices import Slice, cut
from ibrik_spark.work import Here, Tasks, Work, spark
from tests.spark.lakes import commit, table_of, table_rows, write
from tests.spark.sessions import STARTS_SPARK
from tests.spark.volumes import NOW_MS, TOPIC, fill, listed, new_log

pytestmark = STARTS_SPARK


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    with spark(2) as made:
        yield made


def volume(folder: Path) -> list[Slice]:
    log = new_log(folder / "data")
    for _ in range(5):
        fill(log, 2)
    log.close()
    return cut(TOPIC, listed(folder / "data"), None, slice_bytes=1)


def test_tasks_write_what_one_process_writes(tmp_path: Path, session: Any) -> None:
    slices = volume(tmp_path)
    table = table_of(tmp_path)
    handle = table.create()
    work = Work(tmp_path / "data", records_gaps=False, now_ms=NOW_MS)
    written = Tasks(work, session).write(table.location, slices)
    assert len(written) == 5
    commit(handle, sorted(written, key=lambda part: part.start))
    assert table.opened().prove([1]) == {1: (0, 30)}
    assert [row["value"] for row in table_rows(table)] == [b"v%d" % n for n in range(30)]
    here = Here(work).write(table.location, slices)
    assert [(part.start, part.end) for part in here] == sorted(
        (part.start, part.end) for part in written
    )


def test_what_a_task_refuses_arrives_as_itself(tmp_path: Path, session: Any) -> None:
    slices = volume(tmp_path)
    location = table_of(tmp_path).location
    tasks = Tasks(Work(tmp_path / "data", records_gaps=False, now_ms=NOW_MS), session)
    (min((tmp_path / "data" / "topics" / TOPIC / "1").glob("*.log"))).unlink()
    with pytest.raises(SegmentDeleted, match="the log start has moved"):
        tasks.write(location, slices)
    (tmp_path / "file").write_text("a file where the target should be")
    with pytest.raises(TableFailed, match="not full"):
        tasks.write(str(tmp_path / "file" / "table"), slices[1:])


def test_spark_reads_the_table_without_a_jar(tmp_path: Path, session: Any) -> None:
    volume(tmp_path)
    table = table_of(tmp_path)
    commit(table.create(), write(tmp_path))
    files = DeltaTable(table.location).file_uris()
    frame = session.read.option("basePath", table.location).parquet(*files)
    assert frame.count() == 30
    (first,) = frame.where("offset = 0").collect()
    assert (bytes(first.value), str(first.date)) == (b"v0", "2023-11-14")


async def test_a_job_with_much_to_do_gives_it_to_spark(tmp_path: Path, session: Any) -> None:
    assert session is not None  # the job uses it, and ends it: this test is the last
    volume(tmp_path)
    options = Options(tmp_path / "data", str(tmp_path / "lake"), spark_bytes=1, cores=2)
    report = await run(options)
    assert (report.code, report.rows) == (ExitCode.DONE, 30)
