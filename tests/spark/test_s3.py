"""Tables in an object store: the same promises as in a folder, and what its refusals come to."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from ibrik_log.files import RealDisk
from ibrik_log.log import Log
from ibrik_spark.errors import ExitCode, Superseded
from ibrik_spark.files import write_slice
from ibrik_spark.jobs import optimize
from ibrik_spark.jobs.archive import Options, run
from ibrik_spark.reports import Report
from ibrik_spark.rows import in_order, place, ranges
from ibrik_spark.slices import cut
from ibrik_spark.table import Table, Topic, open_known
from ibrik_spark.target import store_at
from ibrik_spark.volume import MountedVolume
from tests.spark.lakes import commit
from tests.spark.volumes import LARGE, NOW_MS, TOPIC, break_a_batch, fill, listed, new_log
from tests.support.s3 import KEY_ID, SECRET, SESSION, Bucket, bucket

pytestmark = pytest.mark.slow


@pytest.fixture
def lake(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    with bucket() as found:
        for name, value in found.environment.items():
            monkeypatch.setenv(name, value)
        yield found


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Nine records in three batches, sealed."""
    log = new_log(tmp_path / "data")
    fill(log, 3)
    log.close()
    return tmp_path / "data"


def seal_more(data: Path) -> None:
    log = Log.open(RealDisk(), data / "topics" / TOPIC / "1", LARGE)
    fill(log, 3)
    log.close()


async def archive(data: Path, target: str, **options: Any) -> Report:
    return await run(Options(data, target, **options))


def offsets(lake: Bucket) -> list[int]:
    """By the library's own reader."""
    location = f"{lake.url}/{TOPIC}"
    table = DeltaTable(location, storage_options={"AWS_ALLOW_HTTP": "true"})
    rows = table.to_pyarrow_table(filesystem=store_at(location).filesystem)
    found: list[int] = rows["offset"].to_pylist()
    return sorted(found)


def table_in(target: str, data: Path) -> Table:
    return Table(target, Topic(MountedVolume.open(data).cluster_id, TOPIC, "orders"))


def said(report: Report) -> str:
    """All that anybody is told."""
    return report.table() + json.dumps(report.document())


async def test_every_sealed_record_is_archived_once(lake: Bucket, data: Path) -> None:
    assert (await archive(data, lake.url)).rows == 9
    seal_more(data)
    report = await archive(data, lake.url)
    assert (report.code, report.rows) == (ExitCode.DONE, 9)
    assert offsets(lake) == list(range(18))
    assert (await archive(data, lake.url)).code == ExitCode.NOTHING_TO_DO


async def test_rows_are_read_from_a_bucket_as_from_a_folder(lake: Bucket, data: Path) -> None:
    await archive(data, lake.url)
    seal_more(data)
    await archive(data, lake.url)
    handle = open_known(lake.url, TOPIC)
    (whole,) = ranges(handle.dataset(), place("offset", start=2))
    assert whole.records == 16
    found = [n for rows in in_order(handle.dataset(), whole) for n in rows["offset"].to_pylist()]
    assert found == list(range(2, 18))


async def test_files_that_do_not_tell_what_they_hold_are_read(lake: Bucket, data: Path) -> None:
    break_a_batch(data)
    report = await archive(data, lake.url, records_gaps=True)
    assert (report.code, report.rows) == (ExitCode.DONE, 6)
    assert (await archive(data, lake.url)).code == ExitCode.NOTHING_TO_DO


def test_a_commit_is_fenced_whatever_the_environment_says(
    lake: Bucket, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_S3_ALLOW_UNSAFE_RENAME", "true")
    monkeypatch.setenv("AWS_CONDITIONAL_PUT", "disabled")
    table = table_in(lake.url, data)
    table.create()
    slower, faster = table.opened(), table.opened()
    written = [
        write_slice(data, table.location, slice_, records_gaps=False, now_ms=NOW_MS)
        for slice_ in cut(TOPIC, listed(data), None)
    ]
    commit(faster, written)
    with pytest.raises(Superseded):
        commit(slower, written)
    assert offsets(lake) == list(range(9))


def started(lake: Bucket, data: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "ibrik_spark", "archive", "--data", str(data)]
    return subprocess.Popen(
        [*command, "--target", lake.url, "--output", "json"],
        env=os.environ | lake.environment,
        stdout=subprocess.PIPE,
        text=True,
    )


async def test_of_two_runs_at_once_one_is_superseded(lake: Bucket, data: Path) -> None:
    table_in(lake.url, data).create()
    lake.ask("POST", "/-/hold")
    runs = [started(lake, data) for _ in range(2)]
    lake.ask("GET", "/-/held")
    # One commit waits before the store, and the other one does so, too, or comes afterwards.
    lake.ask("POST", "/-/release")
    codes = {run.communicate()[0] and run.returncode for run in runs}
    assert codes in ({0, 3}, {0, 2})
    assert offsets(lake) == list(range(9))


async def test_a_run_killed_between_write_and_commit_leaves_nothing_visible(
    lake: Bucket, data: Path
) -> None:
    table_in(lake.url, data).create()
    lake.ask("POST", "/-/hold")
    with started(lake, data) as killed:
        lake.ask("GET", "/-/held")
        killed.send_signal(signal.SIGKILL)
    lake.ask("POST", "/-/lose")
    assert offsets(lake) == []
    report = await archive(data, lake.url)
    assert (report.code, report.rows) == (ExitCode.DONE, 9)
    assert offsets(lake) == list(range(9))


async def test_an_expired_credential_ends_a_run_until_there_is_another(
    lake: Bucket, data: Path
) -> None:
    lake.ask("POST", "/-/expire")
    report = await archive(data, lake.url)
    assert report.code == ExitCode.RETRY
    assert "the credential has expired; renew what gives AWS_SESSION_TOKEN" in said(report)
    for secret in (KEY_ID, SECRET, SESSION, "FwoGZXIvYXdzEXAMPLE"):
        assert secret not in said(report)


async def test_a_bucket_that_is_not_there_needs_somebody(lake: Bucket, data: Path) -> None:
    report = await archive(data, "s3://pond/tables")
    assert report.code == ExitCode.CONFIGURATION
    assert "there is no bucket pond; make it" in said(report)


async def test_a_store_that_does_not_answer_is_asked_again_by_the_next_run(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with bucket() as gone:
        environment = gone.environment
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    report = await archive(data, "s3://lake/tables")
    assert report.code == ExitCode.RETRY
    assert f"check that the store answers at {gone.endpoint}" in said(report)


async def test_a_file_in_the_way_is_no_table(lake: Bucket, data: Path) -> None:
    with store_at(f"{lake.url}/{TOPIC}").create("notes.txt") as file:
        file.write(b"mine")
    report = await archive(data, lake.url)
    assert report.code == ExitCode.CONFIGURATION
    assert "holds files and no table" in said(report)


async def test_small_files_are_merged_in_a_bucket(data: Path, lake: Bucket) -> None:
    await archive(data, lake.url)
    seal_more(data)
    await archive(data, lake.url)
    report = optimize.run(optimize.Options(lake.url))
    assert (report.code, report.rows) == (ExitCode.DONE, 18)
    assert offsets(lake) == list(range(18))
    assert len(table_in(lake.url, data).opened().live_files()) == 1
    assert optimize.run(optimize.Options(lake.url)).code == ExitCode.NOTHING_TO_DO
