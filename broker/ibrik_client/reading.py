"""Reading: by offset, which is safe to repeat, and live, over server-sent events.

A follower reconnects by itself and resumes after the last message that it gave out. Offsets that
are no longer there are never passed over in silence: without `on_gap` they raise MessagesLost.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Any
from urllib.parse import quote

import aiohttp
import msgspec

from ibrik_client.errors import MessagesLost, OffsetOutOfRange, ServerFailed, Unavailable
from ibrik_client.messages import Gap, Message, PartitionRange, ReadResult, decode_envelope
from ibrik_client.retry import RetryPolicy, with_retries
from ibrik_client.sse import Event, EventParser
from ibrik_client.transport import STREAM_SILENCE_S, Answer, Transport

NDJSON = "application/x-ndjson"
MAX_WAIT_S = 60.0
OnGap = Callable[[Gap], None]


def topic_path(topic: str) -> str:
    return f"/v1/topics/{quote(topic, safe='')}"


def partition_path(topic: str, partition: int) -> str:
    return f"{topic_path(topic)}/partitions/{partition}/messages"


def start_parameter(start: int | str) -> dict[str, str]:
    """Where to begin, as a query: an offset, `earliest`, `latest`, or a time in RFC 3339."""
    if isinstance(start, int):
        return {"offset": str(start)}
    if start in ("earliest", "latest"):
        return {"from": start}
    return {"timestamp": start}


class Reader:
    """The reading half of the client."""

    def __init__(self, transport: Transport, policy: RetryPolicy) -> None:
        self._transport = transport
        self._policy = policy

    async def read(
        self,
        topic: str,
        partition: int,
        start: int | str = "earliest",
        *,
        max_messages: int | None = None,
        max_bytes: int | None = None,
        wait_s: float = 0,
    ) -> ReadResult:
        """Messages of one partition; empty when there are none within `wait_s`.

        `start` is an offset, "earliest", "latest" or a time. Raises OffsetOutOfRange.
        """
        params = start_parameter(start)
        if max_messages is not None:
            params["max"] = str(max_messages)
        if max_bytes is not None:
            params["max_bytes"] = str(max_bytes)
        if wait_s > 0:
            params["wait"] = f"{int(min(wait_s, MAX_WAIT_S) * 1000)}ms"
        path = partition_path(topic, partition)

        async def attempt() -> Answer:
            return await self._transport.request(
                "GET", path, params=params, headers={"Accept": NDJSON}, timeout_s=30 + wait_s
            )

        answer = await with_retries(
            self._policy, attempt, deadline_s=self._policy.deadline_s + wait_s
        )
        lines = answer.body.split(b"\n")
        messages = [decode_envelope(line, topic, partition) for line in lines if line]
        end = messages[-1].offset + 1 if messages else 0
        next_offset = int(answer.headers.get("Ibrik-Next-Offset", end))
        return ReadResult(
            messages=messages,
            next_offset=next_offset,
            high_watermark=int(answer.headers.get("Ibrik-High-Watermark", next_offset)),
        )

    async def scan(
        self,
        topic: str,
        partition: int,
        start: int | str = "earliest",
        *,
        end: int | None = None,
    ) -> AsyncIterator[Message]:
        """Every message of one partition from `start` to `end`, or to where it ends now."""
        at = start
        while True:
            result = await self.read(topic, partition, at, max_messages=5_000)
            end = result.high_watermark if end is None else end
            for message in result.messages:
                if message.offset >= end:
                    return
                yield message
            if result.next_offset >= end or result.next_offset == at:
                return
            at = result.next_offset

    async def message(self, topic: str, partition: int, offset: int) -> Message:
        """One message by its place."""
        result = await self.read(topic, partition, offset, max_messages=1)
        for found in result.messages:
            if found.offset == offset:
                return found
        raise OffsetOutOfRange(
            f"there is no message {topic}/{partition}/{offset}",
            {"code": "offset-above-end", "latest": result.high_watermark},
        )

    async def ranges(self, topic: str, *, deadline_s: float | None = None) -> list[PartitionRange]:
        """What each partition holds; with `deadline_s=0` only one attempt is made."""

        async def attempt() -> Answer:
            return await self._transport.request("GET", f"{topic_path(topic)}/partitions")

        answer = await with_retries(self._policy, attempt, deadline_s=deadline_s)
        rows = answer.json()["partitions"]
        return [
            PartitionRange(r["partition"], r["earliest"], r["latest"], r["bytes"]) for r in rows
        ]

    async def offsets_at(self, topic: str, timestamp: str) -> list[int]:
        """The first offset of each partition that was appended at this time or later."""
        results = [
            await self.read(topic, known.partition, timestamp, max_messages=1)
            for known in await self.ranges(topic)
        ]
        return [r.messages[0].offset if r.messages else r.next_offset for r in results]

    async def follow(
        self,
        topic: str,
        from_: str | Sequence[int] = "latest",
        *,
        cursor: str = "",
        on_gap: OnGap | None = None,
    ) -> AsyncIterator[Message]:
        """Every message of all partitions as it comes, for ever; reconnects by itself.

        `from_` is "earliest", "latest", a time, or an offset for each partition. `cursor` (of a
        message seen before) resumes there instead; a few messages before it may come again.
        """
        params = {} if cursor else await self._stream_start(topic, from_)
        next_offsets: dict[int, int] = {}
        async for event in self._events(topic, params, cursor):
            if event.name == "gap":
                gap = _gap(event, topic)
                if on_gap is None:
                    raise MessagesLost(
                        f"{topic}/{gap.partition}: offsets {gap.from_offset} to "
                        f"{gap.to_offset - 1} are gone; read on from {gap.to_offset}",
                        gap,
                    )
                on_gap(gap)
            elif event.name == "message":
                message = decode_envelope(event.text, topic, -1, event.last_id)
                # A stream that broke inside a batch resumes at the begin of that batch.
                if message.offset >= next_offsets.get(message.partition, 0):
                    next_offsets[message.partition] = message.offset + 1
                    yield message

    async def _stream_start(self, topic: str, from_: str | Sequence[int]) -> dict[str, str]:
        if from_ in ("earliest", "latest"):
            return {"from": str(from_)}
        offsets = await self.offsets_at(topic, from_) if isinstance(from_, str) else from_
        return {"offset": ",".join(map(str, offsets))}

    async def _events(
        self, topic: str, params: Mapping[str, str], cursor: str
    ) -> AsyncIterator[Event]:
        parser = EventParser()
        parser.last_id = cursor
        while True:
            is_connected = False
            try:
                async with AsyncExitStack() as stack:
                    connect = partial(self._open_stream, stack, topic, params, parser.last_id)
                    response = await with_retries(self._policy, connect)
                    is_connected = True
                    async for chunk in response.content.iter_any():
                        for event in parser.feed(chunk):
                            yield event
            except Unavailable:
                if not is_connected:
                    raise
            # The stream broke or said goodbye: the next round connects, as patient as the policy.
            asked_s = (parser.retry_ms or 0) / 1000
            await asyncio.sleep(max(asked_s, self._policy.first_wait_s))
            parser = parser.resumed()

    async def _open_stream(
        self, stack: AsyncExitStack, topic: str, params: Mapping[str, str], cursor: str
    ) -> aiohttp.ClientResponse:
        return await stack.enter_async_context(
            self._transport.open(
                "GET",
                f"{topic_path(topic)}/stream",
                params={} if cursor else params,
                headers={"Accept": "text/event-stream"}
                | ({"Last-Event-ID": cursor} if cursor else {}),
                silence_s=STREAM_SILENCE_S,
            )
        )


def _gap(event: Event, topic: str) -> Gap:
    try:
        facts: dict[str, Any] = msgspec.json.decode(event.text)
        return Gap(
            topic=topic,
            partition=int(facts["partition"]),
            from_offset=int(facts["from"]),
            to_offset=int(facts["to"]),
            reason=str(facts.get("reason", "")),
            cursor=event.last_id,
        )
    except (msgspec.DecodeError, KeyError, TypeError, ValueError) as error:
        raise ServerFailed(f"the broker sent a gap that is not understood: {error}") from error
