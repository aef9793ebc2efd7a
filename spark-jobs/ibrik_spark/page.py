"""The traffic report as one page that needs nothing else: markup, styles and charts as SVG.

Pure: a report in, a page out. Bars and shaded stretches are all that is drawn.
"""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from ibrik_api.timestamps import format_timestamp, parse_timestamp

from .reports import Part, Report

MINUTE_MS = 60_000
MAX_BARS = 240
WIDTH, HEIGHT = 960, 160
SPANS = (1, 2, 5, 10, 15, 30, 60, 120, 240, 360, 720, 1_440, 10_080)
"""Minutes of one bar; the first of these with which all fit."""
STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1000px; margin: 2rem auto; padding: 1rem; }
svg { width: 100%; height: auto; } .bar { fill: #3b7dd8; } .quiet { fill: #8884; }
td, th { padding: 0 1.5rem 0 0; text-align: left; } td.n { text-align: right; }
small { opacity: .7; }
"""


class Bar(NamedTuple):
    """Messages that were appended from `start_ms` on, for one span."""

    start_ms: int
    records: int


def traffic_page(report: Report) -> str:
    """A whole HTML document."""
    topics = "".join(_topic(part) for part in report.parts)
    return (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        f"<title>Traffic</title>\n<style>{STYLE}</style>\n<h1>Traffic</h1>\n"
        f"<p><small>Sealed messages, as of {escape(report.ended_at)}</small></p>\n"
        f"{f'<p>{escape(report.detail)}</p>' if report.detail else ''}{topics}</html>\n"
    )


def bars_of(minutes: Sequence[Mapping[str, Any]]) -> tuple[int, list[Bar]]:
    """Minutes of one bar, and the bars from the first minute to the last, empty ones too."""
    counts = {parse_timestamp(m["time"]) // MINUTE_MS: m["records"] for m in minutes}
    first, last = min(counts), max(counts)
    whole = last - first + 1
    span = next((s for s in SPANS if whole // s < MAX_BARS), whole // MAX_BARS + 1)
    start = first - first % span
    heights = [0] * ((last - start) // span + 1)
    for minute, records in counts.items():
        heights[(minute - start) // span] += records
    return span, [Bar((start + n * span) * MINUTE_MS, h) for n, h in enumerate(heights)]


def _topic(part: Part) -> str:
    facts = part.facts
    head = f"<h2>{escape(part.topic)}</h2>\n"
    if not part.rows:
        return f"{head}<p>Nothing is sealed.</p>\n"
    span, bars = bars_of(facts["minutes"])
    damaged = f"; {facts['damaged']:,} cannot be read" if facts["damaged"] else ""
    return (
        f"{head}<p>{part.rows:,} messages, {facts['bytes']:,} bytes{damaged}. "
        f"A bar is {_span_text(span)}; grey is quiet.</p>\n{_chart(bars)}"
        f"{_table('Partition', 'partition', facts['partitions'])}"
        f"{_table('Key', 'key', facts['hotKeys'])}"
    )


def _chart(bars: Sequence[Bar]) -> str:
    most = max(bar.records for bar in bars)
    shapes = "".join(_shapes(bars, most, WIDTH / len(bars)))
    first, last = (escape(format_timestamp(bars[at].start_ms)[:16]) for at in (0, -1))
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="Messages over time, at most {most:,} in a bar">{shapes}</svg>\n'
        f"<p><small>{first} to {last} UTC; the highest bar has {most:,} messages</small></p>\n"
    )


def _shapes(bars: Sequence[Bar], most: int, width: float) -> Iterator[str]:
    for number, bar in enumerate(bars):
        height = HEIGHT * bar.records / most
        kind, top, tall = ("bar", HEIGHT - height, height) if bar.records else ("quiet", 0, HEIGHT)
        title = f"{format_timestamp(bar.start_ms)[:16]} UTC: {bar.records:,}"
        yield (
            f'<rect class="{kind}" x="{number * width:.2f}" y="{top:.2f}" '
            f'width="{width:.2f}" height="{tall:.2f}"><title>{title}</title></rect>'
        )


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
