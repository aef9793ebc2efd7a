"""The readers: delta-rs in a process of its own, and Spark 4.0 with Delta's jars.

The second needs Java (17, with javac) and Maven, which fetches io.delta:delta-spark_2.13 once.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
CACHE = HERE.parent.parent / ".bench" / "delta"
HINT = (
    "make lake-readers needs java, javac and mvn (Debian: apt-get install openjdk-17-jdk-headless"
    " maven)"
)
# What Spark asks of a JVM that is younger than its code.
OPENED = ("lang", "lang.invoke", "lang.reflect", "io", "net", "nio", "util", "util.concurrent")
OPENS = [f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in OPENED]
OPENS += [
    f"--add-opens=java.base/{package}=ALL-UNNAMED"
    for package in ("jdk.internal.ref", "sun.nio.ch", "sun.nio.cs", "sun.security.action")
]
DELTA_RS = """
import sys, zlib
from collections import defaultdict
from deltalake import DeltaTable
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

files = SubTreeFileSystem(sys.argv[1], LocalFileSystem())
found = defaultdict(list)
for row in DeltaTable(sys.argv[1]).to_pyarrow_table(filesystem=files).to_pylist():
    if row["gap_to"] is None:
        found[row["partition"]].append((row["offset"], zlib.crc32(row["value"])))
for number, rows in sorted(found.items()):
    offsets = [offset for offset, _ in rows]
    sums = sum(checksum for _, checksum in rows)
    print("found", number, len(rows), min(offsets), max(offsets), sums)
"""


class ToolMissing(Exception):
    """Java or Maven is not here."""


class Counted(NamedTuple):
    """What a reader saw of one partition."""

    partition: int
    rows: int
    first: int
    last: int
    checksums: int
    """The sum of the CRC-32 of all values."""


def fetch() -> None:
    """Maven's copy of the jars and our class, made once."""
    if not all(shutil.which(tool) for tool in ("java", "javac", "mvn")):
        raise ToolMissing(HINT)
    jars = CACHE / "jars"
    if not list(jars.glob("delta-spark_2.13-*.jar")):
        goal = ("dependency:copy-dependencies", f"-DoutputDirectory={jars}")
        _run("mvn", "--quiet", "--batch-mode", "--file", HERE / "pom.xml", *goal)
    _run("javac", "-d", CACHE / "classes", "-cp", jars / "*", HERE / "CountRows.java")


def by_delta_rs(location: Path) -> list[Counted]:
    return _parse(_run(sys.executable, "-c", DELTA_RS, location))


def by_spark(location: Path) -> list[Counted]:
    class_path = f"{CACHE / 'jars' / '*'}:{CACHE / 'classes'}"
    return _parse(_run("java", *OPENS, "-cp", class_path, "CountRows", location))


def _parse(output: str) -> list[Counted]:
    return [
        Counted(*map(int, line.split()[1:]))
        for line in output.splitlines()
        if line.startswith("found ")
    ]


def _run(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[0]}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout
