"""The page of the traffic report: complete in itself, and what it draws adds up."""

import re
from html.parser import HTMLParser
from typing import Any

from ibrik_api.timestamps import format_timestamp
from ibrik_spark.errors import ExitCode
from ibrik_spark.page import MAX_BARS, bars_of, traffic_page
from ibrik_spark.reports import Part, Report

START_MS = 1_700_000_000_000 // 3_600_000 * 3_600_000


def minutes(counts: dict[int, int]) -> list[dict[str, Any]]:
    return [
        {"time": format_timestamp(START_MS + at * 60_000), "records": n, "bytes": n}
        for at, n in counts.items()
    ]


def report(**facts: Any) -> Report:
    whole = {
        "bytes": 12,
        "damaged": 0,
        "partitions": [{"partition": 0, "records": 6, "share": 1.0}],
        "hotKeys": [{"key": "<script>alert(1)</script>", "records": 6, "share": 1.0}],
        "minutes": minutes({0: 4, 3: 2}),
    }
    parts = [Part("orders", ExitCode.DONE, 6, facts=whole | facts)]
    return Report("traffic", ExitCode.DONE, "a", "b", "", parts)


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


def tags(page: str) -> list[tuple[str, dict[str, str | None]]]:
    parser = Tags()
    parser.feed(page)
    return parser.seen


def test_the_page_needs_nothing_from_elsewhere() -> None:
    page = traffic_page(report())
    names = {name for name, _ in tags(page)}
    assert "svg" in names
    assert names & {"script", "link", "img", "iframe"} == set()
    assert not re.search(r"https?://|url\(|@import", page)


def test_a_key_is_text_whatever_is_in_it() -> None:
    page = traffic_page(report())
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_quiet_minutes_are_shaded_and_the_others_have_a_bar() -> None:
    kinds = [
        attributes["class"] for tag, attributes in tags(traffic_page(report())) if tag == "rect"
    ]
    assert kinds == ["bar", "quiet", "quiet", "bar"]


def test_bars_hold_every_message_however_long_the_time() -> None:
    for last in (0, 100, 239, 240, 5_000, 600_000, 60_000_000):
        _, bars = bars_of(minutes({0: 3, last // 2: 2, last: 5} if last else {0: 10}))
        assert len(bars) <= MAX_BARS + 1
        assert sum(bar.records for bar in bars) == 10


def test_a_topic_of_which_nothing_is_sealed_has_no_chart() -> None:
    parts = [Part("orders", ExitCode.NOTHING_TO_DO)]
    page = traffic_page(Report("traffic", ExitCode.NOTHING_TO_DO, "a", "b", "", parts))
    assert "Nothing is sealed." in page
    assert "<svg" not in page
