"""`python -m tests.lake_readers`: a table of the archive job, read by others, row for row."""

import asyncio
import random
import sys
import tempfile
import zlib
from pathlib import Path

from ibrik_log.batch import encode
from ibrik_log.config import LogConfig
from ibrik_log.files import RealDisk
from ibrik_log.log import Log
from ibrik_log.record import Record
from ibrik_log.volume import Volume
from ibrik_spark.jobs import archive, optimize
from tests.lake_readers.delta import Counted, by_delta_rs, by_spark, fetch

TOPIC = "7d17946a-9a18-4514-abf6-3d9d8f745ba5"
NOW_MS = 1_700_000_000_000
PARTITIONS, RUNS, RECORDS = 3, 4, 5_000
EIGHT_HOURS_MS = 8 * 3_600_000


def main() -> int:
    fetch()
    with tempfile.TemporaryDirectory(prefix="ibrik-lake-readers-") as name:
        data, lake = Path(name, "data"), Path(name, "lake")
        _volume(data)
        written = [Counted(number, 0, 0, -1, 0) for number in range(PARTITIONS)]
        for run in range(RUNS):
            written = [_append(data, known, run) for known in written]
            asyncio.run(archive.run(archive.Options(data, str(lake))))
        location = lake / TOPIC
        problems = _compare(location, written, "as it was archived")
        optimize.run(optimize.Options(str(lake)))
        problems += _compare(location, written, "after optimize")
    for problem in problems:
        print(problem)
    rows = sum(counted.rows for counted in written)
    print(
        f"{rows:,} rows of {PARTITIONS} partitions from {RUNS} runs, before and after optimize:"
        f" read alike by delta-rs and by Spark 4.0 with Delta's own reader; problems"
        f" {len(problems)}"
    )
    return 1 if problems or not rows else 0


def _volume(data: Path) -> None:
    volume = Volume.open(RealDisk(), data)
    volume.create_topic(TOPIC, "orders", NOW_MS, "hash", PARTITIONS)
    volume.close()


def _append(data: Path, known: Counted, run: int) -> Counted:
    """A segment more of one partition; the runs lie on several days."""
    path = data / "topics" / TOPIC / str(known.partition)
    log = Log.open(RealDisk(), path, LogConfig(segment_bytes=1 << 28, index_interval_bytes=4096))
    source = random.Random(run * PARTITIONS + known.partition)
    values = [source.randbytes(source.randrange(200)) for _ in range(RECORDS + known.partition)]
    time_ms = NOW_MS + run * EIGHT_HOURS_MS
    log.append([encode([Record(b"key", value, [("n", b"1")]) for value in values])], time_ms)
    log.roll(time_ms)
    end = log.end_offset
    log.close()
    checksums = known.checksums + sum(map(zlib.crc32, values))
    return Counted(known.partition, end, 0, end - 1, checksums)


def _compare(location: Path, written: list[Counted], when: str) -> list[str]:
    found = {"delta-rs": by_delta_rs(location), "Spark": by_spark(location)}
    return [
        f"{reader}, {when}: {seen} in place of {written}"
        for reader, seen in found.items()
        if seen != written
    ]


if __name__ == "__main__":
    sys.exit(main())
