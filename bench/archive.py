"""The archive job: rows a second when Spark runs, the size of real events, a run without work."""

import shutil
import subprocess
import sys
import time
from pathlib import Path

from bench.framework import Bench, Row, new_folder, unmeasured
from bench.segments import TOPIC, filled
from ibrik_log.batch import encode
from ibrik_log.config import LogConfig
from ibrik_log.files import RealDisk
from ibrik_log.log import Log
from ibrik_log.record import Record
from ibrik_log.volume import Volume
from ibrik_spark.slices import cut
from ibrik_spark.table import Table, Topic
from ibrik_spark.volume import MountedVolume
from ibrik_spark.work import Tasks, Work, Writer, spark

ROOT = Path(__file__).resolve().parents[1]
CORES = 2
SPEED_BAR = 400_000
SIZE_BAR = 0.5
IDLE_BAR_S = 2.0
BATCH_RECORDS = 500


def measure(bench: Bench) -> list[Row]:
    speed = f"≥ {SPEED_BAR:,} records/s"
    if shutil.which("java") is None:
        rows = [unmeasured("archive with Spark, 200 B, two cores", speed, "needs Java 17")]
    else:
        rows = [_speed(bench)]
    return [*rows, _size(), _idle(bench)]


def _speed(bench: Bench) -> Row:
    records = bench.scaled(2_000_000, 200_000)
    with new_folder() as name, spark(CORES) as session:
        data, lake = Path(name) / "data", Path(name) / "lake"
        filled(data, records)
        writer = Tasks(Work(data, records_gaps=False, now_ms=0), session)
        _archive(data, lake / "warm", writer)  # starts the workers, which compile
        seconds = [_archive(data, lake / str(n), writer) for n in range(bench.rounds)]
    found = records / bench.median(seconds)
    return Row(
        "archive with Spark, 200 B, two cores",
        f"{found:,.0f} records/s",
        values={"records_per_second": found},
    ).judged(f"≥ {SPEED_BAR:,} records/s", found >= SPEED_BAR)


def _archive(data: Path, lake: Path, writer: Writer) -> float:
    """Seconds for all that is on the volume: files, commit and the proof."""
    begun = time.perf_counter()
    volume = MountedVolume.open(data)
    partition = volume.partition(volume.topic(TOPIC), 0)
    table = Table(str(lake), Topic(volume.cluster_id, TOPIC, "bench"))
    handle = table.create()
    written = writer.write(table.location, cut(TOPIC, partition, None, slice_bytes=64 * 2**20))
    files = [file for part in written for file in part.files]
    handle.commit(files, {0: partition.end_offset}, {})
    handle = table.create()
    assert handle.prove([0]) == {0: (0, partition.end_offset)}
    return time.perf_counter() - begun


def _size() -> Row:
    """The flights of `make demo`, against their segments."""
    sys.path.insert(0, str(ROOT / "examples" / "quickstart"))
    import flights

    source = flights.fetch(ROOT / "requirements" / "demo.lock", ROOT / ".demo" / "pkgs")
    with new_folder() as folder:
        data = Path(folder) / "data"
        _publish(data, [Record(f.carrier.encode(), f.event) for f in flights.read(source)])
        _run(data, Path(folder) / "lake")
        table = sum(path.stat().st_size for path in (Path(folder) / "lake").rglob("*.parquet"))
        ratio = table / sum(path.stat().st_size for path in data.rglob("*.log"))
    return Row(
        "flights in the table, of their segments", f"{ratio:.2f}", values={"ratio": ratio}
    ).judged(f"≤ {SIZE_BAR}", ratio <= SIZE_BAR)


def _publish(data: Path, records: list[Record]) -> None:
    volume = Volume.open(RealDisk(), data)
    topic = volume.create_topic(TOPIC, "bench", 0, "", 1)
    volume.close()
    log = Log.open(RealDisk(), topic.path / "0", LogConfig(segment_bytes=32 * 2**20))
    for first in range(0, len(records), BATCH_RECORDS):
        log.append([encode(records[first : first + BATCH_RECORDS])], first)
    log.roll(len(records))
    log.close()


def _idle(bench: Bench) -> Row:
    with new_folder() as name:
        data, lake = Path(name) / "data", Path(name) / "lake"
        _publish(data, [Record(None, b"x")])
        _run(data, lake)
        seconds = bench.median(_run(data, lake) for _ in range(5))
    return Row(
        "archive run with nothing to do", f"{seconds:.2f} s", values={"seconds": seconds}
    ).judged(f"≤ {IDLE_BAR_S:.0f} s", seconds <= IDLE_BAR_S)


def command_of(data: Path, lake: Path) -> list[str]:
    where = ["--data", str(data), "--target", str(lake)]
    return [sys.executable, "-m", "ibrik_spark", "archive", *where]


def _run(data: Path, lake: Path) -> float:
    """Seconds of the whole process, as it is started in a pod."""
    begun = time.perf_counter()
    done = subprocess.run(command_of(data, lake), capture_output=True, check=False)
    assert done.returncode in (0, 2), done.stdout + done.stderr
    return time.perf_counter() - begun
