"""GET /v1/topics/{topic}/stream: all partitions of a topic, live, as server-sent events.

A reader's place is a vector of offsets; wake-ups carry no data. What all readers at the tail get is
rendered once per batch and shared; a slow reader is not buffered for: it falls behind and reads the
log later. Each batch ends with the id that resumes after it, so a reader that is cut off in the
middle of a batch gets that batch again, never less.
"""

import logging
from collections import OrderedDict
from collections.abc import Iterator

import msgspec
from aiohttp import web

from ibrik_api.errors import Refusal
from ibrik_broker.http.cursors import check_positions, format_cursor, parse_cursor
from ibrik_broker.http.door import Door
from ibrik_broker.http.operations import EVENT_STREAM
from ibrik_broker.http.read import parse_end, parse_offset, refuse_filter, take
from ibrik_broker.http.views import message_view
from ibrik_broker.partitions.partition import Partition
from ibrik_broker.partitions.topic import Topic
from ibrik_broker.telemetry.metrics import HTTP_STREAMS, Reading
from ibrik_log.batch import read_header

READ_BYTES = 256 * 1024
"""Read of one partition before the next has its turn."""
CHUNK_CACHE_BYTES = 8 * 2**20
HEARTBEAT = b": heartbeat\n\n"
HEADERS = {
    "Content-Type": EVENT_STREAM,
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",  # proxies of the nginx family would hold events back
}

logger = logging.getLogger("ibrik.http")


class ChunkCache:
    """Rendered batches, newest used last; the oldest leave beyond the limit."""

    def __init__(self, limit_bytes: int = CHUNK_CACHE_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._size_bytes = 0
        self._chunks: OrderedDict[tuple[str, int, int], bytes] = OrderedDict()
        self.rendered_count = 0

    def chunk(self, topic: Topic, partition: int, frame: bytes, position: int) -> bytes:
        """The events of a batch from `position` on, up to the id that closes the last one."""
        base_offset = read_header(frame).base_offset
        if position > base_offset:
            return self._render(topic, partition, frame, position)  # once, where a reader begins
        key = (topic.id, partition, base_offset)
        chunk = self._chunks.get(key)
        if chunk is not None:
            self._chunks.move_to_end(key)
            return chunk
        chunk = self._render(topic, partition, frame, position)
        self._chunks[key] = chunk
        self._size_bytes += len(chunk)
        while self._size_bytes > self._limit_bytes and len(self._chunks) > 1:
            self._size_bytes -= len(self._chunks.popitem(last=False)[1])
        return chunk

    def _render(self, topic: Topic, partition: int, frame: bytes, position: int) -> bytes:
        self.rendered_count += 1
        views = [message_view(topic, partition, r) for r in take([frame], position, 2**31)]
        return b"data: " + b"\n\ndata: ".join(views) + b"\n"


class Stream:
    """All open streams of a door."""

    def __init__(self, door: Door, heartbeat_ms: int) -> None:
        self._door = door
        self._heartbeat_s = heartbeat_ms / 1000
        self.chunks = ChunkCache()
        self._open_count = 0
        self._goodbye_count = 0
        self._is_closing = False

    def readings(self) -> Iterator[Reading]:
        yield Reading(HTTP_STREAMS, (), self._open_count)

    def close(self) -> None:
        """Let every reader go with a goodbye."""
        self._is_closing = True
        for topic in self._door.engine.topics():
            for partition in topic.partitions:
                partition.wake_readers()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        topic = self._door.topic(request)
        positions = find_start(topic, request)
        response = web.StreamResponse(headers=HEADERS)
        await response.prepare(request)
        self._open_count += 1
        try:
            await response.write(_closing_id(topic, positions))
            await self._follow(topic, positions, response)
        except ConnectionError:
            pass  # the reader went away
        except Refusal as refusal:
            await self._say_goodbye(response, refusal.code)
        except Exception:
            logger.exception("stream failed", extra={"topic": topic.name})
            await self._say_goodbye(response, "internal")
        finally:
            self._open_count -= 1
        return response

    async def _follow(
        self, topic: Topic, positions: list[int], response: web.StreamResponse
    ) -> None:
        while not self._is_closing and not topic.partitions[0].is_closed:
            positions += [0] * (len(topic.partitions) - len(positions))
            has_written = False
            for partition in list(topic.partitions):
                if partition.latest > positions[partition.index]:
                    await self._forward(topic, partition, positions, response)
                    has_written = True
            if not has_written and not await topic.wait(positions, self._heartbeat_s):
                await response.write(HEARTBEAT)
        reason = "shutting-down" if self._is_closing else "unknown-topic"
        await self._say_goodbye(response, reason)

    async def _forward(
        self, topic: Topic, partition: Partition, positions: list[int], response: web.StreamResponse
    ) -> None:
        """Write what one partition has, up to a read's worth."""
        index = partition.index
        try:
            frames = await partition.read(positions[index], READ_BYTES)
        except Refusal as refusal:
            await self._write_gap(topic, index, positions, refusal, response)
            return
        for frame in frames:
            chunk = self.chunks.chunk(topic, index, frame, positions[index])
            positions[index] = read_header(frame).next_offset
            await response.write(chunk + _closing_id(topic, positions))

    async def _write_gap(
        self,
        topic: Topic,
        partition: int,
        positions: list[int],
        refusal: Refusal,
        response: web.StreamResponse,
    ) -> None:
        """Say what cannot be read any more, and go on after it."""
        match refusal.code:
            case "offset-below-start":
                next_offset = refusal.facts["earliest"]
            case "corrupt-range":
                next_offset = refusal.facts["to_offset"]
            case _:
                raise refusal
        event = gap_event(partition, positions[partition], next_offset, refusal.code)
        positions[partition] = next_offset
        await response.write(event + _closing_id(topic, positions))

    async def _say_goodbye(self, response: web.StreamResponse, reason: str) -> None:
        """The last event. Each reader has another time to come back, so not all come at once."""
        self._goodbye_count += 1
        try:
            await response.write(goodbye_event(self._goodbye_count, reason))
            await response.write_eof()
        except ConnectionError:
            pass  # gone before it heard it


def goodbye_event(number: int, reason: str) -> bytes:
    """The last event of the stream that is the `number`-th to be let go."""
    retry_ms = 500 + number * 50 % 10_000
    return f'event: goodbye\nretry: {retry_ms}\ndata: {{"reason":"{reason}"}}\n\n'.encode()


def gap_event(partition: int, start: int, end: int, reason: str) -> bytes:
    """What cannot be read any more; the empty line that ends an event is up to the caller."""
    gap = {
        "partition": partition,
        "from": start,
        "to": end,
        "count": end - start,
        "reason": reason,
    }
    return b"event: gap\ndata: " + msgspec.json.encode(gap) + b"\n"


def _closing_id(topic: Topic, positions: list[int]) -> bytes:
    """The line that ends an event, or stands alone: then it only moves the reader's last id."""
    return f"id: {format_cursor(topic, positions)}\n\n".encode()


def find_start(topic: Topic, request: web.Request) -> list[int]:
    """Where a reader begins: where it was, or where it asks to, or now."""
    query = request.rel_url.query
    refuse_filter(query.get("filter"))
    if "from" in query and "offset" in query:
        raise Refusal("invalid-request", "from and offset exclude each other: give one.")
    cursor = request.headers.get("Last-Event-ID")
    if cursor:
        positions = parse_cursor(topic, cursor)
    elif "offset" in query:
        positions = [parse_offset(text) for text in query["offset"].split(",")]
        if len(positions) != len(topic.partitions):
            raise Refusal(
                "invalid-offset",
                f"{topic.name} has {len(topic.partitions)} partitions: write one offset for each,"
                " with commas between.",
            )
    elif parse_end(query.get("from", "latest")) == "earliest":
        return [partition.earliest for partition in topic.partitions]
    else:
        return [partition.latest for partition in topic.partitions]
    check_positions(topic, positions)
    return positions
