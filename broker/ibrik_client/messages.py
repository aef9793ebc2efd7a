"""What goes in and what comes out: payloads, acknowledgements, messages, gaps. Values only.

A payload is `bytes` (as they are), `str` (UTF-8) or anything that JSON can write. `RawJson` marks
bytes that are JSON already, so that a batch carries them without base64.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from ibrik_client.errors import InvalidRequest, ServerFailed

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"
RawJson = msgspec.Raw
Headers = Mapping[str, str | None]


class Payload(NamedTuple):
    """A value as bytes, and the content type that says how to read them."""

    content: bytes
    content_type: str | None


class Ack(NamedTuple):
    """What the broker promised for one message."""

    partition: int
    offset: int
    """-1 with acks="none": nobody waited for it."""
    durability: str
    """flushed: on the volume; written: in the page cache; none: nothing was promised."""
    is_duplicate: bool = False
    """The same id was published before; this is where that message is."""
    timestamp: str = ""
    """When it was appended: RFC 3339, UTC, milliseconds."""
    id: str = ""
    """The message's own id: the caller's, or the one that the client made."""


class RawAck(NamedTuple):
    """What the broker promised for one record batch."""

    partition: int
    offset: int
    """Of its first record."""
    records: int
    is_duplicate: bool


@dataclass(frozen=True, slots=True)
class Message:
    """One message as it was read."""

    topic: str
    partition: int
    offset: int
    timestamp: str
    """When it was appended: RFC 3339, UTC, milliseconds."""
    key: bytes | None
    value: bytes | None
    headers: Mapping[str, str | bytes | None] = field(default_factory=dict)
    """Text; bytes where a header is no UTF-8."""
    id: str = ""
    cursor: str = ""
    """Where a follower resumes after this message; empty when it was read by offset."""

    @property
    def time(self) -> datetime:
        return datetime.fromisoformat(self.timestamp)

    def text(self) -> str:
        return (self.value or b"").decode()

    def json(self) -> Any:
        """The value decoded; raises ValueError when it is no JSON."""
        return msgspec.json.decode(self.value or b"")


@dataclass(frozen=True, slots=True)
class Gap:
    """Offsets that a follower will not see: deleted by retention, or damaged on the disk."""

    topic: str
    partition: int
    from_offset: int
    to_offset: int
    """The offset at which reading goes on."""
    reason: str = ""
    cursor: str = ""


@dataclass(frozen=True, slots=True)
class ReadResult:
    """Messages of one partition from one request."""

    messages: Sequence[Message]
    next_offset: int
    """Where to read on."""
    high_watermark: int
    """The next offset that will become visible; equal to `next_offset` at the end."""


@dataclass(frozen=True, slots=True)
class PartitionRange:
    """What one partition holds: offsets from `earliest` up to, and without, `latest`."""

    partition: int
    earliest: int
    latest: int
    size_bytes: int


def payload_of(value: Any) -> Payload:
    """Bytes as they are, text as UTF-8, the rest as JSON."""
    match value:
        case msgspec.Raw():
            return Payload(bytes(value), JSON)
        case bytes() | bytearray() | memoryview():
            return Payload(bytes(value), None)
        case str():
            return Payload(value.encode(), TEXT)
    try:
        return Payload(msgspec.json.encode(value), JSON)
    except (TypeError, ValueError, msgspec.MsgspecError) as error:
        raise InvalidRequest(f"the value cannot be written as JSON: {error}") from error


def key_bytes(key: Any) -> bytes | None:
    """A key as bytes: text as UTF-8, a number as people write it."""
    match key:
        case None:
            return None
        case bytes():
            return key
        case bool():
            return b"true" if key else b"false"
        case str() | int() | float():
            return str(key).encode()
    raise InvalidRequest(f"a key is text, bytes or a number, not {type(key).__name__}")


class Outgoing(msgspec.Struct, omit_defaults=True, gc=False):
    """The envelope of one message in a batch."""

    key: str | None = None
    key_base64: str | None = None
    value: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    value_base64: str | None = None
    headers: Headers | None = None
    id: str | None = None
    partition: int | None = None


class Incoming(msgspec.Struct, gc=False):
    """The envelope of one message as the broker writes it; unknown members are newer than us."""

    offset: int
    partition: int = -1
    timestamp: str = ""
    key: str | None = None
    key_base64: str | None = None
    value: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    value_base64: str | None = None
    headers: dict[str, str | None] | None = None
    headers_base64: dict[str, str] | None = None
    id: str = ""


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Incoming)


def encode_envelope(
    value: Any,
    *,
    key: Any = None,
    headers: Headers | None = None,
    identity: str | None = None,
    partition: int | None = None,
) -> bytes:
    """One message of a JSON or NDJSON batch."""
    envelope = Outgoing(headers=headers or None, id=identity, partition=partition)
    content, content_type = payload_of(value) if value is not None else Payload(b"", None)
    if content_type == JSON:
        envelope.value = msgspec.Raw(content)
    elif value is not None:
        envelope.value_base64 = base64.b64encode(content).decode()
        if content_type is not None:
            envelope.headers = {"content-type": content_type, **(headers or {})}
    raw_key = key_bytes(key)
    if raw_key is not None:
        try:
            envelope.key = raw_key.decode()
        except UnicodeDecodeError:
            envelope.key_base64 = base64.b64encode(raw_key).decode()
    try:
        return _encoder.encode(envelope)
    except (TypeError, msgspec.MsgspecError, UnicodeEncodeError) as error:
        raise InvalidRequest(f"the message cannot be written as JSON: {error}") from error


def decode_envelope(line: bytes | str, topic: str, partition: int, cursor: str = "") -> Message:
    """A message from one line of NDJSON or from one event of a stream."""
    try:
        envelope = _decoder.decode(line)
        value: bytes | None = None
        if envelope.value_base64 is not None:
            # Beside `value` it has the very bytes, with the space that one line cannot hold.
            value = base64.b64decode(envelope.value_base64, validate=True)
        elif isinstance(envelope.value, msgspec.Raw):
            value = bytes(envelope.value)
        key = None if envelope.key is None else envelope.key.encode()
        if envelope.key_base64 is not None:
            key = base64.b64decode(envelope.key_base64, validate=True)
        headers: dict[str, str | bytes | None] = dict(envelope.headers or {})
        for name, text in (envelope.headers_base64 or {}).items():
            headers[name] = base64.b64decode(text, validate=True)
    except (msgspec.MsgspecError, ValueError) as error:
        raise ServerFailed(f"the broker sent a message that is not understood: {error}") from error
    return Message(
        topic=topic,
        partition=envelope.partition if envelope.partition >= 0 else partition,
        offset=envelope.offset,
        timestamp=envelope.timestamp,
        key=key,
        value=value,
        headers=headers,
        id=envelope.id,
        cursor=cursor,
    )
