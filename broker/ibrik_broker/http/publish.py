"""POST /v1/topics/{topic}/messages: one message, its body as it is. The hot path of this door.

The head is walked once, the body is read once, the answer is put together as bytes (`receipt.py`).
What the head alone can refuse is refused before a byte of the body is read, and before
`100 Continue` is sent.
"""

import re
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from aiohttp import web

from ibrik_api.errors import Refusal
from ibrik_broker.http.bodies import read_at_once
from ibrik_broker.http.cloudevents import binary_attributes, parse_event, record_headers
from ibrik_broker.http.door import Door
from ibrik_broker.http.envelopes import message_of
from ibrik_broker.http.operations import CLOUDEVENT
from ibrik_broker.http.receipt import HttpClock, answer
from ibrik_broker.partitions.deduplication import ID_HEADER
from ibrik_broker.partitions.messages import Acks, Message, Record
from ibrik_broker.partitions.topic import Topic

MAX_ID_BYTES = 1024
_TRACEPARENT = re.compile(rb"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
_TRACESTATE = re.compile(rb"[\x20-\x7e]{1,512}")
_META_NAME = re.compile(rb"[a-z0-9][a-z0-9._-]{0,63}")
_RESERVED_META = (b"ce_", b"ibrik-", b"content-type", b"traceparent", b"tracestate")
_STRUCTURED = CLOUDEVENT.encode()
_SINGLE = frozenset(
    (
        b"content-type",
        b"ibrik-key",
        b"ibrik-partition",
        b"idempotency-key",
        b"traceparent",
        b"tracestate",
    )
)


class Head(NamedTuple):
    """What the headers of a publish request say."""

    key: bytes | None
    partition: int | None
    identity: bytes | None
    headers: list[tuple[str, bytes | None]]
    attributes: dict[str, bytes]
    is_structured: bool


class Publish:
    def __init__(self, door: Door) -> None:
        self._door = door
        self._clock = HttpClock()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        door = self._door
        try:
            topic, publisher = door.admit(request)
        except Refusal as refusal:
            topic, publisher = await door.create_on_first_use(request, refusal)
        acks = parse_acks(request)
        head = parse_head(request.raw_headers)
        claim = door.gate.claim()
        try:
            body = read_at_once(request, claim)
            if body is None:
                limit_bytes = self._limit(request, topic, head)
                body = await door.bodies.read(request, limit_bytes, claim)
            message = _structured(head, body) if head.is_structured else _plain(head, body)
            if publisher is not None:
                message = message_of(publisher, message)
            receipts = await door.patience.wait(door.engine.publish(topic, (message,), acks))
        finally:
            claim.release()
        return answer(request, topic, message, receipts[0], self._clock)

    async def expect(self, request: web.Request) -> web.StreamResponse | None:
        """`Expect: 100-continue`: refuse now, or ask for the body."""
        return await self._door.expect(request, self._admit)

    def _admit(self, request: web.Request) -> None:
        """All that can be refused without the body."""
        topic = self._door.admit(request).topic
        parse_acks(request)
        self._limit(request, topic, parse_head(request.raw_headers))

    def _limit(self, request: web.Request, topic: Topic, head: Head) -> int:
        """The most bytes that the body may have. A structured event is larger than its message."""
        if head.is_structured:
            return self._door.limits.body_bytes
        limit_bytes = topic.spec.max_message_bytes
        if (request.content_length or 0) > limit_bytes:
            raise Refusal(
                "message-too-large",
                f"{topic.name} takes messages of at most {limit_bytes} bytes; this one has"
                f" {request.content_length}.",
                limit_bytes=limit_bytes,
            )
        return limit_bytes


def parse_acks(request: web.Request) -> Acks:
    if "?" not in request.raw_path:
        return Acks.DURABLE
    text = request.rel_url.query.get("acks", "durable")
    if text not in ("durable", "none"):
        raise Refusal("invalid-request", f"acks={text[:40]!r}: write durable or none.")
    return Acks(text)


def parse_head(raw_headers: tuple[tuple[bytes, bytes], ...]) -> Head:
    """Walk the headers once. Raises Refusal for what is not as documented."""
    found: dict[bytes, bytes] = {}
    meta: list[tuple[str, bytes | None]] = []
    events: list[tuple[bytes, bytes]] = []
    for raw_name, value in raw_headers:
        name = raw_name.lower()
        if name in _SINGLE:
            if name in found:
                raise Refusal("invalid-request", f"The header {name.decode()} is given twice.")
            found[name] = value
        elif name.startswith(b"ce-"):
            events.append((name, value))
        elif name.startswith(b"ibrik-"):
            meta.append(_meta(name, value))
    attributes = binary_attributes(events) if events else {}
    headers = _own_headers(found)
    if attributes:
        headers += record_headers(attributes)
    if meta:
        headers += _distinct(meta)
    key = found.get(b"ibrik-key")
    if key is None:
        key = attributes.get("partitionkey")
    elif b"%" in key:
        key = unquote_to_bytes(key)
    partition = found.get(b"ibrik-partition")
    return Head(
        key,
        None if partition is None else parse_partition(partition),
        found.get(b"idempotency-key"),
        headers,
        attributes,
        found.get(b"content-type", b"").lower().startswith(_STRUCTURED),
    )


def _own_headers(found: dict[bytes, bytes]) -> list[tuple[str, bytes | None]]:
    """Record headers for the HTTP headers that travel with the message."""
    headers: list[tuple[str, bytes | None]] = []
    content_type = found.get(b"content-type")
    if content_type is not None:
        headers.append(("content-type", content_type))
    identity = found.get(b"idempotency-key")
    if identity is not None:
        if not 0 < len(identity) <= MAX_ID_BYTES:
            raise Refusal("invalid-request", f"Idempotency-Key has 1 to {MAX_ID_BYTES} bytes.")
        headers.append((ID_HEADER, identity))
    traceparent = found.get(b"traceparent")
    if traceparent is not None and _TRACEPARENT.fullmatch(traceparent):
        # A malformed one is ignored, as W3C Trace Context asks for.
        headers.append(("traceparent", traceparent))
        tracestate = found.get(b"tracestate")
        if tracestate is not None and _TRACESTATE.fullmatch(tracestate):
            headers.append(("tracestate", tracestate))
    return headers


def _meta(name: bytes, value: bytes) -> tuple[str, bytes]:
    """`Ibrik-Meta-<name>` as a record header; any other Ibrik- header is a typing error."""
    own = name.removeprefix(b"ibrik-meta-")
    if own == name:
        raise Refusal(
            "invalid-request",
            f"There is no header {name.decode('latin-1')[:60]!r} here. Known: Ibrik-Key,"
            " Ibrik-Partition, Ibrik-Meta-<name>.",
        )
    if not _META_NAME.fullmatch(own) or own.startswith(_RESERVED_META):
        raise Refusal(
            "invalid-request",
            f"{name.decode('latin-1')[:80]!r}: the name after Ibrik-Meta- has a-z 0-9 . _ -, at"
            " most 64 of them, and does not begin with ce_, ibrik-, content-type or trace….",
        )
    return own.decode(), unquote_to_bytes(value) if b"%" in value else value


def _distinct(meta: list[tuple[str, bytes | None]]) -> list[tuple[str, bytes | None]]:
    if len({name for name, _ in meta}) < len(meta):
        raise Refusal("invalid-request", "An Ibrik-Meta- header is given twice.")
    return meta


def parse_partition(text: bytes) -> int:
    if not text.isdigit() or len(text) > 4:
        raise Refusal("invalid-request", "A partition is a whole number from 0.")
    return int(text)


def _plain(head: Head, body: bytes) -> Message:
    record = Record(head.key, body, head.headers)
    if not head.attributes:
        return Message(record, head.partition, head.identity)
    identity = head.identity or head.attributes["id"]
    return Message(record, head.partition, identity, head.attributes["source"])


def _structured(head: Head, body: bytes) -> Message:
    """A structured CloudEvent; headers of the request go before what the event says."""
    if head.attributes:
        raise Refusal("invalid-cloudevent", "It is written both in the body and in ce- headers.")
    event = parse_event(body)
    own = [header for header in head.headers if header[0] != "content-type"]
    record = Record(
        event.record.key if head.key is None else head.key,
        event.record.value,
        event.record.headers + own,
    )
    return Message(record, head.partition, head.identity or event.id, event.source)
