"""A record as every reader reports it, so that all of them can be compared with `==`."""

from typing import NamedTuple


class ReadRecord(NamedTuple):
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
