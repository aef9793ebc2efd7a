"""Reading what is in memory: raw batches by offset, and 100 live readers at the tail."""

import asyncio
import time
from pathlib import Path

from bench.framework import Bench, NotMeasured, Row, new_folder, unmeasured
from bench.ibrik import RAW, batch_url, broker_with, cpu_seconds, post, raw_batch
from bench.load import Shape, run_wrk
from tests.support.broker import Broker

TOPIC = "reads"
FILL_BYTES = 16 * 2**20
READ_BYTES = 2**20
RAW_BAR = 400 * 10**6
READERS = 100
EXTRA_READER_BAR = 0.2
LIVE_NAME = f"{READERS} live readers at the tail: CPU of one more reader"


def measure(bench: Bench) -> list[Row]:
    with new_folder() as name, broker_with(Path(name), {TOPIC: {}, "live": {}}) as broker:
        return [_cached_raw(bench, broker), _live(bench, broker)]


def _cached_raw(bench: Bench, broker: Broker) -> Row:
    name = "reading cached batches as raw, 1 MiB a request"
    body = raw_batch([b"x" * 1000] * 256)
    for _ in range(FILL_BYTES // len(body)):
        post(batch_url(broker, TOPIC), body, RAW)
    url = (
        f"{broker.http_url}/v1/topics/{TOPIC}/partitions/0/messages?offset=0&max_bytes={READ_BYTES}"
    )
    shape = Shape(4, 1, bench.seconds, bench.warm_up_seconds)
    try:
        loads = [run_wrk(url, shape, headers={"Accept": RAW}) for _ in range(bench.rounds)]
    except NotMeasured as missing:
        return unmeasured(name, "≥ 400 MB/s", str(missing))
    speed = bench.median(load.bytes_per_second for load in loads)
    row = Row(name, f"{speed / 1e6:,.0f} MB/s", values={"bytes_per_second": speed})
    return row.judged(f"≥ {RAW_BAR / 1e6:.0f} MB/s", speed >= RAW_BAR)


def _live(bench: Bench, broker: Broker) -> Row:
    """The broker's CPU time for the same messages without a reader, with one, and with 100."""
    batches = bench.scaled(300, 60)
    without = _publishing_cpu(broker, 0, batches)
    one = _publishing_cpu(broker, 1, batches) - without
    all_readers = _publishing_cpu(broker, READERS, batches) - without
    extra = (all_readers - one) / (READERS - 1)
    share = extra / one if one > 0 else float("nan")
    messages = batches * 100
    return Row(
        LIVE_NAME,
        f"{extra / messages * 1e6:.2f} us a message",
        f"first reader {one / messages * 1e6:.2f} us",
        f"{share:.0%}",
        values={"first_reader_s": one, "extra_reader_s": extra},
    ).judged(f"< {EXTRA_READER_BAR:.0%}", share < EXTRA_READER_BAR)


def _publishing_cpu(broker: Broker, readers: int, batches: int) -> float:
    begun = cpu_seconds(broker.process.pid)
    asyncio.run(_publish_to_readers(broker, readers, batches))
    return cpu_seconds(broker.process.pid) - begun


async def _publish_to_readers(broker: Broker, readers: int, batches: int) -> None:
    """Ends when every reader has seen the last message of this call."""
    mark = f"mark-{time.monotonic_ns()}".encode()
    host, port = broker.http_url.removeprefix("http://").split(":")
    streams = [await asyncio.open_connection(host, int(port)) for _ in range(readers)]
    request = (
        f"GET /v1/topics/live/stream HTTP/1.1\r\nHost: {host}\r\nAccept: text/event-stream\r\n\r\n"
    )
    for reader, writer in streams:
        writer.write(request.encode())
        await reader.readuntil(b"\r\n\r\n")
    values = [b'{"order": 1, "text": "%s"}' % (b"x" * 80)] * 99
    for number in range(batches):
        last = mark if number == batches - 1 else values[0]
        body = raw_batch([*values, b'"%s"' % last])
        await asyncio.to_thread(post, batch_url(broker, "live"), body, RAW)
    await asyncio.gather(*(_read_until(reader, mark) for reader, _ in streams))
    for _, writer in streams:
        writer.transport.abort()


async def _read_until(reader: asyncio.StreamReader, mark: bytes) -> None:
    tail = b""
    while mark not in tail:
        received = await asyncio.wait_for(reader.read(1 << 18), 60)
        assert received, "the stream ended"
        tail = tail[-len(mark) :] + received
