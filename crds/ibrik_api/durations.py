"""Durations as people write them (`7d`, `1h30m`, `500ms`), as whole milliseconds inside.

Not ISO 8601 and never timedelta: Kubernetes' `format: duration` reads the same strings. Units come
from large to small, each at most once.
"""

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from ibrik_api.limits import Limits

PATTERN = r"^([0-9]{1,9}d)?([0-9]{1,9}h)?([0-9]{1,9}m)?([0-9]{1,9}s)?([0-9]{1,9}ms)?$"
SECOND_MS, MINUTE_MS, HOUR_MS, DAY_MS = 1_000, 60_000, 3_600_000, 86_400_000
MAX_MS = 36_500 * DAY_MS
"""A hundred years; a longer wish is a typing error."""

_UNITS_MS = (("d", DAY_MS), ("h", HOUR_MS), ("m", MINUTE_MS), ("s", SECOND_MS), ("ms", 1))
_PARSER = re.compile(PATTERN.removesuffix("$"))


def parse_duration(text: str) -> int:
    """Milliseconds of `text`; raises ValueError with a sentence."""
    match = _PARSER.fullmatch(text)
    if match is None or not text:
        raise ValueError(
            f"{text[:40]!r} is no duration: write whole numbers with d, h, m, s or ms, "
            "the large unit first, as in 7d or 1h30m"
        )
    total_ms = 0
    for part, (unit, unit_ms) in zip(match.groups(), _UNITS_MS, strict=True):
        total_ms += int(part.removesuffix(unit)) * unit_ms if part else 0
    if total_ms > MAX_MS:
        raise ValueError(f"{text[:40]!r} is longer than a hundred years: write a shorter duration")
    return total_ms


def format_duration(duration_ms: int) -> str:
    """The shortest spelling: `90_000` is `1m30s`; zero is `0s`."""
    parts = []
    for unit, unit_ms in _UNITS_MS:
        count, duration_ms = divmod(duration_ms, unit_ms)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def _from_input(value: Any) -> int:
    if not isinstance(value, str):
        raise ValueError("a duration needs a unit and quotes, as in '30s' or '7d'")  # noqa: TRY004
    return parse_duration(value)


DurationMs = Annotated[
    int,
    BeforeValidator(_from_input),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema(
        {
            "type": "string",
            "format": "duration",
            "pattern": PATTERN,
            "minLength": 2,
            "maxLength": 50,
        }
    ),
]
"""Milliseconds inside, text with a unit outside: a bare number would not say which unit it has."""


def duration_limits(least_ms: int, most_ms: int = MAX_MS) -> Limits:
    """Bounds of one field, refused in the spelling of durations rather than in milliseconds."""
    # A literal with days is an error in CEL; milliseconds it knows.
    rule = f"self >= duration('{least_ms}ms') && self <= duration('{most_ms}ms')"
    return Limits(least_ms, most_ms, format_duration, rule)
