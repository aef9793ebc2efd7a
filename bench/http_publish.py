"""Publishing over HTTP: latency of one request, single posts under load, batches of 100."""

import base64
import json
from functools import partial
from pathlib import Path

from bench import peers
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
from bench.ibrik import RAW, batch_url, broker_with, messages_url, raw_batch
from bench.load import Shape, run_wrk
from tests.support.broker import Broker

TOPIC = "http"
BODY = b"x" * 1024
BATCH = 100
CONNECTIONS = 32
BATCH_CONNECTIONS = 16
RATE_BAR = 8_000
BARE_BAR = 0.5
GROUP_BAR = 5.0


def measure(bench: Bench) -> list[Row]:
    try:
        with (
            new_folder() as name,
            broker_with(Path(name, "ibrik"), {TOPIC: {}}) as broker,
            peers.bare_handler() as bare_port,
        ):
            bare_url = f"http://127.0.0.1:{bare_port}/v1/topics/{TOPIC}/messages"
            rows = _single(bench, messages_url(broker, TOPIC), bare_url, Path(name))
            return rows + _batches(bench, broker)
    except NotMeasured as missing:
        return [unmeasured("HTTP publish", f"≥ {RATE_BAR:,}/s", str(missing))]


def _single(bench: Bench, url: str, bare_url: str, folder: Path) -> list[Row]:
    one = Shape(1, 1, bench.seconds, bench.warm_up_seconds)
    many = Shape(CONNECTIONS, 1, bench.seconds, bench.warm_up_seconds)
    post = partial(run_wrk, method="POST", body=BODY)
    loads = [
        (
            post(url, one),
            post(bare_url, one),
            peers.probe_disk(folder),
            post(url, many),
            post(bare_url, many),
        )
        for _ in range(bench.rounds)
    ]
    ours_p50 = bench.median(each[0].p50_ms for each in loads)
    bare_p50 = bench.median(each[1].p50_ms for each in loads)
    probe = bench.median(each[2] for each in loads)
    ours_one = bench.median(each[0].rate for each in loads)
    ours_many = bench.median(each[3].rate for each in loads)
    bare_many = bench.median(each[4].rate for each in loads)
    p99 = bench.median(each[3].p99_ms for each in loads)
    allowed = bare_p50 + 2 * probe
    return [
        Row(
            "HTTP POST 1 KiB, one in flight, flushed, p50",
            milliseconds(ours_p50),
            f"bare handler {milliseconds(bare_p50)} + 2 x probe {milliseconds(probe)}",
            times(ours_p50 / allowed),
            f"≤ {milliseconds(allowed)}",
            judge(ours_p50 <= allowed),
            {"p50_ms": ours_p50, "bare_p50_ms": bare_p50, "probe_ms": probe},
        ),
        Row(
            f"HTTP POST 1 KiB, {CONNECTIONS} connections, flushed",
            f"{rate(ours_many)}, p99 {milliseconds(p99)}",
            f"bare handler {rate(bare_many)}",
            times(ours_many / bare_many),
            f"≥ {RATE_BAR:,}/s, ≥ {BARE_BAR}x",
            judge(ours_many >= RATE_BAR and ours_many >= BARE_BAR * bare_many),
            {"rate": ours_many, "bare_rate": bare_many, "p99_ms": p99},
        ),
        Row(
            f"group commit over HTTP: {CONNECTIONS} producers, one in flight",
            rate(ours_many),
            f"one producer {rate(ours_one)}",
            times(ours_many / ours_one),
            f"≥ {GROUP_BAR:.0f}x",
            judge(ours_many >= GROUP_BAR * ours_one),
            {"rate": ours_many, "one_rate": ours_one},
        ),
    ]


def _batches(bench: Bench, broker: Broker) -> list[Row]:
    values = [b"x" * 100] * BATCH
    texts = [{"value": "x" * 98} for _ in range(BATCH)]  # stored with its quotes: 100 B
    forms = [
        ("raw", RAW, raw_batch(values), 200_000),
        ("JSON", "application/json", json.dumps({"messages": texts}).encode(), 80_000),
        (
            "NDJSON",
            "application/x-ndjson",
            b"\n".join(json.dumps(text).encode() for text in texts),
            80_000,
        ),
        (
            "JSON, base64 values",
            "application/json",
            json.dumps(
                {"messages": [{"value_base64": base64.b64encode(v).decode()} for v in values]}
            ).encode(),
            None,
        ),
    ]
    return [_batch_row(bench, broker, *form) for form in forms]


def _batch_row(
    bench: Bench, broker: Broker, form: str, content_type: str, body: bytes, bar: int | None
) -> Row:
    shape = Shape(BATCH_CONNECTIONS, 1, bench.seconds, bench.warm_up_seconds)
    loads = [
        run_wrk(
            batch_url(broker, TOPIC),
            shape,
            method="POST",
            body=body,
            headers={"Content-Type": content_type},
        )
        for _ in range(bench.rounds)
    ]
    records = bench.median(load.rate for load in loads) * BATCH
    p99 = bench.median(load.p99_ms for load in loads)
    row = Row(
        f"HTTP batch {form}, {BATCH} x 100 B, flushed",
        f"{records:,.0f} records/s, p99 {milliseconds(p99)}",
        values={"records_per_second": records},
    )
    return row if bar is None else row.judged(f"≥ {bar:,} records/s", records >= bar)
