"""The archive job over a volume whose broker is away: what it does, and how it ends."""

import json
import os
import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from ibrik_log.files import RealDisk
from ibrik_log.log import Log
from ibrik_log.record import Record
from ibrik_spark.errors import ExitCode, Superseded
from ibrik_spark.jobs.archive import Options, run
from ibrik_spark.reports import TERMINATION_BYTES, Part, Report, exit_code
from tests.spark.lakes import commit, parquet_files, table_of, table_rows, write
from tests.spark.volumes import LARGE, NOW_MS, TOPIC, append, break_a_batch, fill, new_log

COMMAND = (sys.executable, "-m", "ibrik_spark", "archive")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Nine records in three batches, sealed."""
    log = new_log(tmp_path / "data")
    fill(log, 3)
    log.close()
    return tmp_path


def seal_more(folder: Path) -> None:
    log = Log.open(RealDisk(), folder / "data" / "topics" / TOPIC / "1", LARGE)
    fill(log, 3)
    log.close()


async def archive(folder: Path, **options: Any) -> Report:
    return await run(Options(folder / "data", str(folder / "lake"), **options))


def offsets(folder: Path) -> list[int]:
    return [row["offset"] for row in table_rows(table_of(folder))]


def started(folder: Path, *arguments: str, **kwargs: Any) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, "--data", str(folder / "data"), "--target", str(folder / "lake")]
    return subprocess.run(
        [*command, *arguments], capture_output=True, text=True, check=False, **kwargs
    )


async def test_every_sealed_record_is_archived_once(folder: Path) -> None:
    report = await archive(folder)
    assert (report.code, report.rows) == (ExitCode.DONE, 9)
    seal_more(folder)
    report = await archive(folder)
    assert (report.code, report.rows) == (ExitCode.DONE, 9)
    assert offsets(folder) == list(range(18))
    (part,) = report.parts
    assert part.facts["partitions"] == [{"partition": 1, "from": 0, "archivedUpTo": 18}]


async def test_a_run_with_nothing_to_do_says_so_and_commits_nothing(folder: Path) -> None:
    await archive(folder)
    report = await archive(folder)
    assert report.code == ExitCode.NOTHING_TO_DO == 2
    assert DeltaTable(table_of(folder).location).version() == 1


async def test_files_of_a_run_that_was_killed_before_its_commit_are_nobodys(folder: Path) -> None:
    table_of(folder).create()
    write(folder)
    await archive(folder)
    assert offsets(folder) == list(range(9))
    assert len(parquet_files(table_of(folder))) == 2


async def test_damage_ends_a_partition_after_what_lies_before_it(folder: Path) -> None:
    break_a_batch(folder / "data")
    report = await archive(folder)
    assert (report.code, report.rows) == (ExitCode.CONFIGURATION, 3)
    (part,) = report.parts
    assert part.detail.startswith("offsets 3 to 5 of partition 1 of orders cannot be read")
    assert "--damage record-gap" in part.detail
    assert offsets(folder) == [0, 1, 2]
    again = await archive(folder)
    assert (again.code, again.rows) == (ExitCode.CONFIGURATION, 0)


async def test_a_gap_is_recorded_when_that_is_wished(folder: Path) -> None:
    break_a_batch(folder / "data")
    await archive(folder)
    report = await archive(folder, records_gaps=True)
    assert (report.code, report.rows) == (ExitCode.DONE, 3)
    (gap,) = report.parts[0].facts["gaps"]
    assert (gap["partition"], gap["from"], gap["to"]) == (1, 3, 6)
    assert offsets(folder) == [0, 1, 2, 3, 6, 7, 8]
    assert (await archive(folder)).code == ExitCode.NOTHING_TO_DO


async def test_a_record_that_was_deleted_before_it_was_archived_is_never_jumped_over(
    folder: Path,
) -> None:
    await archive(folder)
    log = Log.open(RealDisk(), folder / "data" / "topics" / TOPIC / "1", LARGE)
    fill(log, 3)
    log.truncate_before(12)
    log.close()
    report = await archive(folder)
    assert report.code == ExitCode.CONFIGURATION
    assert "offsets 9 to 11" in report.parts[0].detail
    assert offsets(folder) == list(range(9))
    await archive(folder, records_gaps=True)
    assert offsets(folder) == [*range(10), *range(12, 18)]  # the row of offset 9 is the gap


async def test_a_restored_table_gets_nothing_more(folder: Path) -> None:
    await archive(folder)
    seal_more(folder)
    await archive(folder)
    DeltaTable(table_of(folder).location).restore(1)
    report = await archive(folder)
    assert report.code == ExitCode.CONFIGURATION
    assert "commits reach offset 18" in report.parts[0].detail


async def test_a_folder_that_is_no_volume_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    report = await archive(tmp_path)
    assert report.code == ExitCode.CONFIGURATION
    assert "check that the broker's claim is mounted there" in report.detail
    assert not (tmp_path / "lake").exists()


async def test_a_topic_that_is_not_there_is_refused(folder: Path) -> None:
    report = await archive(folder, topics=("bills",))
    assert report.code == ExitCode.CONFIGURATION
    assert "does not hold bills" in report.detail


async def test_a_plan_writes_nothing(folder: Path) -> None:
    report = await archive(folder, is_plan=True)
    assert report.code == ExitCode.DONE
    (part,) = report.parts
    assert part.facts["partitions"] == [{"partition": 1, "from": 0, "to": 9}]
    assert not (folder / "lake").exists()


async def test_a_run_that_was_overtaken_after_its_plan_is_superseded(folder: Path) -> None:
    table = table_of(folder)
    slower = table.create()
    written = write(folder)
    await archive(folder)
    with pytest.raises(Superseded):
        commit(slower, written)
    assert offsets(folder) == list(range(9))


@pytest.mark.slow
def test_the_command_ends_with_the_jobs_code_and_never_starts_spark_for_little(
    folder: Path,
) -> None:
    done = started(folder, "--output", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rows"] == 9
    script = (
        "import sys; from ibrik_spark.__main__ import app\n"
        "try: app(sys.argv[1:])\n"
        "finally: assert not {'pyspark', 'numba'} & set(sys.modules)\n"
    )
    command = [sys.executable, "-c", script, "archive", "--data", str(folder / "data")]
    nothing = subprocess.run(
        [*command, "--target", str(folder / "lake")], capture_output=True, text=True, check=False
    )
    assert (nothing.returncode, nothing.stderr) == (2, "")
    assert "nothing to do" in nothing.stdout


@pytest.mark.slow
def test_the_largest_records_are_archived_without_holding_all_of_them(tmp_path: Path) -> None:
    log = new_log(tmp_path / "data", replace(LARGE, segment_bytes=1 << 30))
    values = [bytes([number]) * (60 << 20) for number in range(16)]
    for value in values:
        append(log, [Record(None, value)])
    log.roll(NOW_MS)
    log.close()
    script = (
        "import sys; from ibrik_spark.__main__ import app\n"
        "try: app(sys.argv[1:])\n"
        "finally: print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])\n"
    )
    command = [sys.executable, "-c", script, "archive", "--data", str(tmp_path / "data")]
    done = subprocess.run(
        [*command, "--target", str(tmp_path / "lake")], capture_output=True, text=True, check=True
    )
    most_kib = int(done.stdout.split()[-1])
    assert most_kib << 10 < sum(map(len, values))
    for file in parquet_files(table_of(tmp_path)):
        for row in pq.ParquetFile(file).iter_batches(1, columns=["offset", "value"]):
            assert row["value"][0].as_py() == values[row["offset"][0].as_py()]


@pytest.mark.slow
def test_a_target_that_is_full_is_for_the_next_run(folder: Path) -> None:
    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2_500, 2_500))

    failed = started(folder, preexec_fn=small_files)
    assert failed.returncode == ExitCode.RETRY == 75, failed.stderr
    assert "not full" in failed.stdout
    done = started(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert offsets(folder) == list(range(9))


@pytest.mark.slow
def test_in_a_pod_the_code_is_in_the_last_words(folder: Path) -> None:
    log = folder / "termination-log"
    environment = {"IBRIK_SPARK_TERMINATION_LOG": str(log)}
    for code in (0, 2):
        ended = started(folder, env=os.environ | environment)
        assert ended.returncode == 0, ended.stderr
        assert json.loads(log.read_text())["code"] == code


def test_the_last_words_fit_and_name_first_who_needs_somebody(tmp_path: Path) -> None:
    parts = [Part(f"topic-{n}", ExitCode.DONE, facts={"topicId": TOPIC}) for n in range(200)]
    parts.append(Part("broken", ExitCode.CONFIGURATION, detail="look " * 100))
    report = Report("archive", ExitCode.CONFIGURATION, "a", "b", "d" * 5000, parts)
    assert exit_code(report, tmp_path / "log") == 64
    content = (tmp_path / "log").read_bytes()
    assert len(content) <= TERMINATION_BYTES
    words = json.loads(content)
    assert words["topics"][0]["topic"] == "broken"
    assert words["topicsLeftOut"] == 201 - len(words["topics"])


def test_codes_that_are_no_failure_end_a_pod_well(tmp_path: Path) -> None:
    for code in ExitCode:
        report = Report("archive", code, "a", "b")
        assert exit_code(report, None) == code
        assert (exit_code(report, tmp_path / "log") == 0) == (code in (0, 2, 3))


@pytest.mark.parametrize(
    ("codes", "worst"),
    [([], 2), ([2, 0], 0), ([0, 3], 3), ([75, 3], 75), ([64, 75, 0], 64)],
)
def test_the_code_of_a_run_is_the_worst_of_its_topics(codes: list[int], worst: int) -> None:
    assert ExitCode.worst([ExitCode(code) for code in codes]) == worst
