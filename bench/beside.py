"""What the archive job costs beside a broker: memory of all its processes, and the producers' p99.

For the second, broker and job have the CPU of pods with what Ibrik asks for by default, and the job
a limit of half a core. The producer measures, so it gets more than both.
"""

import asyncio
import os
import shutil
import signal
import statistics
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import aiohttp
import psutil

from bench.archive import ROOT, command_of
from bench.cpu_groups import cpu_group
from bench.framework import Bench, NotMeasured, Row, new_folder, times, unmeasured
from bench.ibrik import broker_with, messages_url
from bench.segments import VALUE, filled
from tests.support.broker import Broker

GIB = 2**30
RECORD_BYTES = 230  # of a segment, with the value and the key of `filled`
MEMORY_BAR = int(1.4 * GIB)
FLAT_BAR = 1.2
TAIL_BAR = 1.5
RATE = 500
BROKER_MILLIS, JOB_MILLIS = 250, 100  # The defaults of the definition and of the operator.
PRODUCER_MILLIS = 1_000
LIMIT_MILLIS = 500
MEMORY, TAIL = "memory of the archive job with Spark, 1 GB", "publish p99 at 500/s beside a job"


def measure(bench: Bench) -> list[Row]:
    if shutil.which("java") is None:
        bars = [(MEMORY, f"≤ {MEMORY_BAR / GIB:.1f} GiB"), (TAIL, f"≤ {TAIL_BAR}x")]
        return [unmeasured(name, bar, "needs Java 17") for name, bar in bars]
    try:
        tail = _tail(bench)
    except NotMeasured as missing:
        tail = unmeasured(TAIL, f"≤ {TAIL_BAR}x", str(missing))
    return [_memory(bench), tail]


def _memory(bench: Bench) -> Row:
    """Of a gigabyte, and of twice as much."""
    sizes = [bench.scaled(count * GIB, count * GIB // 20) // RECORD_BYTES for count in (1, 2)]
    once, twice = (_most_bytes(records) for records in sizes)
    return Row(
        MEMORY,
        f"{once / GIB:.2f} GiB",
        f"2 GB: {twice / GIB:.2f} GiB",
        times(twice / once),
        values={"bytes": once, "twice_bytes": twice},
    ).judged(
        f"≤ {MEMORY_BAR / GIB:.1f} GiB and ≤ {FLAT_BAR}x for 2 GB",
        once <= MEMORY_BAR and twice <= FLAT_BAR * once,
    )


def _most_bytes(records: int) -> int:
    with new_folder() as name:
        data = Path(name) / "data"
        filled(data, records)
        with _job(data, Path(name) / "lake", "--spark-from", "0") as job:
            most = 0
            while job.poll() is None:
                most = max(most, _held_bytes(job.pid))
                threading.Event().wait(0.1)
        assert job.returncode == 0
    return most


def _held_bytes(pid: int) -> int:
    """Of a process and all below it; what they share counts once."""
    held = 0
    try:
        root = psutil.Process(pid)
        for process in [root, *root.children(recursive=True)]:
            held += process.memory_full_info().pss
    except psutil.NoSuchProcess:
        pass
    return held


def _tail(bench: Bench) -> Row:
    """The job reads a volume of its own on the same disk, from its first record."""
    with new_folder() as name:
        data = Path(name) / "data"
        filled(data, bench.scaled(3 * GIB, GIB // 20) // RECORD_BYTES)
        with (
            cpu_group(os.getpid(), PRODUCER_MILLIS),
            broker_with(Path(name) / "broker", {"beside": {}}) as broker,
            cpu_group(broker.process.pid, BROKER_MILLIS),
        ):
            rounds = [_round(bench, broker, data) for _ in range(1 if bench.is_quick else 5)]
    without_ms, with_ms = (statistics.median(column) for column in zip(*rounds, strict=True))
    ratio = statistics.median(beside / alone for alone, beside in rounds)
    return Row(
        TAIL,
        f"{with_ms:.1f} ms",
        f"without it {without_ms:.1f} ms",
        times(ratio),
        values={"p99_ms": with_ms, "without_ms": without_ms, "ratio": ratio},
    ).judged(f"≤ {TAIL_BAR}x", ratio <= TAIL_BAR)


def _round(bench: Bench, broker: Broker, data: Path) -> tuple[float, float]:
    """The p99 in milliseconds while the job stands still, and while it works."""
    lake = data.parent / "lake"
    with _job(data, lake, "--spark-from", "0", "--cores", "1") as job:
        _wait_until_it_reads(job, lake)
        with cpu_group(job.pid, JOB_MILLIS, LIMIT_MILLIS):
            alone, beside = asyncio.run(_latencies(broker, job.pid, bench.scaled(12, 2)))
            assert job.poll() is None, "the job ended while it was measured beside"
    shutil.rmtree(lake)
    return _p99_ms(alone), _p99_ms(beside)


async def _latencies(broker: Broker, job: int, turns: int) -> tuple[list[float], list[float]]:
    """Seconds from when a message was due to its acknowledgement; a late one delays no other.

    The job stands still for a second and works for a second, in turn: the disk of this machine
    differs more from minute to minute than the two do. A second before those counts for neither.
    """
    loop = asyncio.get_running_loop()
    taken: tuple[list[float], list[float]] = ([], [])

    async def publish(due: float, latencies: list[float]) -> None:
        async with session.post(messages_url(broker, "beside"), data=VALUE) as answer:
            await answer.read()
            assert answer.status == 201, answer.status
        latencies.append(loop.time() - due)

    async with aiohttp.ClientSession() as session, asyncio.TaskGroup() as group:
        begun = loop.time() + 1
        for number in range(-RATE, 2 * turns * RATE):
            due = begun + number / RATE
            await asyncio.sleep(max(due - loop.time(), 0))
            works = number // RATE % 2
            if number % RATE == 0:
                os.killpg(job, signal.SIGCONT if works else signal.SIGSTOP)
            group.create_task(publish(due, taken[works] if number >= 0 else []))
    return taken


def _p99_ms(seconds: list[float]) -> float:
    return statistics.quantiles(seconds, n=100)[98] * 1000


@contextmanager
def _job(data: Path, lake: Path, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    """The job as it is started in a pod, and nothing of it afterwards."""
    job = subprocess.Popen(
        [*command_of(data, lake), *arguments],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield job
    finally:
        with suppress(ProcessLookupError):
            os.killpg(job.pid, signal.SIGKILL)
        job.wait()


def _wait_until_it_reads(job: "subprocess.Popen[bytes]", lake: Path) -> None:
    """Until then it only starts."""
    while not any(lake.rglob("*.parquet")):
        assert job.poll() is None, "the job ended before it read anything"
        threading.Event().wait(0.2)
