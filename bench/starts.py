"""How long a start takes: with 1,000 segments after a clean stop, and with 256 MB unchecked."""

import time
from pathlib import Path

from bench.framework import Bench, Row, new_folder
from bench.ibrik import RAW, batch_url, broker_with, post, raw_batch
from tests.support.broker import running_broker

SEGMENTS = 1_000
UNCHECKED_MB = 256
BAR_S = 2.0


def measure(bench: Bench) -> list[Row]:
    return [_clean(bench), _unclean(bench)]


def _clean(bench: Bench) -> Row:
    """Small segments cost a start as much as large ones: it must not read what they hold."""
    body = raw_batch([b"x" * 4000] * 5)
    with new_folder() as name:
        folder = Path(name)
        with broker_with(folder, {"segments": {"segment": {"bytes": "16Ki"}}}) as broker:
            for _ in range(SEGMENTS):
                post(batch_url(broker, "segments"), body, RAW)
            broker.terminate()
        count = len(list((folder / "data").rglob("*.log")))
        assert count >= SEGMENTS - 1, f"{count} segments"
        took = bench.median(_time_start(folder, is_clean=True) for _ in range(bench.rounds))
        empty = bench.median(
            _time_start(folder / "empty", is_clean=True) for _ in range(bench.rounds)
        )
    return Row(
        f"clean start with {count:,} segments",
        f"{took:.2f} s",
        f"empty folder {empty:.2f} s",
        values={"seconds": took, "empty_seconds": empty},
    ).judged(f"< {BAR_S:.0f} s", took < BAR_S)


def _unclean(bench: Bench) -> Row:
    """Small records are the slow case of a scan: 100 B each, 1,000 in a batch."""
    body = raw_batch([b"x" * 100] * 1000) * 10
    took = []
    for _ in range(bench.rounds):
        with new_folder() as name:
            folder = Path(name)
            with broker_with(folder, {"unclean": {"segment": {"bytes": "512Mi"}}}) as broker:
                for _ in range(UNCHECKED_MB * 10**6 // len(body)):
                    post(batch_url(broker, "unclean"), body, RAW)
                broker.kill()
            took.append(_time_start(folder, is_clean=False))
    seconds = bench.median(took)
    return Row(
        f"unclean start, {UNCHECKED_MB} MB unchecked",
        f"{seconds:.2f} s",
        values={"seconds": seconds},
    ).judged(f"< {BAR_S:.0f} s", seconds < BAR_S)


def _time_start(folder: Path, *, is_clean: bool) -> float:
    """From the start of the process to the line that says it takes connections."""
    begun = time.perf_counter()
    with running_broker(folder) as broker:
        took = time.perf_counter() - begun
        if is_clean:
            broker.terminate()
    return took
