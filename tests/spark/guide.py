"""The snippets of the guide "read the table", and the table that they read."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from ibrik_log.record import Record
from tests.spark.lakes import LAKE, commit, table_of, write
from tests.spark.volumes import NOW_MS, TOPIC, append, break_a_batch, new_log

PAGE = Path(__file__).resolve().parents[2] / "docs/guides/read-the-table.md"
SNIPPET = re.compile(
    r"^```python\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE
)
NOT_LOCKED = ("pandas", "polars", "duckdb")
HEADERS: list[tuple[str, bytes | None]] = [("ce_type", b"order.placed")]


class Snippet(NamedTuple):
    code: str
    shown: str

    def uses(self, *libraries: str) -> bool:
        return any(re.search(rf"^(import|from) {name}", self.code, re.M) for name in libraries)

    def output(self, folder: Path) -> str:
        """What it prints when it is run where the lake is."""
        command = [sys.executable, "-c", self.code]
        done = subprocess.run(
            command,
            cwd=folder,
            env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable},
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


def snippets() -> list[Snippet]:
    """Those whose libraries are in our locks."""
    found = [Snippet(*found) for found in SNIPPET.findall(PAGE.read_text(encoding="utf-8"))]
    return [snippet for snippet in found if not snippet.uses(*NOT_LOCKED)]


def make_lake(folder: Path) -> None:
    """Four orders and one gap, at the place that the guide names."""
    log = new_log(folder / "data")
    orders = [
        Record(b"customer-%d" % (n % 3), b'{"order": %d, "total": %d}' % (n, 10 * n), HEADERS)
        for n in range(6)
    ]
    append(log, orders[:2], orders[2:4], orders[4:])
    log.roll(NOW_MS)
    break_a_batch(folder / "data")
    table = table_of(folder)
    table.create()
    commit(table.opened(), write(folder, records_gaps=True))
    assert f"{LAKE}/{TOPIC}" in PAGE.read_text(encoding="utf-8")
