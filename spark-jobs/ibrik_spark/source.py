"""`spark.read.format("ibrik")`: the sealed records of a topic as a data frame, straight from a log.

Options: `path`, the data folder, and `topic`, its name; what is read of it: `partitions`,
`fromOffset`, `toOffset`, `fromTime`, `toTime`, `columns`; `damage`, `fail` (default) or
`record-gap`; `pushFilters`, `true` for frames of one query each. One task reads one slice.

Filters are not pushed down without a word: Spark 4.3 keeps what it pushed with the frame, and reads
by it in the frame's next query, too (docs/adr/0165).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    Filter,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from .errors import DamageFound, WrongOption
from .layout import gap_row, judged, table_rows
from .pushdown import Wanted
from .schema import SCHEMA
from .segments import DamagedRange, read
from .slices import SLICE_BYTES, Slice
from .volume import MountedVolume

GAPS = {"fail": False, "record-gap": True}
YES = {"false": False, "true": True}


class IbrikSource(DataSource):
    """Register it with a session: `spark.dataSource.register(IbrikSource)`."""

    @classmethod
    def name(cls) -> str:
        return "ibrik"

    def schema(self) -> StructType:
        return from_arrow_schema(_wanted_schema(self.options))

    def reader(self, schema: StructType) -> "SegmentReader":
        kind = FilteredReader if _choice(self.options, "pushFilters", YES) else SegmentReader
        return kind(self.options)


class SliceOfTopic(InputPartition):
    """What one task reads."""

    def __init__(self, slice_: Slice, first_ms: int) -> None:
        super().__init__(slice_)
        self.slice = slice_
        self.first_ms = first_ms


class SegmentReader(DataSourceReader):
    """One read: planned in one process, pickled, carried out by tasks in others."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._data = Path(_needed(options, "path", "the data folder of a broker"))
        self._topic = _needed(options, "topic", "the name of a topic in that folder")
        self._columns = _wanted_schema(options).names
        self._records_gaps = _choice(options, "damage", GAPS)
        self._slice_bytes = _number(options.get("sliceBytes", str(SLICE_BYTES)))
        self._wanted = Wanted().narrowed(_asked(options))

    def partitions(self) -> Sequence[SliceOfTopic]:
        volume = MountedVolume.open(self._data)
        (folder,) = volume.named([self._topic])
        found = []
        for number in range(folder.partitions):
            partition = volume.partition(folder, number)
            slices = self._wanted.slices(folder.topic_id, partition, slice_bytes=self._slice_bytes)
            for slice_ in slices:
                first_ms = next(
                    segment.first_append_ms
                    for segment in partition.segments
                    if segment.next_offset > slice_.start
                )
                found.append(SliceOfTopic(slice_, first_ms))
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, SliceOfTopic):  # a plan without any slice has one of none
            return
        for rows in self._rows(partition.slice, partition.first_ms):
            days = rows.column("timestamp").cast(pa.date32())
            whole = pa.RecordBatch.from_arrays([days, *rows.columns], schema=SCHEMA)
            yield whole.select(self._columns)

    def _rows(self, slice_: Slice, time_ms: int) -> Iterator[pa.RecordBatch]:
        volume = MountedVolume.open(self._data)
        partition = volume.partition(volume.topic(slice_.topic_id), slice_.partition)
        times = self._wanted.times_ms()
        for piece in map(judged, read(partition, slice_.start, slice_.end)):
            if isinstance(piece, DamagedRange):
                if not self._records_gaps:
                    raise DamageFound(_sentence(self._topic, slice_.partition, piece))
                time = datetime.fromtimestamp(time_ms / 1000, UTC)
                yield gap_row(slice_.partition, piece, time)
                continue
            at = piece.column("timestamp").cast(pa.int64())
            time_ms = at[-1].as_py()
            if times is None:
                return
            is_wanted = pc.and_(
                pc.greater_equal(at, times.start), pc.less(at, min(times.end, 1 << 62))
            )
            yield table_rows(piece.filter(is_wanted))


class FilteredReader(SegmentReader):
    """The same for a session that pushes filters down; another is refused by Spark."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Leave out what no filter wants; Spark looks at what is left by all of them again."""
        self._wanted = self._wanted.narrowed(filters)
        return filters


def _asked(options: Mapping[str, str]) -> Iterator[Filter]:
    """What the options ask for, as filters."""
    for name, (column, parse, bound) in BOUNDS.items():
        if name in options:
            yield bound((column,), parse(options[name]))


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise WrongOption(f"the format ibrik needs a whole number in place of {text!r}") from error


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(_number(part) for part in text.split(","))


def _time(text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise WrongOption(
            f"the format ibrik needs a time like 2026-11-28T10:00:00Z in place of {text!r}"
        ) from error
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


BOUNDS: dict[str, tuple[str, Callable[[str], Any], Callable[..., Filter]]] = {
    "partitions": ("partition", _numbers, In),
    "fromOffset": ("offset", _number, GreaterThanOrEqual),
    "toOffset": ("offset", _number, LessThan),
    "fromTime": ("timestamp", _time, GreaterThanOrEqual),
    "toTime": ("timestamp", _time, LessThan),
}
"""What an option narrows: the column, how its text is read, and in which direction."""


def _needed(options: Mapping[str, str], name: str, what: str) -> str:
    value = options.get(name)
    if not value:
        raise WrongOption(f"the format ibrik needs the option {name}: {what}")
    return value


def _wanted_schema(options: Mapping[str, str]) -> pa.Schema:
    text = options.get("columns")
    if text is None:
        return SCHEMA
    names = [name.strip() for name in text.split(",")]
    unknown = sorted(set(names) - set(SCHEMA.names))
    if unknown:
        raise WrongOption(
            f"the format ibrik has no column {', '.join(unknown)}; it has {', '.join(SCHEMA.names)}"
        )
    return pa.schema([SCHEMA.field(name) for name in names])


def _choice(options: Mapping[str, str], name: str, choices: Mapping[str, bool]) -> bool:
    """What a word stands for; without it the first one."""
    word = options.get(name, next(iter(choices)))
    if word not in choices:
        raise WrongOption(f"{name}={word}: the format ibrik knows {' and '.join(choices)}")
    return choices[word]


def _sentence(topic: str, partition: int, damage: DamagedRange) -> str:
    return (
        f"offsets {damage.from_offset} to {damage.to_offset - 1} of partition {partition} of "
        f"{topic} cannot be read: {damage.reason}. Read around them with toOffset and fromOffset, "
        "or with the option damage=record-gap, which makes a row of them"
    )
