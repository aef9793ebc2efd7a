"""What a read of segments gives, as rows of the table: the same in a file as in a data frame.

Offsets that cannot be read are one row each range, which says so (`gap_to`, `gap_reason`).
"""

from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from .schema import FILE_SCHEMA
from .segments import DamagedRange, Piece

LAST_TIME_MS = 253_402_300_799_999  # the end of the year 9999, which readers know as the last


def judged(piece: Piece) -> Piece:
    """A batch whose times no table can hold is damaged, whatever its checksum says."""
    if isinstance(piece, DamagedRange):
        return piece
    times = pc.min_max(piece.column("timestamp").cast(pa.int64()))
    if times["min"].as_py() >= 0 and times["max"].as_py() <= LAST_TIME_MS:
        return piece
    first, last = piece.column("offset")[0].as_py(), piece.column("offset")[-1].as_py()
    return DamagedRange(first, last + 1, "the append time is impossible")


def table_rows(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The columns of a file: those of the reader, and no gap."""
    rows = batch.num_rows
    columns = [
        batch.column(field.name).cast(field.type)
        if field.name in batch.schema.names
        else pa.nulls(rows, field.type)
        for field in FILE_SCHEMA
    ]
    return pa.RecordBatch.from_arrays(columns, schema=FILE_SCHEMA)


def gap_row(partition: int, gap: DamagedRange, time: datetime) -> pa.RecordBatch:
    """The row for a gap; its time is that of what lies before it."""
    row = dict.fromkeys(FILE_SCHEMA.names) | {
        "partition": partition,
        "offset": gap.from_offset,
        "timestamp": time,
        "headers": [],
        "leader_epoch": 0,
        "gap_to": gap.to_offset,
        "gap_reason": gap.reason,
    }
    return pa.RecordBatch.from_pylist([row], schema=FILE_SCHEMA)
