"""Publishing over TCP, every record flushed before its `OK`, beside Redis that does the same."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench import peers
from bench.flush_proof import prove
from bench.framework import (
    Bench,
    NotMeasured,
    Row,
    judge,
    milliseconds,
    new_folder,
    rate,
    times,
    unmeasured,
)
from bench.ibrik import broker_with, pub_command
from bench.load import Load, Shape, run_generator

TOPIC = "tcp"
RATE_BAR = 150_000
REDIS_BAR = 0.4
SMALL, LARGE = b"x" * 100, b"x" * 1024


def measure(bench: Bench) -> list[Row]:
    with new_folder() as name, broker_with(Path(name, "ibrik"), {TOPIC: {}}) as broker:
        try:
            with peers.redis(Path(name, "redis")) as redis:
                rows = _against_redis(bench, broker.tcp_address[1], redis.port)
                rows += prove(bench, broker, Path(name), TOPIC)
        except NotMeasured as missing:
            rows = [unmeasured("TCP PUB beside Redis", f"≥ {RATE_BAR:,}/s", str(missing))]
        rows.append(_one_in_flight(bench, broker.tcp_address[1], Path(name)))
    return rows


def _against_redis(bench: Bench, port: int, redis_port: int) -> list[Row]:
    shape = Shape(8, 128, bench.seconds, bench.warm_up_seconds)
    rows = []
    for size, value in ((100, SMALL), (1024, LARGE)):
        command, xadd = [pub_command(TOPIC, value)], [peers.xadd("bench", value)]
        ours, theirs = _alternate(
            bench,
            partial(run_generator, port, command, shape),
            partial(run_generator, redis_port, xadd, shape, newlines_per_reply=2),
        )
        ratio = ours.rate / theirs.rate
        row = Row(
            f"TCP PUB {size} B, 8 connections x 128, flushed",
            f"{rate(ours.rate)}, p99 {milliseconds(ours.p99_ms)}",
            f"Redis XADD always {rate(theirs.rate)}, p99 {milliseconds(theirs.p99_ms)}",
            times(ratio),
            values={"rate": ours.rate, "redis_rate": theirs.rate, "p99_ms": ours.p99_ms},
        )
        if size == len(SMALL):
            is_met = ours.rate >= RATE_BAR and ratio >= REDIS_BAR
            row = row.judged(f"≥ {RATE_BAR:,}/s, ≥ {REDIS_BAR}x", is_met)
        rows.append(row)
    return rows


def _alternate(
    bench: Bench, ours: Callable[[], Load], theirs: Callable[[], Load]
) -> tuple[Load, Load]:
    """The round with the median rate of each."""
    rounds = [(ours(), theirs()) for _ in range(bench.rounds)]
    middle = bench.rounds // 2
    return (
        sorted((pair[0] for pair in rounds), key=lambda load: load.rate)[middle],
        sorted((pair[1] for pair in rounds), key=lambda load: load.rate)[middle],
    )


def _one_in_flight(bench: Bench, port: int, folder: Path) -> Row:
    shape = Shape(1, 1, bench.seconds, bench.warm_up_seconds)
    ours, probe = bench.alternate(
        lambda: run_generator(port, [pub_command(TOPIC, SMALL)], shape).p50_ms,
        lambda: peers.probe_disk(folder),
    )
    return Row(
        "TCP PUB 100 B, one in flight, p50",
        milliseconds(ours),
        f"4 KiB write + fdatasync {milliseconds(probe)}",
        times(ours / probe),
        "≤ 2x",
        judge(ours <= 2 * probe),
        {"p50_ms": ours, "probe_ms": probe},
    )
