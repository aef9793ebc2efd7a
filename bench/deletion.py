"""Deleting a segment of 1 GiB while others publish: it must not be felt."""

import threading
import time
from pathlib import Path

from bench.framework import Bench, Row, milliseconds, new_folder, times
from bench.ibrik import RAW, batch_url, broker_with, post, pub_command, raw_batch
from bench.load import Load, Shape, run_generator
from tests.support.broker import Broker

BAR = 3.0
VALUE = b"x" * 100


def measure(bench: Bench) -> list[Row]:
    size_mib = bench.scaled(1024, 256)
    topics = {"big": {"segment": {"bytes": f"{size_mib}Mi"}}, "busy": {}}
    with new_folder() as name, broker_with(Path(name), topics) as broker:
        _fill(broker, size_mib)
        shape = Shape(8, 16, bench.seconds * 2, bench.warm_up_seconds)
        command = [pub_command("busy", VALUE)]
        port = broker.tcp_address[1]
        before = bench.median(
            run_generator(port, command, shape).p999_ms for _ in range(bench.rounds)
        )
        during = _while_deleting(broker, command, shape)
    return [
        Row(
            f"p99.9 while a segment of {size_mib:,} MiB is deleted",
            milliseconds(during.p999_ms),
            f"before {milliseconds(before)}",
            times(during.p999_ms / before),
            values={"p999_ms": during.p999_ms, "before_p999_ms": before},
        ).judged(f"≤ {BAR:.0f}x", during.p999_ms <= BAR * before)
    ]


def _fill(broker: Broker, size_mib: int) -> None:
    """One batch more than fits, so that the big segment is sealed."""
    body = raw_batch([b"x" * 1000] * 1000) * 4
    for _ in range(size_mib * 2**20 // len(body) + 1):
        post(batch_url(broker, "big"), body, RAW)


def _while_deleting(broker: Broker, command: list[bytes], shape: Shape) -> Load:
    """The purge comes inside the measured time and deletes the big segment."""
    folder = broker.data / "topics"
    full_bytes = _bytes_of(folder)

    def purge() -> None:
        threading.Event().wait(shape.warm_up_seconds + shape.seconds / 4)
        post(f"{broker.http_url}/v1/topics/big:purge", b"", "application/json")

    purging = threading.Thread(target=purge)
    purging.start()
    load = run_generator(broker.tcp_address[1], command, shape)
    purging.join()
    deadline = time.monotonic() + 30
    while _bytes_of(folder) > full_bytes / 2:
        assert time.monotonic() < deadline, "the purge did not free the segment"
        threading.Event().wait(0.1)
    return load


def _bytes_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*.log*"))
