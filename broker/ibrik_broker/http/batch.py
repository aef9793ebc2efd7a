"""POST /v1/topics/{topic}/batch: many messages in one request, in four forms.

Atomic by default: all is validated before the first append, and a refusal names every message that
is wrong. With `?partial=true` every message has its own result, and NDJSON is published window by
window while it arrives, so that its size is not bounded by memory.
"""

import asyncio
from collections.abc import Callable, Sequence

from aiohttp import web

from ibrik_api.errors import Refusal
from ibrik_broker.http.bodies import Claim, Deadline
from ibrik_broker.http.cloudevents import parse_events
from ibrik_broker.http.door import Admitted, Door
from ibrik_broker.http.envelopes import decode_batch, decode_lines, message_of
from ibrik_broker.http.operations import CLOUDEVENTS_BATCH, JSON, NDJSON, RAW_BATCH
from ibrik_broker.http.publish import parse_acks, parse_partition
from ibrik_broker.http.results import (
    BatchResults,
    Decoded,
    raw_answer,
    refuse_invalid,
)
from ibrik_broker.partitions.messages import Acks, Message, Receipt
from ibrik_broker.partitions.topic import Topic
from ibrik_log.batch import read_header, split

WINDOW_BYTES = 1 * 2**20
"""How much NDJSON is decoded and published at a time when results may be partial."""
MAX_MESSAGES = 100_000
"""Messages in one request: bounds the objects, as `limits.body_bytes` bounds the bytes."""


def _decode_lines(body: bytes) -> list[Message | Refusal]:
    if body.count(b"\n") > MAX_MESSAGES:  # before a second is spent on decoding them
        raise _too_many()
    return decode_lines(body)


DECODERS: dict[str, Callable[[bytes], list[Message | Refusal]]] = {
    JSON: decode_batch,
    NDJSON: _decode_lines,
    CLOUDEVENTS_BATCH: parse_events,
}


class PublishBatch:
    def __init__(self, door: Door) -> None:
        self._door = door

    async def handle(self, request: web.Request) -> web.Response:
        try:
            admitted = self._admit(request)
        except Refusal as refusal:
            await self._door.create_on_first_use(request, refusal)
            admitted = self._admit(request)
        acks = parse_acks(request)
        is_partial = parse_flag(request, "partial")
        claim = self._door.gate.claim()
        try:
            if request.content_type == RAW_BATCH:
                return await self._publish_raw(request, admitted.topic, acks, claim)
            if is_partial:
                return await self._publish_partly(request, admitted, acks, claim)
            return await self._publish_whole(request, admitted, acks, claim)
        finally:
            claim.release()

    async def expect(self, request: web.Request) -> web.StreamResponse | None:
        return await self._door.expect(request, self._admit)

    def _admit(self, request: web.Request) -> Admitted:
        admitted = self._door.admit(request)
        if request.content_type != RAW_BATCH and request.content_type not in DECODERS:
            raise Refusal(
                "unsupported-media-type",
                f"Content-Type {request.content_type[:80]!r} is no batch. Send one of"
                f" {', '.join([*DECODERS, RAW_BATCH])}.",
            )
        self._door.bodies.check_announced(request, self._door.limits.body_bytes)
        return admitted

    async def _publish(
        self, topic: Topic, messages: Sequence[Message], acks: Acks
    ) -> list[Receipt]:
        door = self._door
        return await door.patience.wait(door.engine.publish(topic, messages, acks))

    # --- raw ------------------------------------------------------------------------------------

    async def _publish_raw(
        self, request: web.Request, topic: Topic, acks: Acks, claim: Claim
    ) -> web.Response:
        """Record batches as they are, stamped and appended without being decoded."""
        if acks is not Acks.DURABLE or "partial" in request.rel_url.query:
            raise Refusal("invalid-request", "Raw batches know neither acks= nor partial=.")
        text = request.headers.get("Ibrik-Partition")
        partition = None if text is None else parse_partition(text.encode())
        body = await self._door.bodies.read(request, self._door.limits.body_bytes, claim)
        receipts = await self._door.patience.wait(
            self._door.engine.publish_raw(topic, partition, body)
        )
        return raw_answer(topic, receipts, (read_header(f).record_count for f in split(body)))

    # --- all or nothing ---------------------------------------------------------------------------

    async def _publish_whole(
        self, request: web.Request, admitted: Admitted, acks: Acks, claim: Claim
    ) -> web.Response:
        topic = admitted.topic
        body = await self._door.bodies.read(request, self._door.limits.body_bytes, claim)
        decoded = check_messages(admitted, DECODERS[request.content_type](body), len(body))
        messages = refuse_invalid(decoded)
        if not messages:
            raise Refusal("invalid-request", "The batch has no messages.")
        receipts = await self._publish(topic, messages, acks)
        return BatchResults(topic, acks).add_all(receipts).answer(is_partial=False)

    # --- one result a message -------------------------------------------------------------------

    async def _publish_partly(
        self, request: web.Request, admitted: Admitted, acks: Acks, claim: Claim
    ) -> web.Response:
        results = BatchResults(admitted.topic, acks)
        limit_bytes = self._door.limits.body_bytes
        encoding = self._door.bodies.check_announced(request, limit_bytes)
        if request.content_type == NDJSON and not encoding:
            await self._publish_windows(request, admitted, acks, claim, results)
        else:
            body = await self._door.bodies.read(request, limit_bytes, claim)
            decoded = check_messages(admitted, DECODERS[request.content_type](body), len(body))
            results.add_all(await self._publish_each(admitted.topic, decoded, acks))
        return results.answer(is_partial=True)

    async def _publish_windows(
        self,
        request: web.Request,
        admitted: Admitted,
        acks: Acks,
        claim: Claim,
        results: BatchResults,
    ) -> None:
        """Publish lines while they come; what was published stays, whatever ends the body."""
        line_bytes_max = 2 * admitted.topic.spec.max_message_bytes + WINDOW_BYTES
        deadline = Deadline(self._door.limits)
        claim.take(2 * WINDOW_BYTES)
        rest = bytearray()
        try:
            while chunk := await deadline.next_chunk(request.content):
                rest += chunk
                if len(rest) >= WINDOW_BYTES:
                    end = rest.rfind(b"\n") + 1
                    if not end and len(rest) > line_bytes_max:
                        raise _line_too_long(admitted.topic)
                    await self._publish_window(admitted, bytes(rest[:end]), acks, results)
                    del rest[:end]
            await self._publish_window(admitted, bytes(rest), acks, results)
        except Refusal as refusal:
            if not results.count:
                raise
            results.stop(refusal)

    async def _publish_window(
        self, admitted: Admitted, window: bytes, acks: Acks, results: BatchResults
    ) -> None:
        decoded = _decode_lines(window)
        if results.count + len(decoded) > MAX_MESSAGES:
            raise _too_many()
        check_messages(admitted, decoded, len(window))
        results.add_all(await self._publish_each(admitted.topic, decoded, acks))

    async def _publish_each(
        self, topic: Topic, decoded: Decoded, acks: Acks
    ) -> list[Receipt | Refusal]:
        """Publish the valid messages together, or one by one when that is refused."""
        valid = [message for message in decoded if isinstance(message, Message)]
        outcomes: Sequence[Receipt | Refusal] = []
        if valid:
            try:
                outcomes = await self._publish(topic, valid, acks)
            except Refusal as refusal:
                if refusal.retryable:
                    raise  # the broker's state, the same for each of them
                # Tasks start in the order of their making, so the messages keep theirs.
                outcomes = await asyncio.gather(
                    *(self._publish_one(topic, message, acks) for message in valid)
                )
        remaining = iter(outcomes)
        return [found if isinstance(found, Refusal) else next(remaining) for found in decoded]

    async def _publish_one(self, topic: Topic, message: Message, acks: Acks) -> Receipt | Refusal:
        try:
            return (await self._publish(topic, (message,), acks))[0]
        except Refusal as refusal:
            return refusal


def parse_flag(request: web.Request, name: str) -> bool:
    text = request.rel_url.query.get(name, "false")
    if text not in ("true", "false"):
        raise Refusal("invalid-request", f"{name}={text[:40]!r}: write true or false.")
    return text == "true"


def check_messages(admitted: Admitted, decoded: Decoded, body_bytes: int) -> Decoded:
    """Put a refusal in the place of each message that this topic cannot take.

    The others become those of their publisher, where the topic has publishers.
    """
    if len(decoded) > MAX_MESSAGES:
        raise _too_many()
    topic, publisher = admitted
    limit_bytes, partition_count = topic.spec.max_message_bytes, len(topic.partitions)
    may_be_too_large = body_bytes > limit_bytes
    for index, message in enumerate(decoded):
        if isinstance(message, Refusal):
            continue
        if message.partition is not None and not 0 <= message.partition < partition_count:
            decoded[index] = Refusal(
                "unknown-partition", f"{topic.name} has partitions 0 to {partition_count - 1}."
            )
        elif may_be_too_large and record_bytes(message) > limit_bytes:
            decoded[index] = Refusal(
                "message-too-large", f"It has over {limit_bytes} bytes, the most for {topic.name}."
            )
        elif publisher is not None:
            decoded[index] = message_of(publisher, message)
    return decoded


def record_bytes(message: Message) -> int:
    key, value, headers = message.record
    size = len(key or b"") + len(value or b"")
    return size + sum(len(name) + len(content or b"") for name, content in headers)


def _too_many() -> Refusal:
    return Refusal(
        "request-too-large",
        f"The batch has over {MAX_MESSAGES} messages. Send it in several requests.",
    )


def _line_too_long(topic: Topic) -> Refusal:
    return Refusal(
        "message-too-large",
        f"A line is far longer than the {topic.spec.max_message_bytes} bytes {topic.name} takes.",
    )
