"""Pull over HTTP: several consumers lease 100 messages at a time and acknowledge them."""

import asyncio
import re
import time
from dataclasses import dataclass
from pathlib import Path

from bench import delivering
from bench.framework import Bench, Row, milliseconds, new_folder
from bench.ibrik import broker_with, cpu_seconds
from tests.support.broker import Broker

TOPIC = "pull"
NAME = "pulled"
VALUE = b'"' + b"x" * 98 + b'"'  # JSON, so that it needs no base64
CONSUMERS = 8
LEASES = 100
RATE_BAR = 20_000
READ_LIMIT = 2**20
_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")
_LEASE = re.compile(rb'"lease":"([^"]+)"')


def measure(bench: Bench) -> list[Row]:
    with new_folder() as name, broker_with(Path(name), {TOPIC: {}}) as broker:
        wish = {"topicRef": {"name": TOPIC}, "mode": "pull", "type": "shared"}
        delivering.create(broker, "Subscription", NAME, **wish)
        delivering.fill(broker, TOPIC, VALUE, bench.scaled(400_000, 100_000), batch=5_000)
        pull(broker, bench.warm_up_seconds)
        pulls = [pull(broker, bench.seconds) for _ in range(bench.rounds)]
    found = bench.median(each.rate for each in pulls)
    p99 = bench.median(each.p99_ms for each in pulls)
    us = bench.median(each.cpu_us for each in pulls)
    return [
        Row(
            f"pull of 100 B over HTTP, {CONSUMERS} consumers, leases of {LEASES}, acknowledged",
            f"{found:,.0f} messages/s, {us:.0f} us of CPU each, lease and ack p99 "
            f"{milliseconds(p99)}",
            values={"rate": found, "p99_ms": p99, "cpu_us": us},
        ).judged(f"≥ {RATE_BAR:,} messages/s", found >= RATE_BAR)
    ]


@dataclass(frozen=True, slots=True)
class Pull:
    rate: float
    """Messages whose acknowledgement was answered, a second."""
    p99_ms: float
    """Of a lease with its acknowledgement."""
    cpu_us: float
    """Of the broker, a message."""


def pull(broker: Broker, seconds: float) -> Pull:
    """Pull from the beginning, until the time is over or nothing is left."""
    delivering.seek_to_start(broker, NAME)
    cpu = cpu_seconds(broker.process.pid)
    begun = time.perf_counter()
    taken, took = asyncio.run(_pull(broker, begun + seconds))
    elapsed = time.perf_counter() - begun
    cpu = cpu_seconds(broker.process.pid) - cpu
    p99_s = sorted(took)[int(len(took) * 0.99)]
    return Pull(taken / elapsed, p99_s * 1_000, cpu / taken * 1e6)


async def _pull(broker: Broker, end: float) -> tuple[int, list[float]]:
    took: list[float] = []
    async with asyncio.TaskGroup() as group:
        consumers = [group.create_task(_consume(broker, end, took)) for _ in range(CONSUMERS)]
    return sum(consumer.result() for consumer in consumers), took


async def _consume(broker: Broker, end: float, took: list[float]) -> int:
    """Messages that were acknowledged."""
    host, _, port = broker.http_url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=READ_LIMIT)
    lease = _request("lease", b'{"max":%d}' % LEASES)
    count = 0
    while (begun := time.perf_counter()) < end:
        writer.write(lease)
        leased = _LEASE.findall(await _answer(reader))
        if not leased:
            break
        writer.write(_request("ack", b'{"leases":["%s"]}' % b'","'.join(leased)))
        answer = await _answer(reader)
        assert answer == b'{"acked":%d,"stale":[]}' % len(leased), answer
        took.append(time.perf_counter() - begun)
        count += len(leased)
    writer.transport.abort()
    return count


def _request(verb: str, body: bytes) -> bytes:
    head = (
        f"POST /v1/subscriptions/{NAME}:{verb} HTTP/1.1\r\nHost: localhost\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def _answer(reader: asyncio.StreamReader) -> bytes:
    """The body of an answer; empty for 204."""
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith((b"HTTP/1.1 200", b"HTTP/1.1 204")), head
    length = _LENGTH.search(head)
    return b"" if length is None else await reader.readexactly(int(length.group(1)))
