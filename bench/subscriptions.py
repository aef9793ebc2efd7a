"""What thousands of subscriptions cost that have nothing to deliver, and readers that hear nothing.

100 busy ones deliver beside them. All are registered as an operator does it, in pages of desired
resources; memory is resident memory of the process, before and after.
"""

import re
import resource
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench import delivering
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
from bench.ibrik import broker_with, cpu_seconds, get_text, resident_bytes
from bench.sink import Sink, running_sink
from tests.support.broker import Broker

BUSY, IDLE, HEARD = "busy", "idle", "heard"
BUSY_COUNT = 100
BACKLOG = 100
"""Messages that each busy subscription delivers in one measurement."""
VALUE = b"x" * 1024
IDLE_BYTES_BAR = 2_048
WAKE_UPS_BAR = 1.0
LABELLED_BAR = 2_000
READERS = 1_000
READERS_BAR = 60 * 2**20
SETTLE_SECONDS = 1.0
_SERIES = re.compile(r'^ibrik_subscription_backlog\S*\{.*subscription="([^"]+)"', re.MULTILINE)


def measure(bench: Bench) -> list[Row]:
    count = bench.scaled(10_000, 1_000)
    try:
        with (
            new_folder() as name,
            running_sink() as sink,
            broker_with(Path(name), {BUSY: {}, IDLE: {}}) as broker,
        ):
            _register_busy(broker, sink)
            rows = [*_idle(bench, broker, sink, count), _scrape(broker, count)]
        return [*rows, _readers()]
    except NotMeasured as missing:
        return [unmeasured(_title(count), f"< {IDLE_BYTES_BAR:,} B each", str(missing))]


def _title(count: int) -> str:
    return f"{count:,} idle subscriptions"


def _register_busy(broker: Broker, sink: Sink) -> None:
    delivering.create(
        broker, "Channel", "sink", http={"url": sink.url()}, limits={"concurrency": 64}
    )
    delivering.apply(
        broker, [_subscription(f"{BUSY}-{number}", BUSY) for number in range(BUSY_COUNT)]
    )


def _subscription(name: str, topic: str) -> dict[str, object]:
    return delivering.resource(
        "Subscription", name, topicRef={"name": topic}, channelRef={"name": "sink"}, mode="push"
    )


# --- idle subscriptions ---------------------------------------------------------------------------


def _idle(bench: Bench, broker: Broker, sink: Sink, count: int) -> list[Row]:
    pid = broker.process.pid
    _deliver(broker, sink)  # code and connections that are used for the first time
    alone = bench.median(_deliver(broker, sink) for _ in range(bench.rounds))
    bytes_before, wakes_before = _resting_bytes(pid), _wake_ups(pid, bench.seconds)
    begun = time.monotonic()
    resources = [_subscription(f"{IDLE}-{number}", IDLE) for number in range(count)]
    delivering.apply(broker, resources)
    took = time.monotonic() - begun
    each = (_resting_bytes(pid) - bytes_before) / count
    wakes = _wake_ups(pid, bench.seconds)
    beside = bench.median(_deliver(broker, sink) for _ in range(bench.rounds))
    return [
        Row(
            f"{_title(count)}: resident memory of each",
            f"{each:,.0f} B, registered at {rate(count / took)}",
            values={"bytes": each, "register_seconds": took},
        ).judged(f"< {IDLE_BYTES_BAR:,} B", each < IDLE_BYTES_BAR),
        Row(
            f"{_title(count)}: wake-ups of the idle process",
            f"{wakes:.1f}/s",
            f"without them {wakes_before:.1f}/s",
            values={"per_second": wakes, "before_per_second": wakes_before},
        ).judged(f"≤ {WAKE_UPS_BAR:.0f}/s more", wakes <= wakes_before + WAKE_UPS_BAR),
        Row(
            f"{BUSY_COUNT} busy subscriptions beside {_title(count)}",
            f"{rate(beside)} delivered",
            f"without them {rate(alone)}",
            times(beside / alone),
            values={"rate": beside, "alone_rate": alone},
        ),
    ]


def _deliver(broker: Broker, sink: Sink) -> float:
    """Deliveries a second when all busy subscriptions have news."""
    sink.reset()
    begun = time.monotonic()
    delivering.fill(broker, BUSY, VALUE, BACKLOG, batch=BACKLOG)
    count = BACKLOG * BUSY_COUNT
    return count / (sink.wait_for(count).last_s - begun)


def _resting_bytes(pid: int) -> int:
    """Resident memory when what was just done has ended."""
    threading.Event().wait(SETTLE_SECONDS)
    return resident_bytes(pid)


def _wake_ups(pid: int, seconds: float) -> float:
    """How often a second the event loop gave the CPU back and was woken again."""
    before = _switches(pid)
    threading.Event().wait(seconds)
    return (_switches(pid) - before) / seconds


def _switches(pid: int) -> int:
    """Voluntary context switches of the main thread so far."""
    status = Path(f"/proc/{pid}/task/{pid}/status").read_text()
    found = re.search(r"^voluntary_ctxt_switches:\s+(\d+)", status, re.MULTILINE)
    assert found is not None, status
    return int(found.group(1))


# --- a scrape -------------------------------------------------------------------------------------


def _scrape(broker: Broker, count: int) -> Row:
    url = f"{broker.admin_url}/metrics"
    cpu = cpu_seconds(broker.process.pid)
    text = get_text(url)
    took_ms = (cpu_seconds(broker.process.pid) - cpu) * 1_000
    labelled = set(_SERIES.findall(text)) - {"other"}
    return Row(
        f"a scrape with {count + BUSY_COUNT:,} subscriptions",
        f"{len(labelled):,} of them and `other`, {len(text) / 1e6:.2f} MB, "
        f"{milliseconds(took_ms)} of CPU",
        values={"labelled": len(labelled), "bytes": len(text), "cpu_ms": took_ms},
    ).judged(f"≤ {LABELLED_BAR:,} labelled", 0 < len(labelled) <= LABELLED_BAR)


# --- idle readers ---------------------------------------------------------------------------------


def _readers() -> Row:
    """On a broker of their own: in one that gave memory back there is room for them already."""
    wish = {"topicRef": {"name": HEARD}, "mode": "stream", "type": "shared"}
    with new_folder() as name, broker_with(Path(name), {HEARD: {}}) as broker:
        delivering.create(broker, "Subscription", HEARD, **wish)
        with _streams(broker, 10):
            before = _resting_bytes(broker.process.pid)
        with _streams(broker, READERS):
            growth = _resting_bytes(broker.process.pid) - before
    return Row(
        f"{READERS:,} idle readers of a subscription's stream",
        f"{growth / 2**20:.1f} MiB",
        values={"bytes": growth},
    ).judged(f"< {READERS_BAR / 2**20:.0f} MiB", growth < READERS_BAR)


@contextmanager
def _streams(broker: Broker, count: int) -> Iterator[None]:
    """So many readers, each let in."""
    _allow_files(count * 2 + 100)
    host, _, port = broker.http_url.removeprefix("http://").partition(":")
    request = f"GET /v1/subscriptions/{HEARD}/stream HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
    with ExitStack() as opened:
        for _ in range(count):
            stream = opened.enter_context(socket.create_connection((host, int(port))))
            stream.sendall(request)
            received = b""
            while b"\r\n\r\n" not in received:
                received += stream.recv(4_096)
            assert received.startswith(b"HTTP/1.1 200"), received
        yield


def _allow_files(count: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(count, hard), hard))
