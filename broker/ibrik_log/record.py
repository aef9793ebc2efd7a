"""The record: what a producer gives, what a reader gets. Values only; `batch` encodes them."""

from typing import NamedTuple

Headers = list[tuple[str, bytes | None]]


class Record(NamedTuple):
    """What a producer gives. The default list of headers is shared: never change it in place."""

    key: bytes | None
    value: bytes | None
    headers: Headers = []  # noqa: RUF012 - a NamedTuple's default; read only


class StoredRecord(NamedTuple):
    """What a reader gets. `timestamp_ms` is the time of the append, not of the event."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers
