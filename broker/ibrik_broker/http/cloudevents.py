"""CloudEvents 1.0 in and out: HTTP binary and structured mode, the JSON formats, record headers.

In the log an event is a record as the Kafka protocol binding of CloudEvents writes it in binary
mode: attributes are headers `ce_<name>` in UTF-8, `datacontenttype` is `content-type`, `data` is
the value, and the extension `partitionkey` is the key. Pure functions.
"""

import base64
import binascii
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote_to_bytes

import msgspec

from ibrik_api.errors import Refusal
from ibrik_broker.partitions.attributes import CONTENT_TYPE, PREFIX
from ibrik_broker.partitions.messages import Message, Record

REQUIRED = ("id", "source", "type")
OWN_MEMBERS = frozenset({"data", "data_base64", "datacontenttype"})

_ATTRIBUTE = re.compile(r"[a-z0-9]{1,64}")
_JSON_TYPE = re.compile(r"[^;]*[/+]json\s*(;.*)?", re.IGNORECASE)
_events_decoder = msgspec.json.Decoder(list[msgspec.Raw])
_event_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])

Headers = list[tuple[str, bytes | None]]


def binary_attributes(pairs: Iterable[tuple[bytes, bytes]]) -> dict[str, bytes]:
    """The attributes in HTTP headers `ce-<name>: value`, decoded (HTTP binding §3.1.3.2)."""
    attributes: dict[str, bytes] = {}
    for name, value in pairs:
        attribute = name.decode("ascii").removeprefix("ce-")
        if not _ATTRIBUTE.fullmatch(attribute):
            raise _invalid(f"{attribute!r} is no attribute name: only a-z and 0-9 are allowed")
        if attribute in attributes:
            raise _invalid(f"the attribute {attribute!r} is given twice")
        attributes[attribute] = unquote_to_bytes(value) if b"%" in value else value
        check_text(attribute, attributes[attribute])
    check_required(attributes)
    return attributes


def check_text(attribute: str, value: bytes) -> None:
    try:
        value.decode()
    except UnicodeDecodeError as error:
        raise _invalid(f"the attribute {attribute!r} is not UTF-8") from error


def check_required(attributes: dict[str, bytes]) -> None:
    if attributes.get("specversion") != b"1.0":
        raise _invalid("specversion has to be 1.0")
    for name in REQUIRED:
        if not attributes.get(name):
            raise _invalid(f"the attribute {name!r} is missing or empty")


def record_headers(attributes: dict[str, bytes]) -> Headers:
    return [(PREFIX + name, value) for name, value in attributes.items()]


def parse_events(body: bytes) -> list[Message | Refusal]:
    """A batch (JSON batch format): each event as a message, or what is wrong with it."""
    try:
        documents = _events_decoder.decode(body)
    except msgspec.ValidationError as error:
        raise Refusal("invalid-request", f"The body is no batch of events: {error}.") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refusal("invalid-json", f"The body is no JSON: {error}.") from error
    return [_event_or_refusal(document) for document in documents]


def _event_or_refusal(document: msgspec.Raw) -> Message | Refusal:
    try:
        return parse_event(document)
    except Refusal as refusal:
        return refusal


def parse_event(document: bytes | msgspec.Raw) -> Message:
    """One structured event (JSON event format). Raises Refusal `invalid-cloudevent`."""
    try:
        members = _event_decoder.decode(document)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _invalid(f"it is no JSON object ({error})") from error
    attributes = {
        name: _attribute_text(name, raw)
        for name, raw in members.items()
        if name not in OWN_MEMBERS and bytes(raw) != b"null"
    }
    check_required(attributes)
    content_type, value = _event_data(members)
    headers = record_headers(attributes)
    if content_type is not None:
        headers.insert(0, (CONTENT_TYPE, content_type))
    key = attributes.get("partitionkey")
    return Message(Record(key, value, headers), None, attributes["id"], attributes["source"])


def _attribute_text(name: str, raw: msgspec.Raw) -> bytes:
    if not _ATTRIBUTE.fullmatch(name):
        raise _invalid(f"{name[:60]!r} is no attribute name: only a-z and 0-9 are allowed")
    match _decode(name, raw):
        case str(text):
            return text.encode()
        case bool(flag):
            return b"true" if flag else b"false"
        case int(number):
            return str(number).encode()
        case _:
            raise _invalid(f"the attribute {name!r} is no string, boolean or integer")


def _decode(name: str, raw: msgspec.Raw) -> Any:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _invalid(f"the member {name!r} is not valid ({error})") from error


def _event_data(members: dict[str, msgspec.Raw]) -> tuple[bytes | None, bytes | None]:
    """Content type and payload: `data` as the bytes received when it is JSON, text unescaped."""
    declared = members.get("datacontenttype")
    content_type = None if declared is None else _attribute_text("datacontenttype", declared)
    raw, encoded = members.get("data"), members.get("data_base64")
    if encoded is not None:
        if raw is not None:
            raise _invalid("it has both data and data_base64")
        text = _decode("data_base64", encoded)
        return content_type, _from_base64(text)
    if raw is None:
        return content_type, None
    payload = bytes(raw)
    check_text("data", payload)
    if content_type is None:
        return b"application/json", payload  # what the JSON format implies
    if not _JSON_TYPE.fullmatch(content_type.decode()) and payload.startswith(b'"'):
        return content_type, _decode("data", raw).encode()
    return content_type, payload


def _from_base64(text: Any) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        raise _invalid("data_base64 is no base64") from error


def _invalid(fault: str) -> Refusal:
    return Refusal("invalid-cloudevent", f"This is no CloudEvent 1.0: {fault}.")
