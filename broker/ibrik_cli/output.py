"""How results look: tables for people, JSON and YAML for programs, numbers and sizes in words."""

import json
import re
import sys
from collections.abc import Mapping, Sequence
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


def say(text: str) -> None:
    """A remark for the person, which no pipe carries on."""
    sys.stderr.write(f"{text}\n")
