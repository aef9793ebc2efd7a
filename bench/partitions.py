"""256 dirty partitions: the flush is shared by syncfs, or spread over a pool of threads."""

from contextlib import AbstractContextManager
from pathlib import Path

from bench.framework import Bench, Row, milliseconds, new_folder, rate, times
from bench.ibrik import broker_with, pub_command
from bench.load import Load, Shape, run_generator
from tests.support.broker import Broker

PARTITIONS = 256
BAR_MS = 25.0
VALUE = b"x" * 100


def measure(bench: Bench) -> list[Row]:
    """One producer a partition, one message in flight: a group has up to 256 dirty files."""
    with (
        new_folder() as name,
        _broker(Path(name, "syncfs"), "syncfs") as syncfs,
        _broker(Path(name, "pool"), "pool") as pool,
    ):
        rounds = [(_load(bench, syncfs), _load(bench, pool)) for _ in range(bench.rounds)]
    syncfs_p99 = bench.median(each[0].p99_ms for each in rounds)
    pool_p99 = bench.median(each[1].p99_ms for each in rounds)
    syncfs_rate = bench.median(each[0].rate for each in rounds)
    pool_rate = bench.median(each[1].rate for each in rounds)
    return [
        Row(
            f"{PARTITIONS} dirty partitions, flush=syncfs, p99",
            f"{milliseconds(syncfs_p99)} at {rate(syncfs_rate)}",
            f"flush=pool {milliseconds(pool_p99)} at {rate(pool_rate)}",
            times(syncfs_p99 / pool_p99),
            values={"p99_ms": syncfs_p99, "pool_p99_ms": pool_p99, "rate": syncfs_rate},
        ).judged(f"≤ {BAR_MS:.0f} ms", syncfs_p99 <= BAR_MS)
    ]


def _broker(folder: Path, flush: str) -> AbstractContextManager[Broker]:
    return broker_with(folder, {"many": {"partitions": PARTITIONS}}, IBRIK_LOG__FLUSH=flush)


def _load(bench: Bench, broker: Broker) -> Load:
    shape = Shape(PARTITIONS, 1, bench.seconds, bench.warm_up_seconds)
    commands = [pub_command(f"many/{index}", VALUE) for index in range(PARTITIONS)]
    return run_generator(broker.tcp_address[1], commands, shape)
