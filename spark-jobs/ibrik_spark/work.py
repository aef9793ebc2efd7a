"""Who works on slices: this process when there are few, Spark's tasks when there are many.

Starting Spark costs ten seconds, so it does the work where there is work to spread. Both call the
same function for each slice.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ibrik_log.errors import LogError

from .errors import (
    JobError,
    ScratchFailed,
    SegmentDeleted,
    TableFailed,
    UnreadablePartition,
    WrongTable,
    WrongVolume,
)
from .slices import Slice

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from .files import Written

TRIES = 4  # of a task that fails in a way that nobody foresaw


@dataclass(frozen=True, slots=True)
class Work:
    """What all slices of a run have in common."""

    data: Path
    records_gaps: bool
    now_ms: int


class Writer(Protocol):
    def write(self, location: str, slices: Sequence[Slice]) -> "list[Written]":
        """Write the slices of one table, in any order. Nothing is visible afterwards."""
        ...


class Here:
    """Slice after slice in this process."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def write(self, location: str, slices: Sequence[Slice]) -> "list[Written]":
        return [_write(self._work, location, slice_) for slice_ in slices]


class Tasks:
    """One task of Spark for each slice; rows never pass through the JVM."""

    def __init__(self, work: Work, session: "SparkSession") -> None:
        self._work = work
        self._session = session

    def write(self, location: str, slices: Sequence[Slice]) -> "list[Written]":
        from .files import Written

        work = self._work
        answers = in_tasks(
            self._session, slices, lambda slice_: _write(work, location, slice_).document()
        )
        return [Written.parse(answer) for answer in answers]


def in_tasks(
    session: "SparkSession", slices: Sequence[Slice], do: Callable[[Slice], dict[str, Any]]
) -> list[dict[str, Any]]:
    """What `do` says of each slice, in their order; what it raises in a task arrives as itself."""
    texts = [json.dumps(asdict(slice_)) for slice_ in slices]
    tasks = session.sparkContext.parallelize(texts, len(texts))
    answers = [json.loads(text) for text in tasks.map(lambda text: _answer(do, text)).collect()]
    for answer in answers:
        if "error" in answer:
            raise _ERRORS[answer["error"]](answer["detail"])
    return [answer["found"] for answer in answers]


class _Deleted(SegmentDeleted):
    """As it arrives from a task: the sentence alone."""

    def __init__(self, detail: str) -> None:
        JobError.__init__(self, detail)


_ERRORS: dict[str, type[JobError]] = {
    "ScratchFailed": ScratchFailed,
    "SegmentDeleted": _Deleted,
    "TableFailed": TableFailed,
    "UnreadablePartition": UnreadablePartition,
    "WrongTable": WrongTable,
    "WrongVolume": WrongVolume,
}


def _write(work: Work, location: str, slice_: Slice) -> "Written":
    from .files import write_slice

    return write_slice(
        work.data, location, slice_, records_gaps=work.records_gaps, now_ms=work.now_ms
    )


def _answer(do: Callable[[Slice], dict[str, Any]], text: str) -> str:
    """What there is to say of a slice, or why nothing is when another try would not help."""
    try:
        return json.dumps({"found": do(Slice(**json.loads(text)))})
    except JobError as error:
        name = type(error).__name__
        return json.dumps(
            {"error": name if name in _ERRORS else "TableFailed", "detail": str(error)}
        )
    except LogError as error:
        return json.dumps({"error": "UnreadablePartition", "detail": str(error)})


@contextmanager
def spark(cores: int | None = None) -> Iterator["SparkSession"]:
    """A session of Spark in this process alone; no executors, no address that others reach."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession

    count = cores or len(os.sched_getaffinity(0))
    session = (
        SparkSession.builder.master(f"local[{count},{TRIES}]")
        .appName("ibrik-archive")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    try:
        yield session
    finally:
        session.stop()
