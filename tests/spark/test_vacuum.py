"""What is deleted of a table's files: only what no version needs, is old, and bears our name."""

import os
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from ibrik_spark.errors import ExitCode
from ibrik_spark.files import is_ours, merge_files
from ibrik_spark.jobs import vacuum
from ibrik_spark.jobs.vacuum import Options, run
from ibrik_spark.merges import merges
from ibrik_spark.reports import Report
from tests.spark.lakes import commit, parquet_files, table_of, table_rows, write
from tests.spark.volumes import NOW_MS, fill, new_log

LONG_AGO_S = NOW_MS / 1000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Offsets 0 to 8 in three live files, and three more that a killed run left."""
    log = new_log(tmp_path / "data")
    for _ in range(3):
        fill(log, 1)
    log.close()
    commit(table_of(tmp_path).create(), write(tmp_path))
    write(tmp_path)
    return tmp_path


def run_in(folder: Path, **options: Any) -> Report:
    return run(Options(str(folder / "lake"), **options))


def age(folder: Path) -> None:
    for path in parquet_files(table_of(folder)):
        os.utime(path, (LONG_AGO_S, LONG_AGO_S))


def live_paths(folder: Path) -> set[Path]:
    table = table_of(folder)
    return {Path(table.location, file.path) for file in table.opened().live_files()}


def test_what_a_killed_run_left_goes_when_it_is_old(folder: Path) -> None:
    before = table_rows(table_of(folder))
    age(folder)
    report = run_in(folder)
    assert report.code == ExitCode.DONE
    assert report.table() == "orders  3 files deleted\n"
    assert set(parquet_files(table_of(folder))) == live_paths(folder)
    assert table_rows(table_of(folder)) == before
    assert run_in(folder).code == ExitCode.NOTHING_TO_DO


def test_files_of_a_run_that_may_be_under_way_stay(folder: Path) -> None:
    assert run_in(folder).code == ExitCode.NOTHING_TO_DO
    assert len(parquet_files(table_of(folder))) == 6


@pytest.mark.parametrize(("removed_ms", "left"), [(NOW_MS, 1), (4_102_444_800_000, 4)])
def test_what_a_merge_has_replaced_stays_as_long_as_versions_need_it(
    folder: Path, removed_ms: int, left: int
) -> None:
    table = table_of(folder)
    handle = table.opened()
    (merge,) = merges(handle.live_files())
    merged = merge_files(table.location, merge, now_ms=NOW_MS)
    handle.replace([merged], merge.paths, {}, removed_ms)
    age(folder)
    run_in(folder)
    assert len(parquet_files(table)) == left
    assert [row["offset"] for row in table_rows(table)] == list(range(9))
    assert table.opened().prove([1]) == {1: (0, 9)}


def test_what_is_not_ours_is_named_and_left(folder: Path) -> None:
    location = Path(table_of(folder).location)
    strange = [location / "notes.parquet", location / "date=2023-11-14" / "part-0-mine.parquet"]
    for path in strange:
        path.write_bytes(b"mine")
    age(folder)
    report = run_in(folder)
    assert all(path.exists() for path in strange)
    (part,) = report.parts
    assert (part.facts["files"], part.facts["foreignFiles"]) == (3, 2)
    assert "  not ours, left: notes.parquet\n" in report.table()


def test_a_plan_deletes_nothing(folder: Path) -> None:
    age(folder)
    report = run_in(folder, is_plan=True)
    assert report.code == ExitCode.DONE
    assert report.table() == "orders  3 files would be deleted\n"
    assert len(parquet_files(table_of(folder))) == 6


@pytest.mark.parametrize("keep", ["0s", "23h"])
def test_a_time_in_which_runs_are_still_under_way_is_refused(folder: Path, keep: str) -> None:
    age(folder)
    report = run_in(folder, keep=keep)
    assert report.code == ExitCode.CONFIGURATION == 64
    assert "at least 24h are kept" in report.detail
    assert len(parquet_files(table_of(folder))) == 6


def test_of_a_table_that_is_not_whole_nothing_is_deleted(folder: Path) -> None:
    age(folder)
    DeltaTable(table_of(folder).location).delete('"offset" = 4')
    report = run_in(folder)
    assert report.code == ExitCode.CONFIGURATION
    assert len(parquet_files(table_of(folder))) == 7


def test_parts_of_hours_are_kept_whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(
        "ibrik_spark.table.Handle.unneeded", lambda _, hours: asked.append(hours) or []
    )
    for keep in ("24h", "1441m", "7d"):
        run_in(folder, keep=keep)
    assert asked == [24, 25, 168]
    assert vacuum.LEAST_MS == 24 * vacuum.HOUR_MS


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (f"date=2026-11-28/part-12-{'0a' * 16}.parquet", True),
        (f"date=2026-11-28/part-12-{'0a' * 16}.parquet.tmp", False),
        (f"date=2026-11-28/part-x-{'0a' * 16}.parquet", False),
        (f"part-12-{'0a' * 16}.parquet", False),
        ("date=2026-11-28/part-00000-0b0c4c9e-2c53-44c7-9a3e-a2ff3a1f3d0a-c000.parquet", False),
        ("_delta_log/00000000000000000001.json", False),
    ],
)
def test_our_files_are_known_by_their_names(path: str, expected: bool) -> None:
    assert is_ours(path) is expected
