"""Publishes records of every shape through every door, in several lives of one broker.

Each publish answers the records that it must have stored, in order; the topic has one partition and
one publisher, so that the list of all of them is the log.
"""

import base64
import json
import random
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import aiohttp
from aiokafka.record.default_records import DefaultRecordBatchBuilder, _DefaultRecordBatchBuilderPy

from tests.support.broker import Broker, running_broker

TOPIC = "interop"
RAW = "application/vnd.ibrik.batch"
SEGMENT_BYTES = "256Ki"
LIVES = 3

Headers = list[tuple[str, bytes | None]]


class Published(NamedTuple):
    """What a reader must see; `headers` None where a door adds some of its own."""

    key: bytes | None
    value: bytes | None
    headers: Headers | None


def shapes(rng: random.Random) -> Iterator[Published]:
    """Records that the raw door must keep exactly."""
    yield Published(None, None, [])
    yield Published(b"", b"", [])
    yield Published(b"k", None, [("tombstone", None)])
    yield Published("schlüssel 鍵".encode(), "wert 🗝 \r\n\0".encode(), [("ü 名", "é".encode())])
    yield Published(b"twice", b"v", [("h", b"1"), ("h", b"2"), ("", b""), ("h", None)])
    yield Published(bytes(range(256)), bytes(range(256)) * 3, [("bytes", bytes(range(256)))])
    yield Published(b"many", b"v", [(f"h{n}", bytes([n % 256])) for n in range(300)])
    yield Published(b"big", rng.randbytes(300_000), [])
    for _ in range(200):
        yield Published(
            rng.choice((None, rng.randbytes(rng.randrange(20)))),
            rng.choice((None, rng.randbytes(rng.randrange(2_000)))),
            [(f"h{n}", rng.randbytes(rng.randrange(9))) for n in range(rng.randrange(4))],
        )


async def publish_all(folder: Path, seed: int) -> list[Published]:
    """Fill the topic; each life of the broker is an epoch, and ends by SIGKILL but the last."""
    rng = random.Random(seed)
    published: list[Published] = []
    for life in range(LIVES):
        with running_broker(folder) as broker:
            async with aiohttp.ClientSession(broker.http_url) as session:
                if life == 0:
                    await _create_topic(session)
                published += await _publish_raw(session, list(shapes(rng)), life)
                published += await _publish_json(session)
                published += await _publish_cloudevents(session, life)
                published += _publish_tcp(broker)
            if life == LIVES - 1:
                broker.terminate()
    return published


async def _create_topic(session: aiohttp.ClientSession) -> None:
    spec = {"segment": {"bytes": SEGMENT_BYTES}, "maxMessageBytes": "1Mi"}
    topic = {
        "apiVersion": "ibrik.dev/v1beta1",
        "kind": "Topic",
        "metadata": {"name": TOPIC},
        "spec": spec,
    }
    await _post(session, "/v1/topics", json.dumps(topic).encode(), "application/json")


async def _publish_raw(
    session: aiohttp.ClientSession, records: list[Published], life: int
) -> list[Published]:
    """By aiokafka's builders, the compiled one and the pure one; several batches in a body."""
    builders = (DefaultRecordBatchBuilder, _DefaultRecordBatchBuilderPy)
    body = b""
    for number, first in enumerate(range(0, len(records), 40)):
        builder = builders[(number + life) % 2](2, 0, 0, -1, -1, -1, 1 << 24)
        for delta, record in enumerate(records[first : first + 40]):
            builder.append(delta, 1_000 + delta, record.key, record.value, record.headers or [])
        body += bytes(builder.build())
    await _post(session, f"/v1/topics/{TOPIC}/batch", body, RAW)
    return records


async def _publish_json(session: aiohttp.ClientSession) -> list[Published]:
    value = b'{"amount": 1.10, "name": "M\xc3\xbcller"}'
    binary = bytes(range(256))
    messages = [
        b'{"key_base64": "%s", "value": %s}' % (base64.b64encode(b"json"), value),
        b'{"value_base64": "%s", "headers": {"trace": "1"}}' % base64.b64encode(binary),
    ]
    body = b'{"messages": [%s]}' % b", ".join(messages)
    await _post(session, f"/v1/topics/{TOPIC}/batch", body, "application/json")
    return [Published(b"json", value, None), Published(None, binary, None)]


async def _publish_cloudevents(session: aiohttp.ClientSession, life: int) -> list[Published]:
    value = b"<order/>"
    path = f"/v1/topics/{TOPIC}/messages"
    binary = {
        "ce-specversion": "1.0",
        "ce-id": f"binary-{life}",
        "ce-source": "/shop",
        "ce-type": "order.placed",
        "Ibrik-Key": "%C3%BC",
    }
    await _post(session, path, value, "application/xml", binary)
    event = {
        "specversion": "1.0",
        "id": f"structured-{life}",
        "source": "/shop",
        "type": "order.placed",
        "datacontenttype": "text/plain",
        "data": "wörter",
    }
    await _post(session, path, json.dumps(event).encode(), "application/cloudevents+json")
    return [Published("ü".encode(), value, None), Published(None, "wörter".encode(), None)]


def _publish_tcp(broker: Broker) -> list[Published]:
    values = [b"over tcp %d\r\n" % number for number in range(50)]
    with socket.create_connection(broker.tcp_address, timeout=20) as connection:
        connection.sendall(
            b"".join(b"PUB %s %d\r\n%s" % (TOPIC.encode(), len(v), v) for v in values)
        )
        replies = b""
        while replies.count(b"\r\n") < len(values):
            received = connection.recv(65536)
            assert received, f"closed after {replies!r}"
            replies += received
    assert replies.count(b"OK ") == len(values), replies
    return [Published(None, value, None) for value in values]


async def _post(
    session: aiohttp.ClientSession,
    path: str,
    body: bytes,
    content_type: str,
    headers: dict[str, str] | None = None,
) -> None:
    sent = {"Content-Type": content_type} | (headers or {})
    async with session.post(path, data=body, headers=sent) as answer:
        if answer.status not in (200, 201):
            raise RuntimeError(f"{path}: {answer.status} {await answer.text()}")
