"""Times and durations in queries. Pure functions; the formats are those of `ibrik_api`."""

from ibrik_api.durations import parse_duration
from ibrik_api.errors import Refusal
from ibrik_api.timestamps import parse_timestamp


def parse_time(text: str) -> int:
    """Milliseconds since 1970 of an RFC 3339 time, or of a whole number of milliseconds."""
    if text.isascii() and text.isdigit() and len(text) <= 15:
        return int(text)
    try:
        return parse_timestamp(text.replace(" ", "+"))  # a bare + in a query reads as a space
    except ValueError as error:
        raise Refusal("invalid-request", f"timestamp: {error}.") from error


def parse_wait(text: str, limit_ms: int) -> int:
    """Milliseconds of `wait=`."""
    try:
        wait_ms = parse_duration(text)
    except ValueError as error:
        raise Refusal("invalid-request", f"wait: {error}.") from error
    if wait_ms > limit_ms:
        raise Refusal("invalid-request", f"wait={text[:40]} is longer than {limit_ms // 1000}s.")
    return wait_ms
