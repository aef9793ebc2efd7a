"""Helpers of the reader's tests: volumes and logs on the real disk, and all that a read gives."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ibrik_log.batch import encode
from ibrik_log.config import LogConfig
from ibrik_log.files import RealDisk
from ibrik_log.log import Log
from ibrik_log.record import Record
from ibrik_log.volume import Volume
from ibrik_spark.segments import DamagedRange, Piece, read
from ibrik_spark.volume import MountedVolume, SealedPartition

TOPIC = "7d17946a-9a18-4514-abf6-3d9d8f745ba5"
NOW_MS = 1_700_000_000_000
DISK = RealDisk()
LARGE = LogConfig(segment_bytes=1 << 28, index_interval_bytes=4096)


def new_log(data: Path, config: LogConfig = LARGE) -> Log:
    """The log of partition 1 on a new volume, whose lock nobody holds any more."""
    volume = Volume.open(DISK, data)
    volume.create_topic(TOPIC, "orders", NOW_MS, "hash", 2)
    volume.close()
    return Log.open(DISK, data / "topics" / TOPIC / "1", config)


def append(log: Log, *batches: Sequence[Record]) -> None:
    for batch in batches:
        log.append([encode(batch)], NOW_MS + log.end_offset)


def numbered(log: Log, count: int) -> list[Record]:
    return [Record(b"k%d" % n, b"v%d" % n) for n in range(log.end_offset, log.end_offset + count)]


def fill(log: Log, batches: int, *, records: int = 3) -> None:
    """Append batches whose keys and values name their offsets, and seal them."""
    for _ in range(batches):
        append(log, numbered(log, records))
    log.roll(NOW_MS)


def break_a_batch(data: Path) -> None:
    """Flip one bit in the middle of the oldest segment."""
    path = min((data / "topics" / TOPIC / "1").glob("*.log"))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def listed(data: Path) -> SealedPartition:
    volume = MountedVolume.open(data)
    return volume.partition(volume.topic(TOPIC), 1)


def read_all(partition: SealedPartition) -> list[Piece]:
    return list(read(partition, partition.start_offset, partition.end_offset))


def rows(pieces: Iterable[Piece]) -> list[dict[str, Any]]:
    return [
        row for piece in pieces if not isinstance(piece, DamagedRange) for row in piece.to_pylist()
    ]


def damages(pieces: Iterable[Piece]) -> list[DamagedRange]:
    return [piece for piece in pieces if isinstance(piece, DamagedRange)]


def offsets(pieces: Iterable[Piece]) -> list[int]:
    return [row["offset"] for row in rows(pieces)]


def tiles(pieces: Iterable[Piece], start: int, end: int) -> bool:
    """Whether batches and damaged ranges follow each other from `start` to `end` without a gap."""
    for piece in pieces:
        if isinstance(piece, DamagedRange):
            first, after = piece.from_offset, piece.to_offset
        else:
            column = piece.column("offset").to_pylist()
            first, after = column[0], column[-1] + 1
            assert column == list(range(first, after))
        if first != start or after <= first:
            return False
        start = after
    return start == end
