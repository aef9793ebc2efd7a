"""What a table of an archive looks like, and what is known of one of its files. Values only."""

from dataclasses import dataclass

import pyarrow as pa

_HEADER = pa.struct([pa.field("name", pa.string(), nullable=False), pa.field("value", pa.binary())])

FILE_SCHEMA = pa.schema(
    [
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", pa.list_(pa.field("element", _HEADER, nullable=False)), nullable=False),
        pa.field("leader_epoch", pa.int32(), nullable=False),
        pa.field("gap_to", pa.int64()),
        pa.field("gap_reason", pa.string()),
    ]
)
"""What lies in a file; the day is in its path."""
SCHEMA = pa.schema([pa.field("date", pa.date32(), nullable=False), *FILE_SCHEMA])
"""What the table is to its readers."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file that is written and not visible yet. Offsets `start` to `last` are in it."""

    path: str
    date: str
    partition: int
    start: int
    last: int
    rows: int
    gaps: int
    first_time: str
    last_time: str
    size_bytes: int
    written_ms: int


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A file of the table that readers see. Each run of offsets in it is a span of a partition."""

    path: str
    date: str
    size_bytes: int
    rows: int
    spans: tuple[tuple[int, int, int], ...]
    """Partition, first offset, and the first offset after them."""
