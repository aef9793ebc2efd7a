"""Frames in memory to one Arrow record batch. No files: `segments` brings frames that were judged.

The scanner of the log has checked length, magic, offset, epoch, count and checksum of each frame;
what lies inside is checked here.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ibrik_log.batch import LOG_APPEND_TIME, MIN_RECORD_BYTES
from ibrik_log.errors import CorruptRecord
from ibrik_log.scan import Frame

from .kernels import HEADER_BYTES, gather, locate, locate_headers

_ATTRIBUTES_AT = 21
_HEADER = pa.struct([pa.field("name", pa.string(), nullable=False), pa.field("value", pa.binary())])

SCHEMA = pa.schema(
    [
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("ms", tz="UTC"), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", pa.list_(pa.field("element", _HEADER, nullable=False)), nullable=False),
        pa.field("leader_epoch", pa.int32(), nullable=False),
    ]
)


class Block(NamedTuple):
    """Bytes of a file, and where in it they lie."""

    position: int
    content: bytes


def decode_frames(block: Block, frames: Sequence[Frame], partition: int) -> pa.RecordBatch:
    """Decode whole frames that follow each other in `block`.

    CorruptRecord when one of them cannot be decoded: try them one by one to learn which.
    """
    positions, bases, nexts, epochs, times = np.array(frames, dtype=np.int64).T
    starts = positions - block.position
    data = np.frombuffer(block.content, dtype=np.uint8)
    lengths = _big_endian(data, starts + 8)
    ends = starts + 12 + lengths
    counts = nexts - bases
    # Before anything is allocated: a count of two billion in a frame of a hundred bytes.
    if (counts * MIN_RECORD_BYTES > ends - starts - HEADER_BYTES).any():
        raise CorruptRecord("more records than fit into the batch")
    attributes = data[starts + _ATTRIBUTES_AT].astype(np.int64) << 8
    attributes |= data[starts + _ATTRIBUTES_AT + 1]
    if (attributes & ~LOG_APPEND_TIME).any():
        raise CorruptRecord("the batch is compressed or has attributes that are not known")
    rows = np.empty((int(counts.sum()), 6), dtype=np.int64)
    if not locate(data, starts, ends, counts, rows):
        raise CorruptRecord("the batch's records are damaged")
    columns = [
        pa.array(np.full(len(rows), partition, dtype=np.int32)),
        pa.array(np.arange(bases[0], nexts[-1], dtype=np.int64)),
        pa.array(np.repeat(times, counts)).cast(SCHEMA.field("timestamp").type),
        _binary(data, rows[:, 0], rows[:, 1]),
        _binary(data, rows[:, 2], rows[:, 3]),
        _headers(data, rows),
        pa.array(np.repeat(epochs, counts).astype(np.int32)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _big_endian(data: Any, at: Any) -> Any:
    """The 32-bit numbers at these positions; lengths, so never negative."""
    numbers = data[at].astype(np.int64)
    for byte in (1, 2, 3):
        numbers = numbers << 8 | data[at + byte]
    return numbers


def _binary(data: Any, positions: Any, lengths: Any) -> pa.Array:
    """One column of bytes. A block has at most 64 MiB, so 32-bit offsets suffice."""
    is_valid = lengths >= 0
    offsets = _offsets(np.maximum(lengths, 0))
    content = np.empty(int(offsets[-1]), dtype=np.uint8)
    gather(data, positions, lengths, offsets, content)
    validity = None
    if not is_valid.all():
        validity = pa.py_buffer(np.packbits(is_valid, bitorder="little"))
    buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(content)]
    return pa.Array.from_buffers(pa.binary(), len(lengths), buffers)


def _headers(data: Any, rows: Any) -> pa.Array:
    offsets = _offsets(rows[:, 5])
    headers = np.empty((int(offsets[-1]), 4), dtype=np.int64)
    locate_headers(data, rows, headers)
    names = _binary(data, headers[:, 0], headers[:, 1])
    values = _binary(data, headers[:, 2], headers[:, 3])
    try:
        texts = names.cast(pa.string())
    except pa.ArrowInvalid as error:
        raise CorruptRecord("a header's name is no valid text") from error
    items = pa.StructArray.from_arrays([texts, values], fields=list(_HEADER))
    buffers = [None, pa.py_buffer(offsets)]
    kind = SCHEMA.field("headers").type
    return pa.Array.from_buffers(kind, len(rows), buffers, children=[items])


def _offsets(lengths: Any) -> Any:
    offsets = np.zeros(len(lengths) + 1, dtype=np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return offsets
