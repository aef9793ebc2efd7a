"""Tables beside their logs: what is equal, what is not, and how that is said."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake

import ibrik_client
from ibrik_client import Client
from ibrik_log.files import RealDisk
from ibrik_log.log import Log
from ibrik_spark.errors import ExitCode
from ibrik_spark.jobs import archive, optimize
from ibrik_spark.jobs.audit import Options, run
from ibrik_spark.reports import Report
from tests.spark.lakes import commit, rows_of, table_of, write
from tests.spark.volumes import LARGE, TOPIC, break_a_batch, fill, new_log
from tests.support.broker import Broker, running_broker


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Offsets 0 to 17 in three segments and three files."""
    log = new_log(tmp_path / "data")
    for _ in range(3):
        fill(log, 2)
    log.close()
    commit(table_of(tmp_path).create(), write(tmp_path))
    return tmp_path


async def audit(folder: Path, **options: Any) -> Report:
    return await run(Options(folder / "data", str(folder / "lake"), **options))


def differences(report: Report) -> list[str]:
    found: list[str] = report.parts[0].facts["differences"]
    return found


def replace_row(folder: Path, offset: int, column: str, value: bytes) -> None:
    """Another content for a row, as no archive run would write it."""
    delta = DeltaTable(table_of(folder).location)
    rows = rows_of(delta)
    row = rows.filter(pc.equal(rows.column("offset"), offset)).to_pylist()[0]
    delta.delete(f'"offset" = {offset}')
    changed = pa.Table.from_pylist([row | {column: value}], rows.schema)
    write_deltalake(DeltaTable(table_of(folder).location), changed, mode="append")


async def test_what_was_archived_is_what_the_log_holds(folder: Path) -> None:
    report = await audit(folder)
    assert (report.code, report.rows) == (ExitCode.DONE, 18)
    (part,) = report.parts
    assert part.facts["partitions"] == [
        {
            "partition": 1,
            "logStart": 0,
            "sealedUpTo": 18,
            "from": 0,
            "archivedUpTo": 18,
            "behind": 0,
            "compared": 18,
            "unreadable": 0,
        }
    ]
    assert report.table() == (
        "orders/1  in the table 0 to 18  behind 0  compared 18 rows\n"
        "18 rows compared: no difference\n"
    )


async def test_a_table_whose_files_were_merged_holds_the_same(folder: Path) -> None:
    optimize.run(optimize.Options(str(folder / "lake")))
    report = await audit(folder)
    assert (report.code, report.rows) == (ExitCode.DONE, 18)


@pytest.mark.parametrize("column", ["value", "key"])
async def test_a_row_that_is_another_is_found_and_named(folder: Path, column: str) -> None:
    replace_row(folder, 9, column, b"another")
    report = await audit(folder)
    assert report.code == ExitCode.CONFIGURATION == 64
    (difference,) = differences(report)
    assert difference.startswith("offset 9 of partition 1 of orders is not the same")
    assert "1 differences" in report.table()
    assert (await audit(folder, is_comparing=False)).code == ExitCode.DONE


async def test_rows_that_are_missing_or_there_twice_are_found(folder: Path) -> None:
    delta = DeltaTable(table_of(folder).location)
    rows = rows_of(delta)
    delta.delete('"offset" = 4')
    assert "offsets 4 to 4 are missing" in differences(await audit(folder))[0]
    lost = rows.filter(pc.equal(rows.column("offset"), 4))
    for _ in range(2):
        write_deltalake(DeltaTable(table_of(folder).location), lost, mode="append")
    assert "offsets 4 to 4 are there twice" in differences(await audit(folder))[0]


async def test_what_is_not_archived_yet_is_counted_and_no_difference(folder: Path) -> None:
    log = Log.open(RealDisk(), folder / "data" / "topics" / TOPIC / "1", LARGE)
    fill(log, 1)
    log.close()
    report = await audit(folder)
    assert report.code == ExitCode.DONE
    assert report.parts[0].facts["partitions"][0]["behind"] == 3


async def test_what_the_log_has_lost_is_not_compared(folder: Path) -> None:
    log = Log.open(RealDisk(), folder / "data" / "topics" / TOPIC / "1", LARGE)
    log.truncate_before(6)
    log.close()
    report = await audit(folder)
    assert (report.code, report.rows) == (ExitCode.DONE, 12)
    break_a_batch(folder / "data")
    report = await audit(folder)
    assert (report.code, report.rows) == (ExitCode.DONE, 9)
    assert report.parts[0].facts["partitions"][0]["unreadable"] == 3


async def test_what_was_deleted_before_it_was_archived_is_a_difference(folder: Path) -> None:
    log = Log.open(RealDisk(), folder / "data" / "topics" / TOPIC / "1", LARGE)
    fill(log, 2)
    fill(log, 1)
    log.truncate_before(24)
    log.close()
    assert (
        "offsets 18 to 23 of partition 1 of orders were deleted"
        in differences(await audit(folder))[0]
    )


async def test_a_topic_without_a_table_is_nothing_to_audit(folder: Path) -> None:
    report = await run(Options(folder / "data", str(folder / "elsewhere")))
    assert report.code == ExitCode.NOTHING_TO_DO == 2


async def test_a_folder_that_is_no_volume_is_refused(tmp_path: Path) -> None:
    report = await audit(tmp_path)
    assert report.code == ExitCode.CONFIGURATION
    assert "no volume of a broker" in report.detail


# --- beside a broker ------------------------------------------------------------------------------


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[tuple[Broker, Client]]:
    with running_broker(tmp_path / "running") as running:
        async with ibrik_client.connect(running.http_url, admin_url=running.admin_url) as client:
            yield running, client


@pytest.mark.slow
async def test_what_the_broker_was_told_is_held_against_the_table(
    broker: tuple[Broker, Client], tmp_path: Path
) -> None:
    running, client = broker
    await client.admin.create_topic("orders", {"partitions": 1, "archive": {"enabled": True}})
    await client.admin.create_topic("bills", {"partitions": 1})
    asked = {"admin_url": running.admin_url}
    lake = str(tmp_path / "lake")
    versions = []
    for number in range(2):
        await client.publish("orders", b"%d" % number)
        done = await archive.run(archive.Options(running.data, lake, period="0s", **asked))
        versions.append(done.parts[0].facts["table"]["version"])
    report = await run(Options(running.data, lake, **asked))
    assert (report.code, report.rows) == (ExitCode.DONE, 2)
    (part,) = report.parts
    assert part.facts["completeThrough"]
    (location,) = Path(lake).iterdir()
    (location / "_delta_log" / f"{versions[-1]:020}.json").unlink()
    report = await run(Options(running.data, lake, **asked))
    assert report.code == ExitCode.CONFIGURATION
    assert "told that partition 0 of orders is archived up to offset 2" in differences(report)[0]
    assert "completeThrough" not in report.parts[0].facts
    location.rename(tmp_path / "moved")
    report = await run(Options(running.data, lake, **asked))
    assert "there is no table at" in differences(report)[0]
