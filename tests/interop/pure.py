"""aiokafka's decoder in pure Python: it shares no line with the compiled one that we use."""

from collections.abc import Iterable
from pathlib import Path

from aiokafka.record.default_records import _DefaultRecordBatchPy

from tests.interop.record import ReadRecord


def read(files: Iterable[Path]) -> list[ReadRecord]:
    records = []
    for file in files:
        content = file.read_bytes()
        for frame in frames(content):
            batch = _DefaultRecordBatchPy(frame)
            assert batch.validate_crc(), f"{file}: wrong CRC"
            records += [
                ReadRecord(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in batch
            ]
    return records


def frames(content: bytes) -> Iterable[bytes]:
    """Cut by aiokafka's own reader of the length field; only the last may be short of a frame."""
    position = 0
    while position < len(content):
        length = int.from_bytes(content[position + 8 : position + 12], "big") + 12
        yield content[position : position + length]
        position += length
    assert position == len(content), "the file ends inside a batch"
