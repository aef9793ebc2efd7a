"""A slice of a log into Parquet files of the table, as one task does it. No Delta, no Spark.

One file holds one partition and one day. Offsets that cannot be read become one row each range,
which says so (`gap_to`, `gap_reason`); or they end the slice, as the run was told.
"""

import uuid
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

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
BELOW_START = "below the log start before it was archived"
LAST_TIME_MS = 253_402_300_799_999  # the end of the year 9999, which readers know as the last


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
    for piece in pieces:
        yield piece if isinstance(piece, DamagedRange) else _judged(piece)


def _judged(batch: pa.RecordBatch) -> Piece:
    """A batch whose times no table can hold is damaged, whatever its checksum says."""
    times = pc.min_max(batch.column("timestamp").cast(pa.int64()))
    if times["min"].as_py() >= 0 and times["max"].as_py() <= LAST_TIME_MS:
        return batch
    first, last = batch.column("offset")[0].as_py(), batch.column("offset")[-1].as_py()
    return DamagedRange(first, last + 1, "the append time is impossible")


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
            self._open(days[start].as_py()).add(_table_rows(batch.slice(start, end - start)))
            start = end

    def add_gap(self, gap: DamagedRange) -> None:
        file = self._file or self._open(self._day)
        file.add_gap(gap)

    def _open(self, day: date) -> "_OpenFile":
        if self._file is not None and day != self._day:
            self._finish()
        self._day = day
        if self._file is None:
            name = f"date={day.isoformat()}/part-{self._partition}-{uuid.uuid4().hex}.parquet"
            self._file = _OpenFile(self._store, name, self._partition, self._now)
        return self._file

    def _finish(self) -> None:
        if self._file is not None:
            file, self._file = self._file, None
            self.files.append(file.finish(self._day, self._now_ms))


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

    def add(self, batch: pa.RecordBatch) -> None:
        if self._start is None:
            self._start = batch.column("offset")[0].as_py()
        self._end = batch.column("offset")[-1].as_py() + 1
        times = pc.min_max(batch.column("timestamp"))
        self._keep(batch, times["min"].as_py(), times["max"].as_py())

    def add_gap(self, gap: DamagedRange) -> None:
        time = max(self._times, default=self._now)
        row = dict.fromkeys(FILE_SCHEMA.names) | {
            "partition": self._partition,
            "offset": gap.from_offset,
            "timestamp": time,
            "headers": [],
            "leader_epoch": 0,
            "gap_to": gap.to_offset,
            "gap_reason": gap.reason,
        }
        if self._start is None:
            self._start = gap.from_offset
        self._end = gap.to_offset
        self._gaps += 1
        self._keep(pa.RecordBatch.from_pylist([row], schema=FILE_SCHEMA), time, time)

    def finish(self, day: date, now_ms: int) -> DataFile:
        self._write()
        self._stack.close()
        assert self._start is not None
        return DataFile(
            path=self._path,
            date=day.isoformat(),
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

    def _keep(self, batch: pa.RecordBatch, low: datetime, high: datetime) -> None:
        self._times = [min([*self._times, low]), max([*self._times, high])]
        self._pending.append(batch)
        self._rows += batch.num_rows
        self._pending_rows += batch.num_rows
        self._pending_bytes += batch.nbytes
        if self._pending_bytes >= ROW_GROUP_BYTES or self._pending_rows >= ROW_GROUP_ROWS:
            self._write()

    def _write(self) -> None:
        if self._pending:
            self._parquet.write_table(pa.Table.from_batches(self._pending, FILE_SCHEMA))
            self._pending = []
            self._pending_rows = self._pending_bytes = 0


def _table_rows(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The columns of a file: those of the reader, and no gap."""
    rows = batch.num_rows
    columns = [
        batch.column(field.name).cast(field.type)
        if field.name in batch.schema.names
        else pa.nulls(rows, field.type)
        for field in FILE_SCHEMA
    ]
    return pa.RecordBatch.from_arrays(columns, schema=FILE_SCHEMA)


def _text(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
