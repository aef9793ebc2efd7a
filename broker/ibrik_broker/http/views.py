"""Records as readers see them: JSON messages, NDJSON lines, CloudEvents, headers of one message.

`value` stands there as the bytes that were published when they are valid JSON, else `value_base64`;
both when only space around JSON tokens differs, since a reader may need the very bytes.
A key is its text, else `key_base64`. Pure functions; JSON is put together from parts, so that a
value is never parsed into objects and never rounded.
"""

import base64

import msgspec

from ibrik_api.timestamps import format_timestamp
from ibrik_broker.partitions.attributes import (
    CONTENT_TYPE,
    PLAIN_TYPE,
    PREFIX,
    identity,
    passed_on,
    plain_source,
    quoted,
)
from ibrik_broker.partitions.topic import Topic
from ibrik_log.record import StoredRecord

_json_decoder = msgspec.json.Decoder(msgspec.Raw)
_encode = msgspec.json.encode
_TRACE = frozenset({"traceparent", "tracestate"})


def as_json(value: bytes) -> bytes | None:
    """The value as a JSON document on one line, or None when it is no JSON."""
    try:
        value.decode()  # msgspec leaves the text inside a Raw unchecked
        document = bytes(_json_decoder.decode(value))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if b"\n" in document or b"\r" in document:
        # Between tokens a line break is only space; inside a string JSON forbids it.
        document = document.replace(b"\n", b" ").replace(b"\r", b" ")
    return document


def json_text(text: str) -> bytes:
    return _encode(text)


def json_base64(content: bytes) -> bytes:
    return b'"' + base64.b64encode(content) + b'"'


def message_view(topic: Topic, partition: int, record: StoredRecord, more: bytes = b"") -> bytes:
    """One message as JSON on one line: `MessageView` of `ibrik_api.messages`, and `more` members.

    `more` is JSON that begins with a comma.
    """
    offset, timestamp_ms, key, value, headers = record
    known = dict(headers)
    parts = [
        f'{{"partition":{partition},"offset":{offset},'
        f'"timestamp":"{format_timestamp(timestamp_ms)}","id":'.encode(),
        json_text(identity(topic.id, partition, offset, known)),
    ]
    if key is not None:
        text = _text(key)
        parts += (b',"key":', json_text(text)) if text is not None else ()
        parts += (b',"key_base64":', json_base64(key)) if text is None else ()
    if value is not None:
        document = as_json(value)
        parts += (b',"value":', document) if document is not None else ()
        parts += (b',"value_base64":', json_base64(value)) if document != value else ()
    if known:
        parts.append(_headers_view(known))
    parts += (more, b"}")
    return b"".join(parts)


def _headers_view(headers: dict[str, bytes | None]) -> bytes:
    texts: dict[str, str | None] = {}
    others: dict[str, bytes] = {}
    for name, content in headers.items():
        text = None if content is None else _text(content)
        if content is not None and text is None:
            others[name] = content  # msgspec writes bytes as base64
        else:
            texts[name] = text
    view = b',"headers":' + _encode(texts) if texts else b""
    return view + (b',"headers_base64":' + _encode(others) if others else b"")


def _text(content: bytes) -> str | None:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


# --- CloudEvents ----------------------------------------------------------------------------------


def event_view(topic: Topic, partition: int, record: StoredRecord) -> bytes:
    """One message in the JSON event format; plain bytes get a source and a type of ours."""
    known = dict(record.headers)
    members = {
        "specversion": b"1.0",
        "id": identity(topic.id, partition, record.offset, known).encode(),
        "source": plain_source(topic.name).encode(),
        "type": PLAIN_TYPE.encode(),
        "time": format_timestamp(record.timestamp_ms).encode(),
    }
    for name, content in known.items():
        if name.startswith(PREFIX) and content is not None:
            members[name.removeprefix(PREFIX)] = content
    content_type = known.get(CONTENT_TYPE)
    if content_type is not None:
        members["datacontenttype"] = content_type
    fields = [
        json_text(name) + b":" + json_text(content.decode(errors="replace"))
        for name, content in members.items()
    ]
    if record.value is not None:
        document = as_json(record.value) if _says_json(content_type) else None
        if document is not None:
            fields.append(b'"data":' + document)
        else:
            fields.append(b'"data_base64":' + json_base64(record.value))
    return b"{" + b",".join(fields) + b"}"


def _says_json(content_type: bytes | None) -> bool:
    """Whether `data` may be JSON: its type says so, or nothing else (which implies JSON)."""
    if content_type is None:
        return True
    media_type = content_type.split(b";")[0].strip().lower()
    return media_type.endswith((b"/json", b"+json"))


# --- headers of one message -----------------------------------------------------------------------


def message_headers(topic: Topic, partition: int, record: StoredRecord) -> list[tuple[str, str]]:
    """HTTP headers of one message: what `POST …/messages` understands, and its place."""
    known = dict(record.headers)
    headers = [
        ("Ibrik-Topic", topic.name),
        ("Ibrik-Partition", str(partition)),
        ("Ibrik-Offset", str(record.offset)),
        ("Ibrik-Timestamp", format_timestamp(record.timestamp_ms)),
        ("Ibrik-Id", quoted(identity(topic.id, partition, record.offset, known).encode())),
    ]
    if record.key is not None:
        headers.append(("Ibrik-Key", quoted(record.key)))
    headers += passed_on(known, _TRACE)
    return headers
