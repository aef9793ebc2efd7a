"""The traffic report as one page that needs nothing else: plotly draws it, its script is inside.

Pure: a report in, a page out.
"""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from plotly.offline import get_plotlyjs
from plotly.subplots import make_subplots

from ibrik_api.timestamps import format_timestamp, parse_timestamp

from .reports import Part, Report

MINUTE_MS = 60_000
MAX_BARS = 1_000
SPANS = (1, 2, 5, 10, 15, 30, 60, 120, 240, 360, 720, 1_440, 10_080)
"""Minutes of one bar; the first of these with which all fit."""
GREY = "rgba(128, 128, 128, 0.25)"  # seen on a light page and on a dark one
CONFIG = {"displayModeBar": False, "responsive": True}
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
"""The browser holds the page to it: nothing is loaded, and nothing is sent."""
STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1000px; margin: 2rem auto; padding: 1rem; }
td, th { padding: 0 1.5rem 0 0; text-align: left; } td.n { text-align: right; }
small { opacity: .7; }
"""


class Bar(NamedTuple):
    """Messages that were appended from `start_ms` on, for one span."""

    start_ms: int
    records: int
    size_bytes: int


def traffic_page(report: Report) -> str:
    """A whole HTML document."""
    topics = "".join(_topic(part) for part in report.parts)
    return (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f"<title>Traffic</title>\n<style>{STYLE}</style>\n<script>{get_plotlyjs()}</script>\n"
        f"<h1>Traffic</h1>\n"
        f"<p><small>Sealed messages, as of {escape(report.ended_at)}</small></p>\n"
        f"{f'<p>{escape(report.detail)}</p>' if report.detail else ''}{topics}</html>\n"
    )


def bars_of(minutes: Sequence[Mapping[str, Any]]) -> tuple[int, list[Bar]]:
    """Minutes of one bar, and the bars from the first minute to the last, empty ones too."""
    counts = {parse_timestamp(m["time"]) // MINUTE_MS: m for m in minutes}
    first, last = min(counts), max(counts)
    whole = last - first + 1
    span = next((s for s in SPANS if whole // s < MAX_BARS), whole // MAX_BARS + 1)
    start = first - first % span
    sums = [[0, 0] for _ in range((last - start) // span + 1)]
    for minute, counted in counts.items():
        bar = sums[(minute - start) // span]
        bar[0] += counted["records"]
        bar[1] += counted["bytes"]
    return span, [Bar((start + n * span) * MINUTE_MS, *both) for n, both in enumerate(sums)]


def _topic(part: Part) -> str:
    facts = part.facts
    head = f"<h2>{escape(part.topic)}</h2>\n"
    if not part.rows:
        return f"{head}<p>Nothing is sealed.</p>\n"
    span, bars = bars_of(facts["minutes"])
    damaged = f"; {facts['damaged']:,} cannot be read" if facts["damaged"] else ""
    return (
        f"{head}<p>{part.rows:,} messages, {facts['bytes']:,} bytes{damaged}. "
        f"A bar is {_span_text(span)}; grey is quiet. Times are UTC.</p>\n"
        f"{_chart(span, bars, facts['quiet'])}\n"
        f"{_table('Partition', 'partition', facts['partitions'])}"
        f"{_table('Key', 'key', facts['hotKeys'])}"
    )


def _chart(span: int, bars: Sequence[Bar], quiet: Sequence[Mapping[str, Any]]) -> str:
    """Messages and bytes, one above the other; what is dragged in one is zoomed in both."""
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.06)
    width = span * MINUTE_MS
    shared = {"x": [_time(bar.start_ms + width // 2) for bar in bars], "width": width}
    figure.add_bar(name="messages", y=[bar.records for bar in bars], **shared, row=1, col=1)
    figure.add_bar(name="bytes", y=[bar.size_bytes for bar in bars], **shared, row=2, col=1)
    for stretch in quiet:
        start_ms = parse_timestamp(stretch["from"])
        end_ms = start_ms + stretch["minutes"] * MINUTE_MS
        figure.add_vrect(_time(start_ms), _time(end_ms), fillcolor=GREY, line_width=0)
    figure.update_traces(
        marker_line_width=0, hovertemplate="around %{x|%Y-%m-%d %H:%M}: %{y:,}<extra></extra>"
    )
    figure.update_yaxes(gridcolor=GREY, zerolinecolor=GREY, rangemode="tozero")
    figure.update_yaxes(title_text="messages", row=1, col=1)
    figure.update_yaxes(title_text="bytes", row=2, col=1)
    figure.update_layout(
        bargap=0,
        font_color="gray",
        height=420,
        margin={"l": 70, "r": 10, "t": 10, "b": 30},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        showlegend=False,
    )
    return str(figure.to_html(full_html=False, include_plotlyjs=False, config=CONFIG))


def _time(time_ms: int) -> str:
    """Without a zone: the page shows UTC wherever it is opened."""
    return format_timestamp(time_ms).removesuffix("Z")


def _table(head: str, name: str, rows: Sequence[Mapping[str, Any]]) -> str:
    if not rows:
        return ""
    body = "".join(
        f"<tr><td>{escape(str(row[name]))}</td><td class=n>{row['records']:,}</td>"
        f"<td class=n>{row['share']:.0%}</td></tr>\n"
        for row in rows
    )
    return f"<table><tr><th>{head}</th><th>Messages</th><th>Share</th></tr>\n{body}</table>\n"


def _span_text(minutes: int) -> str:
    if minutes == 1:
        return "a minute"
    return f"{minutes // 60} h" if minutes % 60 == 0 else f"{minutes} min"
