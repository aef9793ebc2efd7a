"""Proof by strace that an answer comes after a flush: one request in flight, flushes ≥ answers.

Rates of peers compare only inside one class of durability; this row shows the class of both.
"""

import re
import shutil
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

from bench import peers
from bench.framework import Bench, Row, judge, unmeasured
from bench.ibrik import pub_command
from bench.load import Shape, run_generator
from tests.support.broker import Broker

NAME = "flushes per answer, one in flight (strace)"
BAR = "≥ 1"
CALLS = "fdatasync,fsync,syncfs"
HINT = "needs strace (Debian: apt-get install strace)"


def prove(bench: Bench, broker: Broker, folder: Path, topic: str) -> list[Row]:
    if shutil.which("strace") is None:
        return [unmeasured(NAME, BAR, HINT)]
    shape = Shape(1, 1, bench.seconds / 2, warm_up_seconds=0)
    request = [pub_command(topic, b"x" * 100)]
    ours = count_flushes(
        broker.process.pid,
        folder,
        lambda: run_generator(broker.tcp_address[1], request, shape).replies,
    )
    with peers.redis(folder / "redis-traced") as redis:
        xadd = [peers.xadd("traced", b"x" * 100)]
        theirs = count_flushes(
            redis.pid,
            folder,
            lambda: run_generator(redis.port, xadd, shape, newlines_per_reply=2).replies,
        )
    return [
        Row(
            NAME,
            f"{ours:.2f}",
            f"Redis {theirs:.2f}",
            "",
            BAR,
            judge(ours >= 1),
            {"flushes_per_answer": ours, "redis_flushes_per_answer": theirs},
        )
    ]


def count_flushes(pid: int, folder: Path, load: Callable[[], int]) -> float:
    """Successful flush calls of all threads of `pid` during `load`, per answer."""
    trace = folder / f"trace-{pid}"
    strace = subprocess.Popen(
        ["strace", "-f", "-qq", "-e", f"trace={CALLS}", "-o", trace, "-p", str(pid)],
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_until_traced(pid)
        answers = load()
    finally:
        strace.terminate()
        strace.wait()
    flushes = len(re.findall(r"\) += 0$", trace.read_text(), re.MULTILINE))
    return flushes / answers


def _wait_until_traced(pid: int) -> None:
    pause = threading.Event()
    for _ in range(500):
        tasks = [task.read_text() for task in Path(f"/proc/{pid}/task").glob("*/status")]
        if all("TracerPid:\t0\n" not in status for status in tasks):
            return
        pause.wait(0.01)
    raise RuntimeError("strace did not attach")
