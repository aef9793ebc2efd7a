"""How a run ends: the table or JSON, and the line about the machine; a row: `bench.framework`."""

import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict

from rich.console import Console
from rich.table import Table

from bench.framework import Row, Verdict

COLOURS = {Verdict.MET: "green", Verdict.MISSED: "red", Verdict.NOT_MEASURED: "yellow"}


def conclude(rows: Sequence[Row], output: str, started: float) -> int:
    """Print what was measured as `table` or `json`; the exit code. `started` is monotonic, in s."""
    if output == "json":
        print(json.dumps({"machine": _machine(), "rows": [asdict(row) for row in rows]}, indent=2))
    else:
        _show(rows)
        print(f"{_machine()}; {time.monotonic() - started:.0f} s; method: docs/benchmarks.md")
    return 1 if any(row.verdict is Verdict.MISSED for row in rows) else 0


def _show(rows: Sequence[Row]) -> None:
    table = Table()
    for title in ("name", "ibrik", "peer", "ratio", "bar", "verdict"):
        table.add_column(title, overflow="fold")
    for row in rows:
        verdict = f"[{COLOURS.get(row.verdict, 'default')}]{row.verdict}"
        table.add_row(row.name, row.ibrik, row.peer or row.note, row.ratio, row.bar, verdict)
    # A pipe or a log has no width of its own, and no line of figures may be cut.
    Console(width=None if sys.stdout.isatty() else 200).print(table)


def _machine() -> str:
    load = os.getloadavg()[0]
    return (
        f"{os.cpu_count()} CPUs, {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}, load {load:.1f}"
    )
