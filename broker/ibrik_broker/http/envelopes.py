"""JSON envelopes: how a message is written in a JSON or NDJSON batch. Pure functions.

`value` is kept as the bytes received (`msgspec.Raw`): no number is rounded, nothing is written
anew. A `key` that is a JSON string stands for its text, so that it is the same key as in Ibrik-Key.
"""

import base64
import binascii

import msgspec
from msgspec import UNSET

from ibrik_api.errors import Refusal
from ibrik_api.http import BatchMessage, BatchRequest
from ibrik_broker.partitions.deduplication import (
    CE_ID_HEADER,
    CE_SOURCE_HEADER,
    ID_HEADER,
    PUBLISHER_HEADER,
)
from ibrik_broker.partitions.messages import Message, Record

JSON_VALUE: list[tuple[str, bytes | None]] = [("content-type", b"application/json")]
"""Headers of a plain JSON value, shared by all such records and never changed."""
MAX_ID_CHARACTERS = 1024

DecodeErrors = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class LooseBatch(msgspec.Struct, forbid_unknown_fields=True):
    """A batch of which at least one message is wrong: decoded again to find out which ones."""

    messages: list[msgspec.Raw]


_batch_decoder = msgspec.json.Decoder(BatchRequest)
_loose_decoder = msgspec.json.Decoder(LooseBatch)
_envelope_decoder = msgspec.json.Decoder(BatchMessage)


def decode_batch(body: bytes) -> list[Message | Refusal]:
    """The messages of a JSON batch, or in the place of each wrong one what is wrong with it."""
    try:
        body.decode()  # msgspec leaves the text inside a Raw unchecked
        envelopes = _batch_decoder.decode(body).messages
    except DecodeErrors as error:
        return _decode_one_by_one(body, error)
    return [_message_or_refusal(envelope) for envelope in envelopes]


def decode_lines(body: bytes) -> list[Message | Refusal]:
    """The messages of an NDJSON body, one envelope a line; empty lines are skipped."""
    try:
        body.decode()
        envelopes = _envelope_decoder.decode_lines(body)
    except DecodeErrors:
        return [decode_envelope(line) for line in body.split(b"\n") if line.strip()]
    return [_message_or_refusal(envelope) for envelope in envelopes]


def _decode_one_by_one(body: bytes, error: Exception) -> list[Message | Refusal]:
    try:
        return [decode_envelope(raw) for raw in _loose_decoder.decode(body).messages]
    except msgspec.ValidationError as wrong:
        raise Refusal("invalid-request", f"The body is no batch: {wrong}.") from wrong
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Refusal("invalid-json", f"The body is no JSON: {error}.") from error


def decode_envelope(document: bytes | msgspec.Raw) -> Message | Refusal:
    """One envelope: a line of NDJSON, or one element of a batch that has a fault somewhere."""
    try:
        bytes(document).decode()
        envelope = _envelope_decoder.decode(document)
    except DecodeErrors as error:
        code = "invalid-request" if isinstance(error, msgspec.ValidationError) else "invalid-json"
        return Refusal(code, f"{error}.")
    return _message_or_refusal(envelope)


def _message_or_refusal(envelope: BatchMessage) -> Message | Refusal:
    value = envelope.value
    if (
        value is UNSET
        or envelope.value_base64 is not None
        or envelope.key_base64 is not None
        or envelope.id is not None
        or envelope.headers
        or envelope.headers_base64
    ):
        try:
            return _full_message(envelope)
        except Refusal as refusal:
            return refusal
    return Message(Record(_key(envelope), bytes(value), JSON_VALUE), envelope.partition)


def _full_message(envelope: BatchMessage) -> Message:
    headers = _headers(envelope)
    value = _value(envelope)
    if envelope.value is not UNSET and not any(name == "content-type" for name, _ in headers):
        headers = JSON_VALUE + headers
    identity, source = _identity(envelope, headers)
    return Message(Record(_key(envelope), value, headers), envelope.partition, identity, source)


def _value(envelope: BatchMessage) -> bytes | None:
    if envelope.value_base64 is None:
        return None if envelope.value is UNSET else bytes(envelope.value)
    if envelope.value is not UNSET:
        raise Refusal("invalid-request", "It has both value and value_base64.")
    return from_base64("value_base64", envelope.value_base64)


def _key(envelope: BatchMessage) -> bytes | None:
    raw = envelope.key
    if envelope.key_base64 is not None:
        if raw is not UNSET:
            raise Refusal("invalid-request", "It has both key and key_base64.")
        return from_base64("key_base64", envelope.key_base64)
    if raw is UNSET:
        return None
    text = bytes(raw)
    if text.startswith(b'"'):
        # Escapes are rare in keys, and decoding costs more than the slice.
        return text[1:-1] if b"\\" not in text else _unescaped(text)
    return None if text == b"null" else text


def _unescaped(text: bytes) -> bytes:
    return msgspec.json.decode(text, type=str).encode()


def _headers(envelope: BatchMessage) -> list[tuple[str, bytes | None]]:
    headers: list[tuple[str, bytes | None]] = [
        (name, None if text is None else text.encode())
        for name, text in (envelope.headers or {}).items()
    ]
    for name, text in (envelope.headers_base64 or {}).items():
        if name in (envelope.headers or {}):
            raise Refusal("invalid-request", f"The header {name[:60]!r} is given twice.")
        headers.append((name, from_base64(f"headers_base64.{name[:60]}", text)))
    # The broker's own: who copies a message out of a topic need not take it off.
    return [header for header in headers if header[0] != PUBLISHER_HEADER]


def _identity(
    envelope: BatchMessage, headers: list[tuple[str, bytes | None]]
) -> tuple[bytes | None, bytes | None]:
    """The deduplication identity: the envelope's id, else that of a CloudEvent in the headers."""
    known = dict(headers)
    source = known.get(CE_SOURCE_HEADER)
    if envelope.id is None:
        return known.get(ID_HEADER) or known.get(CE_ID_HEADER) or None, source
    if not 0 < len(envelope.id) <= MAX_ID_CHARACTERS:
        raise Refusal("invalid-request", f"An id has 1 to {MAX_ID_CHARACTERS} characters.")
    if ID_HEADER in known:
        raise Refusal("invalid-request", f"It has both an id and a header {ID_HEADER}.")
    headers.append((ID_HEADER, envelope.id.encode()))
    return envelope.id.encode(), source


def from_base64(name: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Refusal("invalid-request", f"{name} is no base64: {error}.") from error


def message_of(publisher: bytes, message: Message) -> Message:
    """The message as that of a registered publisher, whose ids are its own.

    The header keeps this true when the deduplication window is rebuilt from the log.
    """
    headers = [*message.record.headers, (PUBLISHER_HEADER, publisher)]
    record = message.record._replace(headers=headers)
    return message._replace(record=record, source=message.source or publisher)
