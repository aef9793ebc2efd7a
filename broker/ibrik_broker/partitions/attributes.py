"""What the headers of a record stand for, and how they are written as headers of HTTP.

An event is stored as the Kafka protocol binding of CloudEvents writes it: attributes are headers
`ce_<name>`, the content type is `content-type`. Reading over HTTP and delivering both show records
by these rules. Pure functions.
"""

import re
from collections.abc import Iterable, Mapping
from urllib.parse import quote

from ibrik_api.names import message_id
from ibrik_broker.partitions.deduplication import ID_HEADER, PUBLISHER_HEADER
from ibrik_log.record import StoredRecord

PREFIX = "ce_"
CONTENT_TYPE = "content-type"
BYTES_TYPE = "application/octet-stream"
OWN_HEADERS = frozenset({CONTENT_TYPE, ID_HEADER, PUBLISHER_HEADER})
PLAIN_TYPE = "ibrik.message"
"""The event type of a message that was not published as an event."""

_HEADER_TEXT = re.compile(rb"[\x20-\x7e]*")
_PLAIN = re.compile(rb"[\x20-\x24\x26-\x7e]*")
_EVENT_PLAIN = re.compile(rb"[\x21\x23\x24\x26-\x7e]*")
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_EVENT_SAFE = "!#$&'()*+,/:;<=>?@[\\]^`{|}~"
_HEADER_SAFE = ' "' + _EVENT_SAFE
"""All that a header value may hold in ASCII but %, which begins an escape."""


def plain_source(topic_name: str) -> str:
    """The event source of a message that was not published as an event."""
    return f"/topics/{topic_name}"


def identity(
    topic_id: str, partition: int, offset: int, headers: Mapping[str, bytes | None]
) -> str:
    """The client's own id, else the one that is computed from the place."""
    own = headers.get(ID_HEADER) or headers.get(PREFIX + "id")
    if own:
        return own.decode(errors="replace")
    return message_id(topic_id, partition, offset)


def passed_on(
    headers: Mapping[str, bytes | None], under_own_name: frozenset[str]
) -> Iterable[tuple[str, str]]:
    """The record's own headers as headers of HTTP; what cannot be one is left out."""
    for name, content in headers.items():
        header = header_name(name, under_own_name)
        if header is not None and content is not None:
            yield header, header_value(name, content)


def header_name(name: str, under_own_name: frozenset[str]) -> str | None:
    """The header of HTTP that a record header goes out as; None when it cannot be one."""
    if name in OWN_HEADERS or _TOKEN.fullmatch(name) is None:
        return None
    if name.startswith(PREFIX):
        return f"ce-{name.removeprefix(PREFIX)}"
    return name if name in under_own_name else f"Ibrik-Meta-{name}"


def header_value(name: str, content: bytes) -> str:
    return quoted_attribute(content) if name.startswith(PREFIX) else quoted(content)


def content_type_of(record: StoredRecord) -> str:
    """The stored content type when it can stand in a header, else that of plain bytes."""
    return stored_content_type(dict(record.headers)) or BYTES_TYPE


def stored_content_type(headers: Mapping[str, bytes | None]) -> str | None:
    """The stored content type when it can stand in a header."""
    stored = headers.get(CONTENT_TYPE)
    if stored and _HEADER_TEXT.fullmatch(stored):
        return stored.decode("ascii")
    return None


def quoted(content: bytes) -> str:
    """Bytes as percent-encoded text for a header; publishing reads them back."""
    if _PLAIN.fullmatch(content):
        return content.decode("ascii")
    return quote(content, safe=_HEADER_SAFE)


def quoted_attribute(content: bytes) -> str:
    """An attribute of an event for a header: space and quote are encoded too (§3.1.3.2)."""
    if _EVENT_PLAIN.fullmatch(content):
        return content.decode("ascii")
    return quote(content, safe=_EVENT_SAFE)
