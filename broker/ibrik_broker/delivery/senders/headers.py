"""The headers of a push request: the message as a CloudEvent, its place, and the signature.

Pure; documented in docs/formats/push.md. What is the same for all messages of a destination is made
once (`fixed_headers`); `push_headers` adds what differs. Thousands are made in a second.
"""

import base64
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from multidict import CIMultiDict, istr

from ibrik_api import __version__
from ibrik_api.signatures import sign, webhook_id
from ibrik_api.timestamps import format_timestamp
from ibrik_broker.delivery.senders.parcel import Parcel
from ibrik_broker.partitions.attributes import (
    BYTES_TYPE,
    PLAIN_TYPE,
    PREFIX,
    header_name,
    header_value,
    identity,
    plain_source,
    quoted,
    quoted_attribute,
    stored_content_type,
)

Headers = CIMultiDict[str]

USER_AGENT = f"ibrik/{__version__}"
RESERVED_PREFIXES = ("ce-", "ibrik-", "webhook-", "proxy-")
RESERVED_NAMES = frozenset(
    {
        "connection",
        "content-encoding",
        "content-length",
        "expect",
        "host",
        "idempotency-key",
        "keep-alive",
        "te",
        "traceparent",
        "tracestate",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers of a destination that are left out: they belong to the message or to the connection."""

_TRACE = frozenset({"traceparent", "tracestate"})
_NAME_LIMIT = 64
"""Longer names are not remembered: they are strangers' and may be of any length."""

# Names that know their own lower-case form, so that no message pays for it.
_CONTENT_TYPE = istr("Content-Type")
_CE_SPECVERSION = istr("ce-specversion")
_CE_ID = istr("ce-id")
_CE_SOURCE = istr("ce-source")
_CE_TYPE = istr("ce-type")
_CE_TIME = istr("ce-time")
_WEBHOOK_ID = istr("webhook-id")
_WEBHOOK_TIMESTAMP = istr("webhook-timestamp")
_WEBHOOK_SIGNATURE = istr("webhook-signature")
_IDEMPOTENCY_KEY = istr("Idempotency-Key")
_TOPIC = istr("Ibrik-Topic")
_PARTITION = istr("Ibrik-Partition")
_OFFSET = istr("Ibrik-Offset")
_SUBSCRIPTION = istr("Ibrik-Subscription")
_CHANNEL = istr("Ibrik-Channel")
_ATTEMPT = istr("Ibrik-Attempt")
_MAX_ATTEMPTS = istr("Ibrik-Max-Attempts")
_KEY = istr("Ibrik-Key")
_REPLAY = istr("Ibrik-Replay")


def fixed_headers(headers: Mapping[str, str], authorization: str | None) -> Headers:
    """What every request to a destination has: its own headers, and who is sending."""
    fixed: Headers = CIMultiDict(
        {
            "User-Agent": USER_AGENT,
            "Accept-Encoding": "identity",  # the beginning of an answer is kept for people
            "Content-Type": BYTES_TYPE,
        }
    )
    for name, value in headers.items():
        lower = name.lower()
        if lower not in RESERVED_NAMES and not lower.startswith(RESERVED_PREFIXES):
            fixed[istr(name)] = value
    if authorization is not None:
        fixed["Authorization"] = authorization
    return fixed


def bearer(token: str) -> str:
    return f"Bearer {token}"


def basic(username: str, password: str) -> str:
    """RFC 7617, in UTF-8."""
    return "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode("ascii")


def push_headers(
    fixed: Headers, parcel: Parcel, now_ms: int, signing_secrets: Sequence[bytes] | None
) -> Headers:
    """All headers of one attempt."""
    record = parcel.record
    known = dict(record.headers)
    own_id = identity(parcel.topic_id, parcel.partition, record.offset, known)
    message_id, timestamp_s = webhook_id(own_id), now_ms // 1000
    headers = fixed.copy()
    content_type = stored_content_type(known)
    if content_type is not None:
        headers[_CONTENT_TYPE] = content_type
    pairs: list[tuple[str, str]] = [
        (_WEBHOOK_ID, message_id),
        (_WEBHOOK_TIMESTAMP, str(timestamp_s)),
        (_IDEMPOTENCY_KEY, message_id),
        (_TOPIC, parcel.topic),
        (_PARTITION, str(parcel.partition)),
        (_OFFSET, str(record.offset)),
        (_ATTEMPT, str(parcel.attempt)),
        (_MAX_ATTEMPTS, str(parcel.max_attempts)),
    ]
    if signing_secrets:
        signature = sign(signing_secrets, message_id, timestamp_s, record.value or b"")
        pairs.append((_WEBHOOK_SIGNATURE, signature))
    if parcel.subscription:
        pairs.append((_SUBSCRIPTION, parcel.subscription))
    if parcel.channel:
        pairs.append((_CHANNEL, parcel.channel))
    if parcel.replay is not None:
        pairs.append((_REPLAY, parcel.replay))
    if record.key is not None:
        pairs.append((_KEY, quoted(record.key)))
    pairs += _missing_attributes(parcel, known, own_id)
    for name, content in known.items():
        header = _header_of(name) if len(name) <= _NAME_LIMIT else header_name(name, _TRACE)
        if header is not None and content is not None:
            pairs.append((header, header_value(name, content)))
    headers.extend(pairs)
    return headers


def _missing_attributes(
    parcel: Parcel, known: Mapping[str, bytes | None], own_id: str
) -> Iterable[tuple[str, str]]:
    """What a CloudEvent needs and the record does not say itself."""
    if known.get(PREFIX + "specversion") is None:
        yield _CE_SPECVERSION, "1.0"
    if known.get(PREFIX + "id") is None:
        yield _CE_ID, quoted_attribute(own_id.encode())
    if known.get(PREFIX + "source") is None:
        yield _CE_SOURCE, plain_source(parcel.topic)
    if known.get(PREFIX + "type") is None:
        yield _CE_TYPE, PLAIN_TYPE
    if known.get(PREFIX + "time") is None:
        yield _CE_TIME, format_timestamp(parcel.record.timestamp_ms)


@lru_cache(maxsize=1024)
def _header_of(name: str) -> istr | None:
    header = header_name(name, _TRACE)
    return None if header is None else istr(header)
