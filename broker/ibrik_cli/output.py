"""How results look: tables for people, JSON and YAML for programs, numbers and sizes in words."""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TextIO

from ibrik_cli.options import Output

Document = Mapping[str, Any]
FIGURE = re.compile(r"[0-9][0-9,.]*( [kMGTP]?B| ms)?")
NO_TERMINAL_COLUMNS = 4_096
"""Width when nobody looks: a pipe must not cut what it carries."""


def emit(
    documents: Sequence[Document],
    output: Output,
    *,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    empty: str = "",
    is_single: bool = False,
) -> None:
    """Print documents in the form that was asked for; `rows` are their table."""
    match output:
        case Output.JSON:
            print_json(documents[0] if is_single else list(documents))
        case Output.YAML:
            print_yaml(documents[0] if is_single else list(documents))
        case Output.TABLE if rows:
            print_table(columns, rows)
        case Output.TABLE:
            sys.stderr.write(f"{empty}\n" if empty else "")


def print_json(content: Any) -> None:
    sys.stdout.write(json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def print_yaml(content: Any) -> None:
    import yaml

    sys.stdout.write(yaml.safe_dump(content, sort_keys=False, allow_unicode=True))


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], stream: TextIO | None = None
) -> None:
    """Columns with two blanks between; numbers to the right. Bold heads on a terminal only."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    stream = stream or sys.stdout
    table = Table(box=None, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0))
    for index, name in enumerate(columns):
        is_number = all(FIGURE.fullmatch(row[index]) for row in rows)
        table.add_column(
            Text(name), justify="right" if is_number and index else "left", no_wrap=True
        )
    for row in rows:
        table.add_row(*map(Text, row))
    width = None if stream.isatty() else NO_TERMINAL_COLUMNS
    console = Console(file=stream, highlight=False, width=width)
    with console.capture() as capture:
        console.print(table)
    lines = [line.rstrip() for line in capture.get().splitlines()]
    stream.write("\n".join(lines) + "\n")


def count_text(count: int) -> str:
    return f"{count:,}"


def messages_text(count: int) -> str:
    """`1 message`, `1,906 messages`."""
    return f"{count:,} message{'' if count == 1 else 's'}"


def times_text(count: int) -> str:
    """`once`, `3 times`."""
    return "once" if count == 1 else f"{count:,} times"


def size_text(size_bytes: int) -> str:
    """`412 B`, `71.3 MB`: powers of 1000, as disks are sold."""
    size = float(size_bytes)
    if size < 1000:
        return f"{size_bytes} B"
    for unit in ("kB", "MB", "GB", "TB"):
        size /= 1000
        if size < 999.95:
            return f"{size:.1f} {unit}"
    return f"{size / 1000:.1f} PB"


def clock_text(timestamp: str) -> str:
    """The time of day of an RFC 3339 time: `10:00:00.123`."""
    return timestamp.partition("T")[2].removesuffix("Z") or timestamp


def span_text(seconds: float) -> str:
    """`3s`, `5m`, `4h`, `2d`: one unit is enough for an age."""
    for unit, unit_s in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= unit_s:
            return f"{seconds // unit_s:.0f}{unit}"
    return f"{max(seconds, 0):.0f}s"


def age_text(timestamp: str | None, now_s: float) -> str:
    """How long ago an RFC 3339 time was; empty without one."""
    return "" if timestamp is None else span_text(now_s - seconds_of(timestamp))


def until_text(timestamp: str | None, now_s: float) -> str:
    """`in 4s`; empty when the time has come, or without one."""
    left_s = 0.0 if timestamp is None else seconds_of(timestamp) - now_s
    return f"in {span_text(left_s)}" if left_s > 0 else ""


def seconds_of(timestamp: str) -> float:
    """Seconds since 1970 of an RFC 3339 time."""
    return datetime.fromisoformat(timestamp).timestamp()


def say(text: str) -> None:
    """A remark for the person, which no pipe carries on."""
    sys.stderr.write(f"{text}\n")
