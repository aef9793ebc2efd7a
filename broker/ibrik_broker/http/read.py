"""Reading by offset: the same question has the same answer, however often it is asked.

Frames come from the engine whole and checked. As raw batches they are written as they are; in the
other forms they are decoded here, and records before the asked offset are left out.
"""

from collections.abc import Callable

from aiohttp import hdrs, web

from ibrik_api.errors import Refusal
from ibrik_broker.http.door import Door
from ibrik_broker.http.operations import CLOUDEVENTS_BATCH, JSON, NDJSON, RAW_BATCH
from ibrik_broker.http.times import parse_time, parse_wait
from ibrik_broker.http.views import event_view, message_headers, message_view
from ibrik_broker.partitions.attributes import content_type_of
from ibrik_broker.partitions.partition import Partition
from ibrik_broker.partitions.topic import Topic
from ibrik_log.batch import decode, read_header
from ibrik_log.record import StoredRecord

DEFAULT_MAX = 1_000
MAX_MAX = 10_000
DEFAULT_MAX_BYTES = 1 * 2**20
MAX_MAX_BYTES = 16 * 2**20
MAX_OFFSET = 2**63 - 1
PLACES = ("offset", "timestamp", "from")
FORMS = (JSON, NDJSON, CLOUDEVENTS_BATCH, RAW_BATCH)


class Read:
    def __init__(self, door: Door) -> None:
        self._door = door

    async def partitions(self, request: web.Request) -> web.Response:
        """What can be read of every partition."""
        topic = self._door.topic(request)
        rows = ",".join(
            f'{{"partition":{p.index},"earliest":{p.earliest},"latest":{p.latest},'
            f'"bytes":{p.size_bytes}}}'
            for p in topic.partitions
        )
        body = f'{{"topic":"{topic.name}","partitions":[{rows}]}}'
        return web.Response(body=body.encode(), content_type=JSON)

    async def messages(self, request: web.Request) -> web.Response:
        """Messages from a place on; waits for the first one when asked to."""
        topic, partition = self._door.partition(request)
        query = request.rel_url.query
        refuse_filter(query.get("filter"))
        form = choose_form(request)
        max_count = parse_count(query.get("max"), "max", DEFAULT_MAX, MAX_MAX)
        max_bytes = parse_count(
            query.get("max_bytes"), "max_bytes", DEFAULT_MAX_BYTES, MAX_MAX_BYTES
        )
        wait_ms = parse_wait(query.get("wait", "0s"), self._door.limits.wait_ms)
        offset = await find_place(request, partition)
        frames = await partition.read(offset, max_bytes)
        if not frames and wait_ms:
            await partition.wait(offset, wait_ms / 1000)
            frames = await partition.read(offset, max_bytes)
        if not frames:
            return self._answer(partition, offset, form, b"", status=204)
        if form == RAW_BATCH:
            next_offset = read_header(frames[-1]).next_offset
            return self._answer(partition, next_offset, form, b"".join(frames))
        records = take(frames, offset, max_count)
        next_offset = records[-1].offset + 1 if records else offset
        body = RENDERERS[form](topic, partition, records, next_offset)
        return self._answer(partition, next_offset, form, body)

    def _answer(
        self, partition: Partition, next_offset: int, form: str, body: bytes, status: int = 200
    ) -> web.Response:
        headers = {
            "Ibrik-Next-Offset": str(next_offset),
            "Ibrik-High-Watermark": str(partition.latest),
            hdrs.VARY: hdrs.ACCEPT,
        }
        if status == 200:
            headers[hdrs.CONTENT_TYPE] = form
        return web.Response(status=status, body=body, headers=headers)

    async def message(self, request: web.Request) -> web.Response:
        """One message: its bytes as they were published, its headers as headers."""
        topic, partition = self._door.partition(request)
        record = await read_one(partition, parse_offset(request.match_info["offset"]))
        headers = message_headers(topic, partition.index, record)
        headers += [
            (hdrs.CONTENT_TYPE, content_type_of(record)),
            # Payloads are strangers' bytes: a browser must not run them in the name of this host.
            ("X-Content-Type-Options", "nosniff"),
            ("Content-Security-Policy", "sandbox"),
        ]
        if record.value is None:
            headers.append(("Ibrik-Null", "true"))
        response = web.Response(body=record.value or b"")
        response.headers.clear()
        for name, value in headers:
            response.headers.add(name, value)
        return response


async def read_one(partition: Partition, offset: int) -> StoredRecord:
    """The record at an offset. Raises Refusal `offset-above-end` and those of reading."""
    frames = await partition.read(offset, 1)
    if not frames:
        raise Refusal(
            "offset-above-end",
            f"Offset {offset} is not there yet: the end is {partition.latest}.",
            earliest=partition.earliest,
            latest=partition.latest,
        )
    return take(frames, offset, 1)[0]


def take(frames: list[bytes], offset: int, max_count: int) -> list[StoredRecord]:
    """The records from `offset` on, at most `max_count`."""
    records: list[StoredRecord] = []
    for frame in frames:
        found = decode(frame)
        records += found[max(0, offset - found[0].offset) :]  # offsets in a frame have no gaps
        if len(records) >= max_count:
            break
    return records[:max_count]


async def find_place(request: web.Request, partition: Partition) -> int:
    """The offset to begin at: given, or found by time, or an end of the log."""
    query = request.rel_url.query
    given = [name for name in PLACES if name in query]
    if len(given) > 1:
        raise Refusal("invalid-request", f"{' and '.join(given)} exclude each other: give one.")
    match given:
        case ["offset"]:
            return parse_offset(query["offset"])
        case ["timestamp"]:
            return await partition.offset_for_timestamp(parse_time(query["timestamp"]))
        case ["from"]:
            return partition.latest if parse_end(query["from"]) == "latest" else partition.earliest
        case _:
            return partition.earliest


def parse_end(text: str) -> str:
    if text not in ("earliest", "latest"):
        raise Refusal("invalid-request", f"from={text[:40]!r}: write earliest or latest.")
    return text


def parse_offset(text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) <= 19 and int(text) <= MAX_OFFSET:
        return int(text)
    raise Refusal("invalid-offset", f"{text[:40]!r} is no offset: write a whole number from 0.")


def parse_count(text: str | None, name: str, default: int, limit: int) -> int:
    if text is None:
        return default
    if text.isascii() and text.isdigit() and len(text) <= 12 and 1 <= int(text) <= limit:
        return int(text)
    raise Refusal(
        "invalid-request", f"{name}={text[:40]!r}: write a whole number from 1 to {limit}."
    )


def refuse_filter(text: str | None) -> None:
    if text is not None:
        raise Refusal(
            "unsupported-field",
            "filter= is not served yet: leave it out, and select among the messages you read.",
        )


def choose_form(request: web.Request) -> str:
    """The first of our forms that the Accept header names, in the order it prefers."""
    accept = request.headers.get(hdrs.ACCEPT)
    if not accept:
        return JSON
    for media_type in by_preference(accept):
        if media_type in FORMS:
            return media_type
        if media_type in ("*/*", "application/*"):
            return JSON
    raise Refusal(
        "not-acceptable", f"Messages come as {', '.join(FORMS)}. Accept names none of them."
    )


def by_preference(accept: str) -> list[str]:
    """Media types of an Accept header, best first; those with q=0 are left out."""
    weighted = []
    for item in accept.split(","):
        media_type, *parameters = (part.strip().lower() for part in item.split(";"))
        quality = next((p[2:] for p in parameters if p.startswith("q=")), "1")
        try:
            weighted.append((float(quality), media_type))
        except ValueError:
            continue
    weighted.sort(key=lambda pair: -pair[0])
    return [media_type for quality, media_type in weighted if quality > 0]


def _render_json(
    topic: Topic, partition: Partition, records: list[StoredRecord], next_offset: int
) -> bytes:
    views = b",".join([message_view(topic, partition.index, record) for record in records])
    head = (
        f'{{"topic":"{topic.name}","partition":{partition.index},"next_offset":{next_offset},'
        f'"high_watermark":{partition.latest},"messages":['
    )
    return head.encode() + views + b"]}"


def _render_lines(
    topic: Topic, partition: Partition, records: list[StoredRecord], _next_offset: int
) -> bytes:
    return b"".join([message_view(topic, partition.index, record) + b"\n" for record in records])


def _render_events(
    topic: Topic, partition: Partition, records: list[StoredRecord], _next_offset: int
) -> bytes:
    views = b",".join([event_view(topic, partition.index, record) for record in records])
    return b"[" + views + b"]"


Renderer = Callable[[Topic, Partition, list[StoredRecord], int], bytes]
RENDERERS: dict[str, Renderer] = {
    JSON: _render_json,
    NDJSON: _render_lines,
    CLOUDEVENTS_BATCH: _render_events,
}
