"""The answer to a publish, as bytes that are written at once.

aiohttp's own response costs a fifth of a publish: headers that become a dictionary and text again.
Where the connection stays open, which is nearly always, head and body are put together here.
"""

import time
from email.utils import formatdate

import msgspec
from aiohttp import HttpVersion11, web
from aiohttp.abc import AbstractStreamWriter

from ibrik_api.names import message_id
from ibrik_api.timestamps import format_timestamp
from ibrik_broker.http.operations import JSON
from ibrik_broker.partitions.messages import Message, Receipt
from ibrik_broker.partitions.topic import Topic

REASONS = {200: "OK", 201: "Created", 202: "Accepted"}


class WrittenResponse(web.StreamResponse):
    """A response whose bytes are ready: one write, and the connection stays open."""

    def __init__(self, status: int, content: bytes) -> None:
        super().__init__(status=status)
        self._content = content

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        self._keep_alive = True
        transport = request.transport
        if transport is None:
            raise ConnectionResetError("the client is gone")
        transport.write(self._content)
        return None

    async def write_eof(self, data: bytes = b"") -> None:
        """Nothing is left to write."""


class HttpClock:
    """The text of a Date header (RFC 9110 §6.6.1), made once a second."""

    def __init__(self) -> None:
        self._second = 0
        self._text = ""

    def text(self) -> str:
        second = int(time.time())
        if second != self._second:
            self._second, self._text = second, formatdate(second, usegmt=True)
        return self._text


def answer(
    request: web.Request, topic: Topic, message: Message, receipt: Receipt, clock: HttpClock
) -> web.StreamResponse:
    """201 with the place, 200 for a repeat, 202 when nobody waited."""
    partition, offset, timestamp_ms, durability, is_duplicate = receipt
    is_unknown = offset < 0  # acks=none: nobody waited
    if message.id is not None:
        own_id = msgspec.json.encode(message.id.decode(errors="replace")).decode()
    else:
        own_id = '""' if is_unknown else f'"{message_id(topic.id, partition, offset)}"'
    headers = {"Content-Type": JSON}
    status, end = 201, "}"
    if is_unknown:
        status = 202
    else:
        headers["Location"] = f"/v1/topics/{topic.name}/partitions/{partition}/messages/{offset}"
    if is_duplicate:
        headers["Ibrik-Duplicate"] = "true"
        status, end = 200, ',"duplicate":true}'
    body = (
        f'{{"topic":"{topic.name}","partition":{partition},"offset":{offset},"id":{own_id},'
        f'"timestamp":"{format_timestamp(timestamp_ms)}","durability":"{durability}"{end}'
    ).encode()
    if request.version != HttpVersion11 or not request.keep_alive:
        return web.Response(status=status, body=body, headers=headers)
    lines = "".join([f"{name}: {text}\r\n" for name, text in headers.items()])
    content = (
        f"HTTP/1.1 {status} {REASONS[status]}\r\n{lines}"
        f"Content-Length: {len(body)}\r\nDate: {clock.text()}\r\n\r\n"
    )
    return WrittenResponse(status, content.encode() + body)
