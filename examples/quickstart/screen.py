"""What the demo prints: calm lines, a progress bar on a terminal, tables."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table

console = Console(highlight=False)


def step(number: int, title: str) -> None:
    console.print(f"\n[bold]{number}. {title}[/bold]")


def line(text: str) -> None:
    console.print(f"   {text}", markup=False, soft_wrap=True)


def good(text: str) -> None:
    console.print(f"   [green]✓[/green] {text}", soft_wrap=True)


@contextmanager
def bar(label: str, total: int) -> Iterator["Bar"]:
    """A progress bar; nothing at all where nobody looks."""
    columns = (
        TextColumn("   {task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(compact=True),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        yield Bar(progress, progress.add_task(label, total=total, rate=""))


class Bar:
    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress, self._task = progress, task
        self._began_s = time.monotonic()

    def show(self, count: int) -> None:
        rate = count / max(time.monotonic() - self._began_s, 1e-3)
        self._progress.update(self._task, completed=count, rate=f"{rate:,.0f}/s")


def offsets_table(ranges: Mapping[int, tuple[int, int]]) -> None:
    table = new_table("PARTITION", "OFFSETS", "EVENTS")
    for partition, (start, end) in sorted(ranges.items()):
        table.add_row(str(partition), f"{start:,} … {end - 1:,}", f"{end - start:,}")
    console.print(table)


def carriers_table(counts: Sequence[tuple[str, int]]) -> None:
    """Two carriers a line, the biggest first."""
    table = new_table("CARRIER", "FLIGHTS", "CARRIER", "FLIGHTS")
    half = (len(counts) + 1) // 2
    for index in range(half):
        row = counts[index : len(counts) : half]
        cells = [cell for carrier, count in row for cell in (carrier, f"{count:,}")]
        table.add_row(*cells)
    console.print(table)


def new_table(*columns: str) -> Table:
    table = Table(box=None, padding=(0, 3, 0, 3), pad_edge=True)
    for index, name in enumerate(columns):
        is_label = index == 0 or name == "CARRIER"
        table.add_column(name, justify="left" if is_label else "right", header_style="dim")
    return table
