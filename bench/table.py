"""The table that ends a run, and the line about the machine; what a row is: `bench.framework`."""

import os
import platform
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from bench.framework import Row, Verdict

COLOURS = {Verdict.MET: "green", Verdict.MISSED: "red", Verdict.NOT_MEASURED: "yellow"}


def show(rows: Sequence[Row]) -> None:
    table = Table()
    for title in ("name", "ibrik", "peer", "ratio", "bar", "verdict"):
        table.add_column(title, overflow="fold")
    for row in rows:
        verdict = f"[{COLOURS.get(row.verdict, 'default')}]{row.verdict}"
        table.add_row(row.name, row.ibrik, row.peer or row.note, row.ratio, row.bar, verdict)
    # A pipe or a log has no width of its own, and no line of figures may be cut.
    Console(width=None if sys.stdout.isatty() else 200).print(table)


def machine() -> str:
    load = os.getloadavg()[0]
    return (
        f"{os.cpu_count()} CPUs, {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}, load {load:.1f}"
    )
