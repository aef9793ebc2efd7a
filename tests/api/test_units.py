"""Durations, sizes and timestamps: text outside, integers inside, and back."""

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibrik_api import durations, quantities
from ibrik_api.durations import MAX_MS, format_duration, parse_duration
from ibrik_api.quantities import MAX_BYTES, format_quantity, parse_quantity
from ibrik_api.timestamps import MAX_TIMESTAMP_MS, format_timestamp, parse_timestamp


@pytest.mark.parametrize(
    ("text", "duration_ms"),
    [
        ("7d", 604_800_000),
        ("1h30m", 5_400_000),
        ("30s", 30_000),
        ("500ms", 500),
        ("0s", 0),
        ("90m", 5_400_000),
        ("1d1h1m1s1ms", 90_061_001),
    ],
)
def test_a_duration_is_milliseconds(text: str, duration_ms: int) -> None:
    assert parse_duration(text) == duration_ms


@pytest.mark.parametrize(
    "text",
    ["", "7", "d", "-1s", "1.5h", "1 h", "1s1h", "1s\n", "P1D", "7D", "1y", "99999999d", "\u0661s"],
)
def test_what_is_no_duration_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=r"7d or 1h30m|shorter"):
        parse_duration(text)


@given(st.integers(0, MAX_MS))
def test_a_duration_survives_its_text(duration_ms: int) -> None:
    text = format_duration(duration_ms)
    assert parse_duration(text) == duration_ms
    assert re.fullmatch(durations.PATTERN, text)


@pytest.mark.parametrize(
    ("value", "size_bytes"),
    [("1Gi", 2**30), ("256Mi", 2**28), (1024, 1024), ("1k", 1000), ("1.5Ki", 1536), ("0", 0)],
)
def test_a_quantity_is_bytes(value: str | int, size_bytes: int) -> None:
    assert parse_quantity(value) == size_bytes


@pytest.mark.parametrize(
    "value", ["", "Gi", "-1", -1, "1GiB", "1 Gi", "1e3", "0.3", "1m", "9P9", "9999999P", "1Gi\n"]
)
def test_what_is_no_quantity_is_refused(value: str | int) -> None:
    with pytest.raises(ValueError, match=r"write"):
        parse_quantity(value)


@given(st.integers(0, MAX_BYTES))
def test_a_quantity_survives_its_text(size_bytes: int) -> None:
    text = format_quantity(size_bytes)
    assert parse_quantity(text) == size_bytes
    assert re.fullmatch(quantities.PATTERN, text)


def test_the_shortest_exact_quantity_is_written() -> None:
    assert [format_quantity(n) for n in (0, 1000, 1024, 2**20, 3 * 2**30)] == [
        "0",
        "1000",
        "1Ki",
        "1Mi",
        "3Gi",
    ]


@pytest.mark.parametrize(
    ("text", "timestamp_ms"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2026-11-27T10:00:00.123Z", 1_795_773_600_123),
        ("2026-11-27T11:00:00.123999+01:00", 1_795_773_600_123),
        ("2026-11-27t10:00:00z", 1_795_773_600_000),
        ("1969-12-31T23:59:59.999Z", -1),
    ],
)
def test_a_timestamp_is_milliseconds(text: str, timestamp_ms: int) -> None:
    assert parse_timestamp(text) == timestamp_ms


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2026-11-27",
        "2026-11-27T10:00:00",
        "2026-13-01T00:00:00Z",
        "2026-W48-5T10:00:00Z",
    ],
)
def test_what_is_no_timestamp_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no timestamp"):
        parse_timestamp(text)


@given(st.integers(0, MAX_TIMESTAMP_MS))
def test_a_timestamp_survives_its_text(timestamp_ms: int) -> None:
    text = format_timestamp(timestamp_ms)
    assert parse_timestamp(text) == timestamp_ms
    expected = datetime.fromtimestamp(timestamp_ms // 1000, UTC)
    assert text == f"{expected:%Y-%m-%dT%H:%M:%S}.{timestamp_ms % 1000:03d}Z"
