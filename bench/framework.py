"""What every benchmark uses: rounds and medians, a row of the table, the verdict.

A benchmark is a function from `Bench` to rows. Peers are measured in alternation with Ibrik, round
by round, so that a slow minute of the machine hits both; the figure is the median of the rounds.
"""

import statistics
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

WORK_FOLDER = Path(".bench")  # On the file system of the checkout: a disk, never a tmpfs.


class Verdict(StrEnum):
    MET = "met"
    MISSED = "missed"
    REPORTED = "reported"  # a figure without a bar of its own
    NOT_MEASURED = "not measured"


class NotMeasured(Exception):
    """A tool is missing; the text says how to get it."""


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    ibrik: str
    peer: str = ""
    ratio: str = ""
    bar: str = ""
    verdict: Verdict = Verdict.REPORTED
    values: Mapping[str, float] = field(default_factory=dict)  # numbers for `--output json`
    note: str = ""

    def judged(self, bar: str, is_met: bool) -> "Row":
        return replace(self, bar=bar, verdict=judge(is_met))


def judge(is_met: bool) -> Verdict:
    return Verdict.MET if is_met else Verdict.MISSED


def unmeasured(name: str, bar: str, why: str) -> Row:
    return Row(name, "-", bar=bar, verdict=Verdict.NOT_MEASURED, note=why)


@dataclass(frozen=True, slots=True)
class Bench:
    """How long and how often to measure, and where files may lie."""

    is_quick: bool = False

    @property
    def rounds(self) -> int:
        return 1 if self.is_quick else 3

    @property
    def seconds(self) -> float:
        """Length of one measured round, after its warm-up."""
        return 1.0 if self.is_quick else 3.0

    @property
    def warm_up_seconds(self) -> float:
        return 0.3 if self.is_quick else 1.0

    def scaled(self, full: int, quick: int) -> int:
        return quick if self.is_quick else full

    def alternate(self, *measure: Callable[[], float]) -> list[float]:
        """The median of each measure over the rounds, each round running all of them."""
        rounds = [[each() for each in measure] for _ in range(self.rounds)]
        return [statistics.median(column) for column in zip(*rounds, strict=True)]

    @staticmethod
    def median(values: Iterable[float]) -> float:
        return statistics.median(values)


def new_folder() -> "tempfile.TemporaryDirectory[str]":
    WORK_FOLDER.mkdir(exist_ok=True)
    return tempfile.TemporaryDirectory(dir=WORK_FOLDER, prefix="run-")


def rate(value: float) -> str:
    return f"{value:,.0f}/s"


def milliseconds(value_ms: float) -> str:
    return f"{value_ms:.2f} ms"


def times(value: float) -> str:
    return f"{value:.2f}x"
