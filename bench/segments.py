"""Sealed segments to Arrow on one core, beside a decode of record by record in the same rounds."""

import time
from pathlib import Path

import pyarrow as pa

from bench.framework import Bench, Row, new_folder, times
from ibrik_log.batch import decode, encode, iterate_frames
from ibrik_log.config import LogConfig
from ibrik_log.files import RealDisk
from ibrik_log.log import Log
from ibrik_log.record import Record
from ibrik_log.volume import Volume
from ibrik_spark.records import SCHEMA
from ibrik_spark.segments import DamagedRange, read
from ibrik_spark.volume import MountedVolume, SealedPartition

TOPIC = "7d17946a-9a18-4514-abf6-3d9d8f745ba5"
SPEED_BAR = 1_000_000
RATIO_BAR = 3.0
BATCH_RECORDS = 500
VALUE = bytes(range(200))


def measure(bench: Bench) -> list[Row]:
    records = bench.scaled(400_000, 50_000)
    with new_folder() as name:
        partition = filled(Path(name), records)
        _arrow(partition)  # compiles, and brings the files into memory
        ours, peer = bench.alternate(
            lambda: records / _arrow(partition), lambda: records / _record_by_record(partition)
        )
    return [
        Row(
            "segments to Arrow, 200 B, one core",
            f"{ours:,.0f} records/s",
            f"record by record {peer:,.0f}/s",
            times(ours / peer),
            values={"records_per_second": ours, "record_by_record": peer},
        ).judged(
            f"≥ {SPEED_BAR:,}/s and ≥ {RATIO_BAR:.0f}x",
            ours >= SPEED_BAR and ours >= RATIO_BAR * peer,
        )
    ]


def filled(data: Path, records: int) -> SealedPartition:
    volume = Volume.open(RealDisk(), data)
    topic = volume.create_topic(TOPIC, "bench", 0, "", 1)
    volume.close()
    log = Log.open(RealDisk(), topic.path / "0", LogConfig(segment_bytes=32 * 2**20))
    for first in range(0, records, BATCH_RECORDS):
        batch = [Record(b"key-%012d" % n, VALUE) for n in range(first, first + BATCH_RECORDS)]
        log.append([encode(batch)], first)
    log.roll(records)
    log.close()
    mounted = MountedVolume.open(data)
    return mounted.partition(mounted.topic(TOPIC), 0)


def _arrow(partition: SealedPartition) -> float:
    """CPU seconds, which others on the machine do not lengthen."""
    begun = time.process_time()
    rows = 0
    for piece in read(partition, partition.start_offset, partition.end_offset):
        assert not isinstance(piece, DamagedRange)
        rows += piece.num_rows
    spent = time.process_time() - begun
    assert rows == partition.end_offset
    return spent


def _record_by_record(partition: SealedPartition) -> float:
    """The same batches from the log's own decode, one object a record; CPU seconds."""
    begun = time.process_time()
    rows = 0
    for path in sorted(partition.path.glob("*.log")):
        for frame in iterate_frames(path.read_bytes()):
            rows += _to_arrow(frame, partition.number)
    spent = time.process_time() - begun
    assert rows == partition.end_offset
    return spent


def _to_arrow(frame: memoryview, partition: int) -> int:
    columns: list[list[object]] = [[] for _ in SCHEMA]
    for record in decode(frame):
        row = (
            partition,
            record.offset,
            record.timestamp_ms,
            record.key,
            record.value,
            [{"name": name, "value": value} for name, value in record.headers],
            0,
        )
        for column, item in zip(columns, row, strict=True):
            column.append(item)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    return int(pa.RecordBatch.from_arrays(arrays, schema=SCHEMA).num_rows)
