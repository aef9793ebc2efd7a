"""Helpers of the tests of tables: a table beside a volume, filled as the job fills it."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
from deltalake import DeltaTable
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from ibrik_spark.files import Written, write_slice
from ibrik_spark.slices import cut
from ibrik_spark.table import Handle, Table, Topic
from ibrik_spark.volume import MountedVolume
from tests.spark.volumes import NOW_MS, TOPIC, listed

LAKE = "lake"


def table_of(folder: Path) -> Table:
    """The table of the volume in `folder / "data"`."""
    cluster_id = MountedVolume.open(folder / "data").cluster_id
    return Table(str(folder / LAKE), Topic(cluster_id, TOPIC, "orders"))


def write(folder: Path, start: int | None = None, *, records_gaps: bool = False) -> list[Written]:
    """Files of all that is sealed from `start` on; nothing is committed."""
    table = table_of(folder)
    return [
        write_slice(
            folder / "data", table.location, slice_, records_gaps=records_gaps, now_ms=NOW_MS
        )
        for slice_ in cut(TOPIC, listed(folder / "data"), start, slice_bytes=1)
    ]


def commit(handle: Handle, written: list[Written]) -> None:
    files = [file for part in written for file in part.files]
    handle.commit(files, {1: written[-1].end}, {"job": "test"})


def table_rows(table: Table) -> list[dict[str, Any]]:
    """All rows, in the order of the log, by the library's own reader."""
    rows: list[dict[str, Any]] = rows_of(DeltaTable(table.location)).to_pylist()
    return sorted(rows, key=lambda row: (row["partition"], row["offset"]))


def rows_of(delta: DeltaTable) -> pa.Table:
    """All rows of a table in a folder, as they come."""
    folder = urlsplit(delta.table_uri).path
    return delta.to_pyarrow_table(filesystem=SubTreeFileSystem(folder, LocalFileSystem()))


def parquet_files(table: Table) -> list[Path]:
    return sorted(Path(table.location).rglob("*.parquet"))


def as_json(document: Any) -> Any:
    return json.loads(json.dumps(document))
