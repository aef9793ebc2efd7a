"""The door to Delta: fenced commits, tables that are another's, tables that lost something."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyarrow.fs import LocalFileSystem

from ibrik_spark.errors import ExitCode, Superseded, TableFailed, WrongTable
from ibrik_spark.table import Table, Topic
from tests.spark.lakes import commit, parquet_files, rows_of, table_of, table_rows, write
from tests.spark.volumes import fill, new_log


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Offsets 0 to 5 and 6 to 11 in two sealed segments of partition 1."""
    log = new_log(tmp_path / "data")
    fill(log, 2)
    fill(log, 2)
    log.close()
    return tmp_path


def test_what_is_committed_is_read_back_and_proved(folder: Path) -> None:
    table = table_of(folder)
    assert table.open() is None
    commit(table.create(), write(folder))
    handle = table.opened()
    assert handle.archived_up_to(1) == 12
    assert handle.archived_up_to(0) is None
    assert handle.prove([0, 1]) == {1: (0, 12)}
    assert [row["value"] for row in table_rows(table)] == [b"v%d" % n for n in range(12)]


def test_a_run_that_was_slower_is_superseded_and_changes_nothing(folder: Path) -> None:
    table = table_of(folder)
    table.create()
    slower, faster = table.opened(), table.opened()
    written = write(folder)
    commit(faster, written)
    with pytest.raises(Superseded, match="in the meantime") as refusal:
        commit(slower, write(folder))
    assert refusal.value.exit_code == ExitCode.SUPERSEDED == 3
    assert len(table_rows(table)) == 12
    assert len(parquet_files(table)) == 4  # what the slower one wrote is nobody's


def test_two_that_make_the_table_at_once_get_the_same(folder: Path) -> None:
    first, second = table_of(folder).create(), table_of(folder).create()
    assert first.table_id == second.table_id


def test_a_partition_never_moves_back(folder: Path) -> None:
    table = table_of(folder)
    commit(table.create(), write(folder))
    with pytest.raises(WrongTable, match="stands at 12 and cannot go to 12"):
        commit(table.opened(), write(folder))
    assert len(table_rows(table)) == 12


def test_a_table_restored_to_an_older_version_is_not_trusted(folder: Path) -> None:
    table = table_of(folder)
    first, second = write(folder)
    commit(table.create(), [first])
    commit(table.opened(), [second])
    DeltaTable(table.location).restore(1)
    with pytest.raises(WrongTable, match="commits reach offset 12, live files offsets up to 5"):
        table.opened().prove([1])


def test_a_table_that_was_emptied_is_not_trusted(folder: Path) -> None:
    table = table_of(folder)
    commit(table.create(), write(folder))
    DeltaTable(table.location).delete()
    with pytest.raises(WrongTable, match="live files nothing"):
        table.opened().prove([1])


def test_rows_that_somebody_else_appended_are_noticed(folder: Path) -> None:
    table = table_of(folder)
    commit(table.create(), write(folder))
    delta = DeltaTable(table.location)
    write_deltalake(delta, rows_of(delta).slice(3, 1), mode="append")
    with pytest.raises(WrongTable, match="are there twice"):
        table.opened().prove([1])


def test_rows_are_read_without_python(folder: Path) -> None:
    """A thread of Arrow that holds a file written in Python can abort a run that is done."""
    table = table_of(folder)
    commit(table.create(), write(folder))
    assert isinstance(table.opened().dataset().filesystem.base_fs, LocalFileSystem)


def test_rows_that_somebody_deleted_are_noticed(folder: Path) -> None:
    table = table_of(folder)
    commit(table.create(), write(folder))
    DeltaTable(table.location).delete('"offset" = 4')
    with pytest.raises(WrongTable, match="offsets 4 to 4 are missing"):
        table.opened().prove([1])


def test_files_that_somebody_compacted_are_read_for_what_they_hold(folder: Path) -> None:
    table = table_of(folder)
    commit(table.create(), write(folder))
    DeltaTable(table.location).optimize.compact()
    assert table.opened().prove([1]) == {1: (0, 12)}


def test_the_table_of_another_topic_is_refused(folder: Path) -> None:
    table = table_of(folder)
    table.create()
    other = "00000000-0000-4000-8000-000000000000"
    (folder / "lake" / other).symlink_to(table.location)
    with pytest.raises(WrongTable, match="is of topic 7d17946a") as refusal:
        Table(str(folder / "lake"), Topic(table.topic.cluster_id, other, "bills")).open()
    assert refusal.value.exit_code == ExitCode.CONFIGURATION == 64


def test_a_foreign_table_is_refused(folder: Path) -> None:
    table = table_of(folder)
    DeltaTable.create(table.location, schema=pa.schema([pa.field("number", pa.int64())]))
    with pytest.raises(WrongTable, match="not of an archive"):
        table.open()


def test_files_that_are_no_table_are_refused(folder: Path) -> None:
    table = table_of(folder)
    Path(table.location).mkdir(parents=True)
    (Path(table.location) / "notes.txt").write_text("mine")
    with pytest.raises(WrongTable, match="no table"):
        table.open()


def test_a_target_that_cannot_be_written_is_for_another_try(folder: Path) -> None:
    (folder / "lake").write_text("a file where the target should be")
    with pytest.raises(TableFailed, match="mounted, writable and not full") as refusal:
        table_of(folder).create()
    assert refusal.value.exit_code == ExitCode.RETRY == 75
