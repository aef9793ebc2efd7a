"""Rows of a table in the order of the log, and what there is of them. Knows Arrow, not Delta.

Files may hold several partitions and may overlap, as after an optimization: what is held in memory
is one row group, or all row groups whose offsets overlap.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from .errors import WrongTable

COLUMNS = ["offset", "timestamp", "key", "value", "headers"]


@dataclass(slots=True)
class Range:
    """Of one partition: offsets from `start` up to and without `end`."""

    partition: int
    start: int
    end: int
    records: int = 0
    lost: int = 0
    """Offsets that a gap stands for."""

    @property
    def missing(self) -> int:
        """Offsets of which the table says nothing: somebody deleted rows."""
        return self.end - self.start - self.records - self.lost


def place(
    column: str, *, start: int | pa.Scalar | None = None, end: int | pa.Scalar | None = None
) -> list[ds.Expression]:
    """What rows from `start` up to and without `end` fulfil."""
    found: list[ds.Expression] = []
    if start is not None:
        found.append(pc.field(column) >= start)
    if end is not None:
        found.append(pc.field(column) < end)
    return found


def ranges(dataset: ds.Dataset, wishes: Sequence[ds.Expression]) -> list[Range]:
    """The range of each partition that fits; reads three narrow columns, and no payload."""
    found: dict[int, Range] = {}
    columns = ["partition", "offset", "gap_to"]
    for batch in dataset.scanner(columns=columns, filter=_all(wishes)).to_batches():
        ends = pc.coalesce(batch.column("gap_to"), pc.add(batch.column("offset"), 1))
        facts = {
            "partition": batch.column("partition"),
            "offset": batch.column("offset"),
            "end": ends,
            "lost": pc.fill_null(pc.subtract(batch.column("gap_to"), batch.column("offset")), 0),
            "gap_to": batch.column("gap_to"),
        }
        grouped = pa.table(facts).group_by("partition").aggregate(_FACTS)
        for row in grouped.to_pylist():
            number, start = row["partition"], row["offset_min"]
            known = found.setdefault(number, Range(number, start, row["end_max"]))
            known.start = min(known.start, start)
            known.end = max(known.end, row["end_max"])
            known.records += row["offset_count"] - row["gap_to_count"]
            known.lost += row["lost_sum"]
    return [found[number] for number in sorted(found)]


_FACTS = [
    ("offset", "min"),
    ("end", "max"),
    ("offset", "count"),
    ("gap_to", "count"),
    ("lost", "sum"),
]


def in_order(dataset: ds.Dataset, range_: Range) -> Iterator[pa.Table]:
    """The records of a range by offset, some at a time; gaps are left out."""
    wish = _all(
        [
            pc.field("partition") == range_.partition,
            *place("offset", start=range_.start, end=range_.end),
            pc.field("gap_to").is_null(),
        ]
    )
    groups = [
        (*_offsets(group), group)
        for fragment in dataset.get_fragments(wish)
        for group in fragment.split_by_row_group(wish, schema=dataset.schema)
    ]
    together: list[Any] = []
    last = -1
    for first, until, group in sorted(groups, key=lambda found: found[:2]):
        if together and first > last:
            yield from _sorted(together, wish, dataset.schema, range_.partition)
            together = []
        together.append(group)
        last = max(last, until)
    if together:
        yield from _sorted(together, wish, dataset.schema, range_.partition)


def _offsets(group: Any) -> tuple[int, int]:
    """The least and the greatest offset that may be in a row group."""
    told = group.row_groups[0].statistics or {}
    limits = told.get("offset", {"min": 0, "max": np.iinfo(np.int64).max})
    return limits["min"], limits["max"]


def _sorted(
    groups: Sequence[Any], wish: ds.Expression, schema: pa.Schema, partition: int
) -> Iterator[pa.Table]:
    tables = [group.to_table(columns=COLUMNS, filter=wish, schema=schema) for group in groups]
    table = pa.concat_tables(tables)
    steps = np.diff(table.column("offset").to_numpy())
    if (steps <= 0).any():
        table = table.sort_by("offset")
        steps = np.diff(table.column("offset").to_numpy())
    if (steps == 0).any():
        offset = table.column("offset")[int((steps == 0).argmax())].as_py()
        raise WrongTable(
            f"offset {offset} of partition {partition} is in the table twice; bring the table back "
            "to its newest good version"
        )
    if table.num_rows:
        yield table


def _all(wishes: Sequence[ds.Expression]) -> ds.Expression | None:
    found: ds.Expression | None = None
    for wish in wishes:
        found = wish if found is None else found & wish
    return found
