"""Small files into large ones: the rows and their proof stay, and so does whatever runs beside."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from ibrik_log.files import RealDisk
from ibrik_log.log import Log
from ibrik_spark.errors import ExitCode, Superseded
from ibrik_spark.jobs import optimize
from ibrik_spark.jobs.optimize import Options, run
from ibrik_spark.merges import merges
from ibrik_spark.reports import Report
from tests.spark.lakes import commit, parquet_files, rows_of, table_of, table_rows, write
from tests.spark.volumes import LARGE, TOPIC, break_a_batch, fill, new_log


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Offsets 0 to 11 in four files of one day."""
    log = new_log(tmp_path / "data")
    for _ in range(4):
        fill(log, 1)
    log.close()
    commit(table_of(tmp_path).create(), write(tmp_path))
    return tmp_path


def run_in(folder: Path, **options: Any) -> Report:
    return run(Options(str(folder / "lake"), **options))


def archive_more(folder: Path) -> None:
    """Three records more in a fifth file, as another run."""
    log = Log.open(RealDisk(), folder / "data" / "topics" / TOPIC / "1", LARGE)
    start = log.end_offset
    fill(log, 1)
    log.close()
    commit(table_of(folder).opened(), write(folder, start))


def test_small_files_become_one_and_no_row_changes(folder: Path) -> None:
    table = table_of(folder)
    before = table_rows(table)
    report = run_in(folder)
    assert (report.code, report.rows) == (ExitCode.DONE, 12)
    (part,) = report.parts
    assert (part.facts["filesBefore"], part.facts["filesAfter"]) == (4, 1)
    handle = table.opened()
    assert len(handle.live_files()) == 1
    assert handle.prove([1]) == {1: (0, 12)}
    assert table_rows(table) == before
    assert len(parquet_files(table)) == 5  # the old ones are there for older versions
    assert rows_of(DeltaTable(table.location, version=1)).num_rows == 12


def test_there_is_nothing_to_do_twice(folder: Path) -> None:
    run_in(folder)
    version = DeltaTable(table_of(folder).location).version()
    report = run_in(folder)
    assert report.code == ExitCode.NOTHING_TO_DO == 2
    assert DeltaTable(table_of(folder).location).version() == version


def test_the_archive_goes_on_after_it_and_what_is_new_is_merged_too(folder: Path) -> None:
    run_in(folder)
    archive_more(folder)
    assert table_of(folder).opened().prove([1]) == {1: (0, 15)}
    assert run_in(folder).code == ExitCode.DONE
    assert [row["offset"] for row in table_rows(table_of(folder))] == list(range(15))
    assert len(table_of(folder).opened().live_files()) == 1


def test_followers_of_the_table_see_no_new_rows(folder: Path) -> None:
    run_in(folder)
    log = sorted((Path(table_of(folder).location) / "_delta_log").glob("*.json"))[-1]
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    changes = [action["add"]["dataChange"] for action in actions if "add" in action]
    changes += [action["remove"]["dataChange"] for action in actions if "remove" in action]
    assert changes == [False] * 5


def test_a_gap_stays_a_gap(tmp_path: Path) -> None:
    log = new_log(tmp_path / "data")
    fill(log, 3)
    fill(log, 1)
    log.close()
    break_a_batch(tmp_path / "data")
    commit(table_of(tmp_path).create(), write(tmp_path, records_gaps=True))
    before = table_rows(table_of(tmp_path))
    assert run_in(tmp_path).code == ExitCode.DONE
    assert table_rows(table_of(tmp_path)) == before
    assert [row["gap_to"] for row in before if row["gap_to"] is not None] == [6]
    assert table_of(tmp_path).opened().prove([1]) == {1: (0, 12)}


def test_an_archive_run_that_commits_meanwhile_is_no_reason_to_stop(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    merge = optimize.merge_files

    def merge_and_be_overtaken(*arguments: Any, **options: Any) -> Any:
        archive_more(folder)
        return merge(*arguments, **options)

    monkeypatch.setattr(optimize, "merge_files", merge_and_be_overtaken)
    assert run_in(folder).code == ExitCode.DONE
    assert len(table_of(folder).opened().live_files()) == 2
    assert table_of(folder).opened().prove([1]) == {1: (0, 15)}
    assert [row["offset"] for row in table_rows(table_of(folder))] == list(range(15))


def test_of_two_runs_at_once_one_is_superseded(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    merge = optimize.merge_files

    def merge_and_be_overtaken(*arguments: Any, **options: Any) -> Any:
        monkeypatch.setattr(optimize, "merge_files", merge)
        assert run_in(folder).code == ExitCode.DONE
        return merge(*arguments, **options)

    monkeypatch.setattr(optimize, "merge_files", merge_and_be_overtaken)
    report = run_in(folder)
    assert report.code == ExitCode.SUPERSEDED == 3
    assert "nothing of this one is visible" in report.parts[0].detail
    assert table_of(folder).opened().prove([1]) == {1: (0, 12)}
    assert len(table_rows(table_of(folder))) == 12


def test_a_commit_between_opening_and_replacing_is_noticed(folder: Path) -> None:
    table = table_of(folder)
    slower = table.opened()
    (merge,) = merges(slower.live_files())
    merged = optimize.merge_files(table.location, merge, now_ms=1)
    archive_more(folder)
    with pytest.raises(Superseded):
        slower.replace([merged], merge.paths, {}, 1)
    assert table.opened().prove([1]) == {1: (0, 15)}


def test_a_plan_says_what_would_be_and_writes_nothing(folder: Path) -> None:
    report = run_in(folder, is_plan=True)
    assert (report.code, report.rows) == (ExitCode.DONE, 0)
    assert "4 files before, 1 after" in report.table()
    assert len(parquet_files(table_of(folder))) == 4


def test_a_table_that_is_not_whole_is_left_alone(folder: Path) -> None:
    DeltaTable(table_of(folder).location).delete('"offset" = 4')
    report = run_in(folder)
    assert report.code == ExitCode.CONFIGURATION == 64
    assert "offsets 4 to 4 are missing" in report.parts[0].detail


def test_a_file_that_is_not_what_the_table_says_ends_the_run(folder: Path) -> None:
    first, second, *_ = (Path(path) for path in parquet_files(table_of(folder)))
    content = first.read_bytes()
    first.write_bytes(second.read_bytes())
    report = run_in(folder)
    assert report.code == ExitCode.CONFIGURATION
    assert "are not what the table says" in report.parts[0].detail
    first.write_bytes(content)
    assert table_of(folder).opened().prove([1]) == {1: (0, 12)}


def test_a_file_that_cannot_be_read_is_for_the_next_run(folder: Path) -> None:
    parquet_files(table_of(folder))[0].write_bytes(b"torn")
    report = run_in(folder)
    assert report.code == ExitCode.RETRY == 75


@pytest.mark.parametrize("topics", [(), ("bills",)])
def test_a_target_without_such_a_table_is_refused(tmp_path: Path, topics: tuple[str, ...]) -> None:
    (tmp_path / "lake" / "notes").mkdir(parents=True)
    report = run_in(tmp_path, topics=topics)
    assert report.code == ExitCode.CONFIGURATION
    assert "check the target, and that it is mounted" in report.detail


def test_other_folders_of_a_target_are_passed_by(folder: Path) -> None:
    (folder / "lake" / "notes").mkdir()
    assert run_in(folder, topics=("orders",)).code == ExitCode.DONE


@pytest.mark.slow
def test_the_command_ends_with_the_jobs_code(folder: Path) -> None:
    command = [sys.executable, "-m", "ibrik_spark", "optimize", "--target", str(folder / "lake")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "orders  4 files before, 1 after  12 rows rewritten\n"
