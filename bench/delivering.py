"""Channels and subscriptions of the broker under measurement, made and moved as a person would.

Nothing here is measured; what comes out at the other end is counted by the sink.
"""

import asyncio
import json
import threading
import time
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any

from bench.ibrik import RAW, TIMEOUT_S, batch_url, get_json, post, pub_command, raw_batch
from bench.sink import Taken
from tests.support.broker import Broker

API_VERSION = "ibrik.dev/v1beta1"
JSON = "application/json"
PAGE = 1_000
PAGE_TIMEOUT_S = 300.0
LOOK_SECONDS = 0.02


def resource(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    """As in YAML; in the namespace of what is made over HTTP."""
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}


def create(broker: Broker, kind: str, name: str, **spec: Any) -> None:
    document = json.dumps(resource(kind, name, **spec)).encode()
    post(f"{broker.http_url}/v1/{kind.lower()}s", document, JSON)


def apply(broker: Broker, resources: Sequence[Mapping[str, Any]]) -> None:
    """Make all of them so, page by page, as an operator does."""
    for start in range(0, len(resources), PAGE):
        body = json.dumps({"resources": resources[start : start + PAGE]}).encode()
        request = urllib.request.Request(
            f"{broker.admin_url}/admin/v1/desired", body, {"Content-Type": JSON}, method="PUT"
        )
        with urllib.request.urlopen(request, timeout=PAGE_TIMEOUT_S) as answer:
            results = json.loads(answer.read())["results"]
        refused = [result for result in results if result["result"] != "applied"]
        assert not refused, f"not applied: {refused[0]}"


def pause(broker: Broker, kind: str, name: str) -> None:
    post(f"{broker.http_url}/v1/{kind}/{name}:pause", b"", JSON)


def resume(broker: Broker, kind: str, name: str) -> None:
    post(f"{broker.http_url}/v1/{kind}/{name}:resume", b"", JSON)


def seek_to_start(broker: Broker, name: str) -> None:
    body = json.dumps({"to": {"from": "earliest"}}).encode()
    post(f"{broker.http_url}/v1/subscriptions/{name}:seek", body, JSON)


def wait_until_settled(broker: Broker, name: str) -> None:
    """Return when the subscription has no backlog."""
    waiting = threading.Event()
    deadline = time.monotonic() + TIMEOUT_S
    while lag := get_json(f"{broker.http_url}/v1/subscriptions/{name}/lag")["backlog"]:
        assert time.monotonic() < deadline, f"{name} is still behind by {lag}"
        waiting.wait(LOOK_SECONDS)


def fill(broker: Broker, topic: str, value: bytes, count: int, batch: int = 500) -> None:
    """Publish a backlog."""
    body = raw_batch([value] * batch)
    for _ in range(count // batch):
        post(batch_url(broker, topic), body, RAW)


def publish_steadily(
    broker: Broker, topics: Sequence[str], value: bytes, *, per_second: float, count: int
) -> None:
    """Publish over TCP at a steady rate, to each topic in turn; return when all is flushed."""
    asyncio.run(_publish_steadily(broker, topics, value, per_second, count))


async def _publish_steadily(
    broker: Broker, topics: Sequence[str], value: bytes, per_second: float, count: int
) -> None:
    reader, writer = await asyncio.open_connection(*broker.tcp_address)
    commands = [pub_command(topic, value) for topic in topics]
    begun = time.perf_counter()
    for number in range(count):
        early = begun + number / per_second - time.perf_counter()
        if early > 0:
            await asyncio.sleep(early)
        writer.write(commands[number % len(commands)])
    for _ in range(count):
        reply = await reader.readline()
        assert reply.startswith(b"OK"), reply
    writer.transport.abort()


def assert_timed(seen: Taken) -> None:
    assert seen.timed == seen.taken > 0, f"{seen.timed} of {seen.taken} had a time"
