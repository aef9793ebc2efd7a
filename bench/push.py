"""Push over HTTP: how fast a backlog goes out, beside the bare HTTP client; how late news arrive.

The receiver answers at once. A backlog is published beforehand; the time runs from the request that
resumes the subscription to the last answer.
"""

import asyncio
import base64
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import asyncpg

from bench import delivering, peers
from bench.framework import (
    Bench,
    NotMeasured,
    Row,
    milliseconds,
    new_folder,
    rate,
    times,
    unmeasured,
)
from bench.ibrik import broker_with, cpu_seconds
from bench.sink import Sink, running_sink
from tests.support.broker import Broker
from tests.support.postgres import running_postgres

TOPIC = "push"
NEWS = "news"
VALUE = b"x" * 1024
CONCURRENCY = 64
SECRET_NAME = "IBRIK_SECRET_BENCH"
SECRET = "whsec_" + base64.b64encode(b"k" * 32).decode()
PLAIN, SIGNED = "plain", "signed"
NAME = f"push of 1 KiB to a local sink, {CONCURRENCY} at once"
RATE_BAR = 3_000
BARE_BAR = 0.3
NEWS_RATE = 500
P50_BAR_MS = 5.0
P99_BAR_MS = 30.0
BAR = f"≥ {RATE_BAR:,}/s, ≥ {BARE_BAR}x"


def measure(bench: Bench) -> list[Row]:
    try:
        with new_folder() as name, running_sink() as sink:
            folder = Path(name)
            with _broker(bench, folder / "sqlite", sink) as broker:
                rows = _against_bare(bench, broker, sink, folder)
                return [*rows, _news(bench, broker, sink, folder)]
    except NotMeasured as missing:
        return [unmeasured(NAME, BAR, str(missing))]


@contextmanager
def _broker(bench: Bench, folder: Path, sink: Sink, **settings: str) -> Iterator[Broker]:
    """A broker with a backlog, and two paused subscriptions that push it to the sink."""
    settings[SECRET_NAME] = SECRET
    with broker_with(folder, {TOPIC: {}, NEWS: {}}, **settings) as broker:
        for name, more in ((PLAIN, {}), (SIGNED, {"signing": {"secretRef": {"env": SECRET_NAME}}})):
            channel = {"http": {"url": sink.url()}, "limits": {"concurrency": CONCURRENCY}} | more
            delivering.create(broker, "Channel", name, **channel)
            wish = {"topicRef": {"name": TOPIC}, "channelRef": {"name": name}, "mode": "push"}
            delivering.create(broker, "Subscription", name, **wish)
            delivering.pause(broker, "subscriptions", name)
        delivering.fill(broker, TOPIC, VALUE, _backlog(bench))
        yield broker


def _backlog(bench: Bench) -> int:
    return bench.scaled(12_000, 2_000)


# --- how fast -------------------------------------------------------------------------------------


def _against_bare(bench: Bench, broker: Broker, sink: Sink, folder: Path) -> list[Row]:
    count = _backlog(bench)
    costs: list[float] = []

    def ours(server: Broker, name: str) -> float:
        begun = cpu_seconds(server.process.pid)
        found = drain(server, sink, name, count)
        costs.append((cpu_seconds(server.process.pid) - begun) / count * 1e6)
        return found

    with _flushing_postgres() as database:
        settings = {"IBRIK_METADATA__URL": database}
        with _broker(bench, folder / "postgres", sink, **settings) as on_postgres:
            drain(broker, sink, PLAIN, count)  # connections, and code that runs for the first time
            drain(on_postgres, sink, PLAIN, count)
            plain, bare, signed, postgres = bench.alternate(
                partial(ours, broker, PLAIN),
                partial(_bare, sink, count),
                partial(ours, broker, SIGNED),
                partial(ours, on_postgres, PLAIN),
            )
    us = bench.median(costs[::3])
    peer = f"aiohttp alone {rate(bare)}"
    return [
        Row(
            f"{NAME}, SQLite",
            f"{rate(plain)}, {us:.0f} us of CPU each",
            peer,
            times(plain / bare),
            values={"rate": plain, "bare_rate": bare, "cpu_us": us},
        ).judged(BAR, plain >= RATE_BAR and plain >= BARE_BAR * bare),
        Row(f"{NAME}, SQLite, signed", rate(signed), peer, times(signed / bare)),
        Row(f"{NAME}, Postgres", rate(postgres), peer, times(postgres / bare)),
    ]


def drain(broker: Broker, sink: Sink, name: str, count: int) -> float:
    """Push the backlog of a paused subscription; messages a second."""
    delivering.seek_to_start(broker, name)
    sink.reset()
    begun = time.monotonic()
    delivering.resume(broker, "subscriptions", name)
    seen = sink.wait_for(count)
    delivering.wait_until_settled(broker, name)
    delivering.pause(broker, "subscriptions", name)
    assert sink.look().taken == count, "each message once: nothing failed"
    return count / (seen.last_s - begun)


def _bare(sink: Sink, count: int) -> float:
    command = [sys.executable, "-m", "bench.bare_client", sink.url(), str(CONCURRENCY), str(count)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout)


@contextmanager
def _flushing_postgres() -> Iterator[str]:
    """A database on a server that flushes, as that of tests does not."""
    with running_postgres() as server:
        url = server.new_database()
        asyncio.run(_flush(url))
        yield url


async def _flush(url: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("ALTER SYSTEM SET fsync = on")
        await connection.execute("SELECT pg_reload_conf()")
    finally:
        await connection.close()


# --- how late -------------------------------------------------------------------------------------


def _news(bench: Bench, broker: Broker, sink: Sink, folder: Path) -> Row:
    """Two flushes lie on the way: that of the log, and that of the claim."""
    wish = {"topicRef": {"name": NEWS}, "channelRef": {"name": PLAIN}, "mode": "push"}
    delivering.create(broker, "Subscription", NEWS, **wish)
    _steadily(broker, sink, round(NEWS_RATE * bench.warm_up_seconds))
    count = round(NEWS_RATE * bench.seconds)
    seen = [
        (*_steadily(broker, sink, count), peers.probe_disk(folder)) for _ in range(bench.rounds)
    ]
    p50, p99, probe = (bench.median(each[index] for each in seen) for index in range(3))
    return Row(
        f"append to the sink's 204, {NEWS_RATE}/s published",
        f"p50 {milliseconds(p50)}, p99 {milliseconds(p99)}",
        f"2 x probe {milliseconds(2 * probe)}",
        values={"p50_ms": p50, "p99_ms": p99, "probe_ms": probe},
    ).judged(
        f"p50 ≤ {P50_BAR_MS:.0f} ms, p99 ≤ {P99_BAR_MS:.0f} ms",
        p50 <= P50_BAR_MS and p99 <= P99_BAR_MS,
    )


def _steadily(broker: Broker, sink: Sink, count: int) -> tuple[float, float]:
    """Median and p99, from the append time in `ce-time` to the arrival at the sink."""
    sink.reset()
    delivering.publish_steadily(broker, [NEWS], VALUE, per_second=NEWS_RATE, count=count)
    seen = sink.wait_for(count)
    delivering.assert_timed(seen)
    return seen.p50_ms, seen.p99_ms
