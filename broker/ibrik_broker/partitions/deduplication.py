"""The deduplication window of one topic: a repeated id answers with the original offset.

Holds the digest of (source, id) for two minutes or 200,000 ids, whichever comes first, with a
digest of the payload, so that one id with two payloads is noticed. Pure: time is passed in. Lives
on the event loop; rebuilt from a snapshot and the log after a restart.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from struct import Struct
from typing import NamedTuple

from ibrik_log.record import Headers, Record, StoredRecord

ID_HEADER = "ibrik-id"
"""The record header that carries an Idempotency-Key; a CloudEvent's own id is in `ce_id`."""
PUBLISHER_HEADER = "ibrik-publisher"
"""The record header with the id of the registered publisher; ids are its own, unless it says
`ce_source`. Only the door writes it."""
CE_ID_HEADER = "ce_id"
CE_SOURCE_HEADER = "ce_source"
ID_LIMIT = 200_000
DIGEST_BYTES = 16
_KNOWN = Struct(">Hqq8s")


class Known(NamedTuple):
    """Where the message with an id stands, and what it held."""

    partition: int
    offset: int
    timestamp_ms: int
    payload: bytes


class Pending(NamedTuple):
    """The message with this id is on its way to the disk: at `position` within `request`."""

    request: object
    position: int
    payload: bytes


class Identified(NamedTuple):
    """One entry of the window, as it is saved and found in the log."""

    identity: bytes
    known: Known


def identity_digest(message_id: bytes, source: bytes | None) -> bytes:
    """16 bytes that stand for (source, id); the length keeps the two apart."""
    prefix = len(source or b"").to_bytes(4, "big") + (source or b"")
    return blake2b(prefix + message_id, digest_size=DIGEST_BYTES).digest()


def payload_digest(record: Record | StoredRecord) -> bytes:
    """8 bytes that stand for key and value."""
    digest = blake2b(record.value or b"", digest_size=8)
    digest.update(b"\0" + (record.key or b""))
    return digest.digest()


def identity_in(headers: Headers) -> bytes | None:
    """The identity digest of a stored record, None when its producer gave no id."""
    found = dict(headers)
    message_id = found.get(ID_HEADER) or found.get(CE_ID_HEADER)
    if not message_id:
        return None
    return identity_digest(message_id, source_in(found))


def source_in(headers: Mapping[str, bytes | None]) -> bytes | None:
    """Whose ids a record's are: those of its event source, else of its registered publisher."""
    return headers.get(CE_SOURCE_HEADER) or headers.get(PUBLISHER_HEADER)


class DeduplicationWindow:
    """Ids seen lately, oldest first, and those still on their way."""

    def __init__(self, window_ms: int, id_limit: int = ID_LIMIT) -> None:
        self.window_ms = window_ms
        self._id_limit = id_limit
        # A plain dict walks over every entry deleted at its front to find the first that is left.
        # Packed, since there may be 200,000: 250 bytes an id instead of 400.
        self._known: OrderedDict[bytes, bytes] = OrderedDict()
        self._pending: dict[bytes, Pending] = {}

    def __len__(self) -> int:
        return len(self._known)

    def find(self, identity: bytes, now_ms: int) -> Known | Pending | None:
        """The message with this identity, if it is in the window or on its way."""
        self._expire(now_ms)
        pending = self._pending.get(identity)
        if pending is not None:
            return pending
        packed = self._known.get(identity)
        return None if packed is None else Known._make(_KNOWN.unpack(packed))

    def begin(self, identity: bytes, pending: Pending) -> None:
        """A message with this identity is on its way."""
        self._pending[identity] = pending

    def settle(self, identity: bytes, known: Known | None) -> None:
        """It arrived (or, with None, was refused and may be sent again)."""
        self._pending.pop(identity, None)
        if known is not None:
            self.remember(identity, known)

    def remember(self, identity: bytes, known: Known) -> None:
        self._known.pop(identity, None)  # to the end of the order
        self._known[identity] = _KNOWN.pack(*known)
        if len(self._known) > self._id_limit:
            self._known.popitem(last=False)

    def entries(self, now_ms: int) -> list[Identified]:
        """All that a snapshot must hold, oldest first."""
        self._expire(now_ms)
        return [
            Identified(identity, Known._make(_KNOWN.unpack(packed)))
            for identity, packed in self._known.items()
        ]

    def restore(self, entries: Iterable[Identified], now_ms: int) -> None:
        """Take entries of a snapshot and of the log back; they come in the order of their time."""
        for identity, known in entries:
            if known.timestamp_ms > now_ms - self.window_ms:
                self.remember(identity, known)

    def _expire(self, now_ms: int) -> None:
        horizon = now_ms - self.window_ms
        while self._known:
            identity, packed = next(iter(self._known.items()))
            if Known._make(_KNOWN.unpack(packed)).timestamp_ms > horizon:
                return
            del self._known[identity]
