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
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

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
    from _typeshed import DataclassInstance
    from pyspark.sql import SparkSession

    from .files import Written

Portion = TypeVar("Portion", bound="DataclassInstance")
"""What one task does: a value whose fields JSON can hold."""
Found: TypeAlias = dict[str, Any]
"""What there is to say of a portion: a small document that JSON can hold."""
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Of a JVM that hands out tasks for some minutes and touches no row: it starts sooner."""
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
    session: "SparkSession", portions: Sequence[Portion], do: Callable[[Portion], Found]
) -> list[Found]:
    """What `do` says of each portion, in order; what it raises in a task arrives as itself."""
    kind = type(portions[0])
    texts = [json.dumps(asdict(portion)) for portion in portions]
    tasks = session.sparkContext.parallelize(texts, len(texts))
    found = tasks.map(lambda text: _answer(lambda: do(kind(**json.loads(text))))).collect()
    answers = [json.loads(text) for text in found]
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


def _answer(do: Callable[[], Found]) -> str:
    """What there is to say of a portion, or why nothing is when another try would not help."""
    try:
        return json.dumps({"found": do()})
    except JobError as error:
        name = type(error).__name__
        return json.dumps(
            {"error": name if name in _ERRORS else "TableFailed", "detail": str(error)}
        )
    except LogError as error:
        return json.dumps({"error": "UnreadablePartition", "detail": str(error)})


def each(
    portions: Sequence[Portion],
    do: Callable[[Portion], Found],
    *,
    size_bytes: int,
    spark_bytes: int,
    cores: int | None,
) -> list[Found]:
    """What `do` says of each: in this process, or by Spark where there is much, or it was given."""
    if not portions or (size_bytes < spark_bytes and not is_submitted()):
        return [do(portion) for portion in portions]
    with spark(cores) as session:
        return in_tasks(session, portions, do)


def is_submitted() -> bool:
    """Whether spark-submit has said which Spark does the work.

    It started this process, or the entrypoint of the image left what it said to the session.
    """
    return not os.environ.keys().isdisjoint(("PYSPARK_GATEWAY_PORT", "PYSPARK_SUBMIT_ARGS"))


@contextmanager
def spark(cores: int | None = None) -> Iterator["SparkSession"]:
    """The session that spark-submit set up, or one in this process alone, that no other reaches."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if not is_submitted():
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("ibrik").config("spark.log.level", "ERROR")
    if not is_submitted():
        count = cores or len(os.sched_getaffinity(0))
        builder = (
            builder.master(f"local[{count},{TRIES}]")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.extraJavaOptions", JAVA_OPTIONS)
        )
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()
