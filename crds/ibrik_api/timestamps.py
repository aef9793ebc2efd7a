"""Timestamps at the API: RFC 3339, UTC, milliseconds and `Z`; inside, integer milliseconds."""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

_RFC3339 = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
MAX_TIMESTAMP_MS = 253_402_300_799_999
"""The last millisecond of the year 9999."""


@lru_cache(maxsize=4096)
def _format_second(second: int) -> str:
    # Neighbouring messages share their second, so the costly part is done once for thousands.
    return (_EPOCH + timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%S")


def format_timestamp(timestamp_ms: int) -> str:
    """`2026-11-27T10:00:00.123Z` for milliseconds since 1970, from 1970 to 9999."""
    second, millisecond = divmod(timestamp_ms, 1000)
    return f"{_format_second(second)}.{millisecond:03d}Z"


def parse_timestamp(text: str) -> int:
    """Milliseconds since 1970, rounded down; raises ValueError with a sentence."""
    if _RFC3339.fullmatch(text) is None:
        raise ValueError(
            f"{text[:40]!r} is no timestamp: write it like 2026-11-27T10:00:00.123Z (RFC 3339)"
        )
    try:
        moment = datetime.fromisoformat(text.upper())
    except ValueError as error:
        raise ValueError(f"{text!r} is no timestamp: {error}") from error
    return (moment - _EPOCH) // _MILLISECOND
