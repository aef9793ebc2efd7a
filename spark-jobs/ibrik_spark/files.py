"""Parquet files of the table, of a slice of a log or of smaller files. No Delta, no Spark.

One file holds one partition and one day. Offsets that cannot be read become one row each range,
which says so (`gap_to`, `gap_reason`); or they end the slice, as the run was told.
"""

import re
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from .errors import TableFailed, WrongTable
from .layout import gap_row, judged, table_rows
from .schema import FILE_SCHEMA, DataFile
from .segments import DamagedRange, Piece, read
from .slices import Slice
from .store import Store
from .target import store_at
from .volume import MountedVolume

ROW_GROUP_BYTES = 64 * 1024 * 1024
ROW_GROUP_ROWS = 500_000
DICTIONARIES = ["partition", "key", "leader_epoch", "headers.list.element.name"]
STATISTICS = ["partition", "offset", "timestamp", "gap_to"]  # of bytes they would be long
_PATH = re.compile(r"date=\d{4}-\d\d-\d\d/part-\d+-[0-9a-f]{32}\.parquet")
BELOW_START = "below the log start before it was archived"


@dataclass(frozen=True, slots=True)
class Written:
    """What became of a slice: its files tile [`start`, `end`), records and gaps together."""

    topic_id: str
    partition: int
    start: int
    end: int
    files: list[DataFile] = field(default_factory=list)
    gaps: list[DamagedRange] = field(default_factory=list)
    damage: DamagedRange | None = None
    """What ended it early."""

    def document(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def parse(cls, document: dict[str, Any]) -> "Written":
        damage = document["damage"]
        return cls(
            **document
            | {
                "files": [DataFile(**file) for file in document["files"]],
                "gaps": [DamagedRange(*gap) for gap in document["gaps"]],
                "damage": None if damage is None else DamagedRange(*damage),
            }
        )


def write_slice(
    data: Path, location: str, slice_: Slice, *, records_gaps: bool, now_ms: int
) -> Written:
    """Read the records of a slice and write them; the volume is opened anew, as in a task."""
    volume = MountedVolume.open(data)
    partition = volume.partition(volume.topic(slice_.topic_id), slice_.partition)
    writer = _Writer(store_at(location), slice_.partition, now_ms)
    gaps: list[DamagedRange] = []
    end = slice_.gap_start
    damage = None
    with writer:
        for piece in _pieces(slice_, read(partition, slice_.start, slice_.end)):
            if not isinstance(piece, DamagedRange):
                writer.add(piece)
                end = piece.column("offset")[-1].as_py() + 1
            elif records_gaps:
                writer.add_gap(piece)
                gaps.append(piece)
                end = piece.to_offset
            else:
                damage = piece
                break
    return Written(
        slice_.topic_id, slice_.partition, slice_.gap_start, end, writer.files, gaps, damage
    )


def _pieces(slice_: Slice, pieces: Iterable[Piece]) -> Iterator[Piece]:
    if slice_.gap_start < slice_.start:
        yield DamagedRange(slice_.gap_start, slice_.start, BELOW_START)
    yield from map(judged, pieces)


@dataclass(frozen=True, slots=True)
class Merge:
    """Files of one day and partition that follow each other, and become one."""

    paths: tuple[str, ...]
    date: str
    partition: int
    start: int
    end: int
    rows: int
    size_bytes: int


def merge_files(location: str, merge: Merge, *, now_ms: int) -> DataFile:
    """One file of all rows, as they are; WrongTable when they are not what the table says."""
    store = store_at(location)
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    file = _OpenFile(store, file_path(merge.date, merge.partition), merge.partition, now)
    offset = merge.start
    with file:
        for rows in rows_of(store, merge.paths):
            offset = _follow(rows, offset) or _refuse(location, merge, offset)
            file.add(rows)
    written = file.finish(merge.date, now_ms)
    if (offset, written.rows) != (merge.end, merge.rows):
        _refuse(location, merge, offset)
    return written


def _follow(rows: pa.RecordBatch, offset: int) -> int | None:
    """The offset after these rows; None when they are not all that comes from `offset` on."""
    offsets = rows.column("offset")
    ends = pc.coalesce(rows.column("gap_to"), pc.add(offsets, 1))
    is_row_by_row = pc.all(pc.equal(offsets[1:], ends[:-1]), min_count=0).as_py()
    if offsets[0].as_py() != offset or not is_row_by_row:
        return None
    return int(ends[-1].as_py())


def rows_of(
    store: Store, paths: Iterable[str], columns: Sequence[str] = FILE_SCHEMA.names
) -> Iterator[pa.RecordBatch]:
    """The rows of files one after the other; TableFailed when a file cannot be read."""
    schema = pa.schema([FILE_SCHEMA.field(name) for name in columns])
    for path in paths:
        try:
            with pq.ParquetFile(store.read(path)) as parquet:
                for group in range(parquet.num_row_groups):  # which are bounded, as rows are not
                    rows = parquet.read_row_group(group, schema.names).select(schema.names)
                    rows = rows.cast(schema)
                    yield from (batch for batch in rows.to_batches() if batch.num_rows)
        except (OSError, pa.ArrowException) as error:
            raise TableFailed(
                f"cannot read {path} of the table {store.location}: {error}; the next run tries "
                "again"
            ) from error


def _refuse(location: str, merge: Merge, offset: int) -> NoReturn:
    raise WrongTable(
        f"files of {merge.date} and partition {merge.partition} in {location} are not what the "
        f"table says: what follows offset {offset - 1} is not there. Nothing was changed; "
        "`ibrik archive audit` says more"
    )


def file_path(day: str, partition: int) -> str:
    """A name that no other file has, below the day it belongs to."""
    return f"date={day}/part-{partition}-{uuid.uuid4().hex}.parquet"


def is_ours(path: str) -> bool:
    """Whether a file of a table bears such a name."""
    return _PATH.fullmatch(path) is not None


class _Writer:
    """Files one after the other; a new one begins with each day."""

    def __init__(self, store: Store, partition: int, now_ms: int) -> None:
        self.files: list[DataFile] = []
        self._store = store
        self._partition = partition
        self._now_ms = now_ms
        self._now = datetime.fromtimestamp(now_ms / 1000, UTC)
        self._day = self._now.date()  # of a gap before any record
        self._file: _OpenFile | None = None

    def __enter__(self) -> "_Writer":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._finish()
        elif self._file is not None:
            self._file.abandon()

    def add(self, batch: pa.RecordBatch) -> None:
        days = batch.column("timestamp").cast(pa.date32())
        ends = pc.indices_nonzero(pc.not_equal(days[1:], days[:-1])).to_pylist()
        start = 0
        for end in [*(index + 1 for index in ends), batch.num_rows]:
            self._open(days[start].as_py()).add(table_rows(batch.slice(start, end - start)))
            start = end

    def add_gap(self, gap: DamagedRange) -> None:
        file = self._file or self._open(self._day)
        file.add_gap(gap)

    def _open(self, day: date) -> "_OpenFile":
        if self._file is not None and day != self._day:
            self._finish()
        self._day = day
        if self._file is None:
            path = file_path(day.isoformat(), self._partition)
            self._file = _OpenFile(self._store, path, self._partition, self._now)
        return self._file

    def _finish(self) -> None:
        if self._file is not None:
            file, self._file = self._file, None
            self.files.append(file.finish(self._day.isoformat(), self._now_ms))


class _OpenFile:
    """One Parquet file; rows wait in memory until they make a row group."""

    def __init__(self, store: Store, path: str, partition: int, now: datetime) -> None:
        self._path = path
        self._store = store
        self._partition = partition
        self._now = now
        self._stack = ExitStack()
        file = self._stack.enter_context(store.create(path))
        self._parquet = self._stack.enter_context(
            pq.ParquetWriter(
                file,
                FILE_SCHEMA,
                compression="zstd",
                use_dictionary=DICTIONARIES,
                write_statistics=STATISTICS,
            )
        )
        self._pending: list[pa.RecordBatch] = []
        self._rows = self._pending_rows = self._pending_bytes = self._gaps = 0
        self._start: int | None = None
        self._end = 0
        self._times: list[datetime] = []

    def add(self, rows: pa.RecordBatch) -> None:
        """Rows of the table that go on where the file ends; the last may be a gap."""
        gap_to = rows.column("gap_to")
        if self._start is None:
            self._start = rows.column("offset")[0].as_py()
        self._end = gap_to[-1].as_py() or rows.column("offset")[-1].as_py() + 1
        self._gaps += rows.num_rows - gap_to.null_count
        times = pc.min_max(rows.column("timestamp"))
        low, high = times["min"].as_py(), times["max"].as_py()
        self._times = [min([*self._times, low]), max([*self._times, high])]
        self._pending.append(rows)
        self._rows += rows.num_rows
        self._pending_rows += rows.num_rows
        self._pending_bytes += rows.nbytes
        if self._pending_bytes >= ROW_GROUP_BYTES or self._pending_rows >= ROW_GROUP_ROWS:
            self._write()

    def add_gap(self, gap: DamagedRange) -> None:
        self.add(gap_row(self._partition, gap, max(self._times, default=self._now)))

    def finish(self, day: str, now_ms: int) -> DataFile:
        self._write()
        self._stack.close()
        assert self._start is not None
        return DataFile(
            path=self._path,
            date=day,
            partition=self._partition,
            start=self._start,
            last=self._end - 1,
            rows=self._rows,
            gaps=self._gaps,
            first_time=_text(min(self._times)),
            last_time=_text(max(self._times)),
            size_bytes=self._store.size_bytes(self._path),
            written_ms=now_ms,
        )

    def abandon(self) -> None:
        """Close it as it is; what is not committed nobody sees."""
        self._stack.close()

    def __enter__(self) -> "_OpenFile":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self.abandon()

    def _write(self) -> None:
        if self._pending:
            self._parquet.write_table(pa.Table.from_batches(self._pending, FILE_SCHEMA))
            self._pending = []
            self._pending_rows = self._pending_bytes = 0


def _text(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
