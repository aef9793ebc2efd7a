"""What the archive job costs beside a broker: memory of all its processes, and the producers' p99.

Half a core, as a pod's limit gives it: one CPU, of which the job has every second 50 ms.
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
from itertools import cycle
from pathlib import Path

import aiohttp
import psutil

from bench.archive import ROOT, command_of
from bench.framework import Bench, Row, new_folder, times, unmeasured
from bench.ibrik import broker_with, messages_url
from bench.segments import VALUE, filled
from tests.support.broker import Broker

GIB = 2**30
RECORD_BYTES = 230  # of a segment, with the value and the key of `filled`
MEMORY_BAR = int(1.4 * GIB)
FLAT_BAR = 1.2
TAIL_BAR = 1.5
RATE = 500
SLICE_S = 0.05
MEMORY, TAIL = "memory of the archive job with Spark, 1 GB", "publish p99 at 500/s beside a job"


def measure(bench: Bench) -> list[Row]:
    if shutil.which("java") is None:
        bars = [(MEMORY, f"≤ {MEMORY_BAR / GIB:.1f} GiB"), (TAIL, f"≤ {TAIL_BAR}x")]
        return [unmeasured(name, bar, "needs Java 17") for name, bar in bars]
    return [_memory(bench), _tail(bench)]


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
    """The job reads a volume of its own on the same disk, again and again, while it is measured."""
    seconds = bench.seconds * 3
    rounds = 1 if bench.is_quick else 5
    with new_folder() as name, broker_with(Path(name) / "broker", {"beside": {}}) as broker:
        data = Path(name) / "data"
        filled(data, bench.scaled(3 * GIB, GIB // 20) // RECORD_BYTES)
        asyncio.run(_p99_ms(broker, 1.0))  # warms up
        alone, beside = [], []
        for _ in range(rounds):
            alone.append(asyncio.run(_p99_ms(broker, seconds)))
            lake = Path(name) / "lake"
            with _job(data, lake, "--spark-from", "0", "--cores", "1") as job:
                _wait_until_it_reads(job, lake)
                with _half_a_core(job):
                    beside.append(asyncio.run(_p99_ms(broker, seconds)))
                assert job.poll() is None, "the job ended while it was measured beside"
            shutil.rmtree(lake, ignore_errors=True)
    without, ratio = (
        statistics.median(alone),
        statistics.median(
            with_ms / without_ms for with_ms, without_ms in zip(beside, alone, strict=True)
        ),
    )
    return Row(
        TAIL,
        f"{statistics.median(beside):.1f} ms",
        f"without it {without:.1f} ms",
        times(ratio),
        values={"p99_ms": statistics.median(beside), "without_ms": without, "ratio": ratio},
    ).judged(f"≤ {TAIL_BAR}x", ratio <= TAIL_BAR)


async def _p99_ms(broker: Broker, seconds: float) -> float:
    """From when a message was to be sent to its acknowledgement; a late one delays no other."""
    loop = asyncio.get_running_loop()
    latencies: list[float] = []

    async def publish(due: float) -> None:
        async with session.post(messages_url(broker, "beside"), data=VALUE) as answer:
            await answer.read()
            assert answer.status == 201, answer.status
        latencies.append(loop.time() - due)

    async with aiohttp.ClientSession() as session, asyncio.TaskGroup() as group:
        begun = loop.time()
        for number in range(round(RATE * seconds)):
            due = begun + number / RATE
            await asyncio.sleep(max(due - loop.time(), 0))
            group.create_task(publish(due))
    return statistics.quantiles(latencies, n=100)[98] * 1000


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


@contextmanager
def _half_a_core(job: "subprocess.Popen[bytes]") -> Iterator[None]:
    psutil.Process(job.pid).cpu_affinity([0])
    is_over = threading.Event()

    def duty() -> None:
        for sent in cycle((signal.SIGSTOP, signal.SIGCONT)):
            if is_over.wait(SLICE_S) or job.poll() is not None:
                return
            os.killpg(job.pid, sent)

    thread = threading.Thread(target=duty)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
