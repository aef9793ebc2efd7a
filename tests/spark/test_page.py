"""The page of the traffic report: complete in itself, and what it draws adds up."""

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from ibrik_api.timestamps import format_timestamp
from ibrik_spark.errors import ExitCode
from ibrik_spark.page import MAX_BARS, POLICY, bars_of, traffic_page
from ibrik_spark.reports import Part, Report

START_MS = 1_700_000_000_000 // 3_600_000 * 3_600_000
KEY = "</script><script>alert(1)</script>"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
OFFLINE = ("--host-resolver-rules=MAP * ~NOTFOUND", "--disable-background-networking")


def minutes(counts: dict[int, int]) -> list[dict[str, Any]]:
    return [
        {"time": format_timestamp(START_MS + at * 60_000), "records": n, "bytes": 3 * n}
        for at, n in counts.items()
    ]


def report(**facts: Any) -> Report:
    whole = {
        "bytes": 12,
        "damaged": 0,
        "partitions": [{"partition": 0, "records": 6, "share": 1.0}],
        "hotKeys": [{"key": KEY, "records": 6, "share": 1.0}],
        "quiet": [{"from": format_timestamp(START_MS + 60_000), "minutes": 2}],
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


def test_the_page_needs_nothing_from_elsewhere_and_the_browser_holds_it_to_that() -> None:
    found = tags(traffic_page(report()))
    assert {name for name, _ in found} & {"link", "img", "iframe"} == set()
    assert [
        attributes for name, attributes in found if name == "script" and "src" in attributes
    ] == []
    policies = [a["content"] for name, a in found if name == "meta" and "http-equiv" in a]
    assert policies == [POLICY]
    assert POLICY.startswith("default-src 'none'")


def test_a_key_is_text_whatever_is_in_it() -> None:
    page = traffic_page(report())
    assert KEY not in page
    assert "&lt;/script&gt;&lt;script&gt;alert(1)" in page


def test_bars_hold_every_message_and_byte_however_long_the_time() -> None:
    for last in (0, 100, 999, 1_000, 5_000, 600_000, 60_000_000):
        _, bars = bars_of(minutes({0: 3, last // 2: 2, last: 5} if last else {0: 10}))
        assert len(bars) <= MAX_BARS + 1
        assert sum(bar.records for bar in bars) == 10
        assert sum(bar.size_bytes for bar in bars) == 30


def test_minutes_without_a_message_are_bars_of_no_height() -> None:
    span, bars = bars_of(minutes({0: 4, 3: 2}))
    assert (span, [bar.records for bar in bars]) == (1, [4, 0, 0, 2])


def test_a_topic_of_which_nothing_is_sealed_has_no_chart() -> None:
    parts = [Part("orders", ExitCode.NOTHING_TO_DO)]
    page = traffic_page(Report("traffic", ExitCode.NOTHING_TO_DO, "a", "b", "", parts))
    assert "Nothing is sealed." in page
    assert "Plotly.newPlot(" not in page.rpartition("</h1>")[2]


def test_a_page_can_be_sent_by_mail() -> None:
    assert len(traffic_page(report())) < 6_000_000


if CHROMIUM:

    @pytest.mark.slow
    def test_a_browser_without_a_network_draws_bars_and_quiet_and_complains_of_nothing(
        tmp_path: Path,
    ) -> None:
        path = tmp_path / "traffic.html"
        path.write_text(traffic_page(report()), encoding="utf-8")
        command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", *OFFLINE]
        command += [f"--user-data-dir={tmp_path / 'profile'}", "--enable-logging=stderr"]
        command += ["--virtual-time-budget=20000", "--dump-dom", path.as_uri()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=True)
        drawn = done.stdout.rpartition("</h1>")[2]
        assert len(re.findall(r'<g class="point">', drawn)) == 8  # four minutes, in two charts
        assert len(re.findall(r"<path [^>]*data-index=", drawn)) == 2  # one stretch, in both
        assert "CONSOLE" not in done.stderr
