"""`optimize`: the small files of a table into large ones. No row changes, and no run is disturbed.

For each table: the proof, the files that are worth being one, larger files beside them, one commit
that lets these stand for those, the proof again. The old files stay for older versions: `vacuum`.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ibrik_spark.errors import ExitCode, JobError, Superseded
from ibrik_spark.files import Merge, merge_files
from ibrik_spark.merges import FILE_BYTES, merges
from ibrik_spark.reports import Part, Report, carried_out
from ibrik_spark.schema import DataFile
from ibrik_spark.table import Handle, tables_in
from ibrik_spark.work import each

JOB = "optimize"
ROUND_BYTES = 8 * 1024**3  # of files for one commit: what a killed run does again at most
SPARK_BYTES = 1024**3  # below, this process is done before Spark has started
TRIES = 5  # of a commit, whenever another run has committed first


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says."""

    target: str
    topics: Sequence[str] = ()
    file_bytes: int = FILE_BYTES
    is_plan: bool = False
    spark_bytes: int = SPARK_BYTES
    cores: int | None = None


class OptimizeReport(Report):
    """The report of this job as people read it: a line a table, then what is wrong."""

    __slots__ = ()

    def table(self) -> str:
        lines = [
            f"{part.topic}  {part.facts['filesBefore']:,} files before, "
            f"{part.facts['filesAfter']:,} after  {part.rows:,} rows rewritten"
            if "filesBefore" in part.facts
            else f"{part.topic}  nothing was rewritten"
            for part in self.parts
        ]
        return "".join(f"{line}\n" for line in lines + self.sentences())


def run(options: Options) -> Report:
    """Merge what there is to merge. Raises nothing that was foreseen: the report says it."""
    return carried_out(OptimizeReport, JOB, lambda started: _parts(options, started))


def _parts(options: Options, started: str) -> list[Part]:
    handles = tables_in(options.target, options.topics)
    return [_Run(options, handle, started).optimize() for handle in handles]


class _Run:
    """One run over one table."""

    def __init__(self, options: Options, handle: Handle, started: str) -> None:
        self._options = options
        self._handle = handle
        self._started = started
        self._facts: dict[str, Any] = {"topicId": handle.topic.topic_id}
        self._rows = 0

    def optimize(self) -> Part:
        code, detail = ExitCode.NOTHING_TO_DO, ""
        try:
            files = self._handle.live_files()
            self._handle.prove()
            found = merges(files, file_bytes=self._options.file_bytes)
            saved = sum(len(merge.paths) - 1 for merge in found)
            self._facts |= {"filesBefore": len(files), "filesAfter": len(files) - saved}
            if found:
                code = ExitCode.DONE
            if not self._options.is_plan:
                self._facts["filesAfter"] = len(files)
                for portion in _rounds(found):
                    self._merge(portion)
                    self._facts["filesAfter"] -= sum(len(merge.paths) - 1 for merge in portion)
        except JobError as error:
            code, detail = error.exit_code, str(error)
        return Part(self._handle.topic.name, code, self._rows, detail, self._facts)

    def _merge(self, found: list[Merge]) -> None:
        location, now_ms = self._handle.location, time.time_ns() // 1_000_000
        answers = each(
            found,
            lambda merge: asdict(merge_files(location, merge, now_ms=now_ms)),
            size_bytes=sum(merge.size_bytes for merge in found),
            spark_bytes=self._options.spark_bytes,
            cores=self._options.cores,
        )
        merged = [DataFile(**answer) for answer in answers]
        self._commit(merged, [path for merge in found for path in merge.paths], now_ms)
        self._rows += sum(file.rows for file in merged)

    def _commit(self, merged: list[DataFile], paths: list[str], now_ms: int) -> None:
        """Archive runs commit in between, and that is no reason to have worked for nothing."""
        for tries_left in reversed(range(TRIES)):
            handle = self._handle.reopened()
            try:
                handle.replace(merged, paths, {"job": JOB, "startedAt": self._started}, now_ms)
            except Superseded:
                if not tries_left or not _holds(self._handle.reopened(), paths):
                    raise
                continue
            break
        self._handle.reopened().prove()


def _holds(handle: Handle, paths: list[str]) -> bool:
    return {file.path for file in handle.live_files()} >= set(paths)


def _rounds(found: list[Merge]) -> Iterator[list[Merge]]:
    """Merges for one commit each."""
    batch: list[Merge] = []
    for merge in found:
        batch.append(merge)
        if sum(member.size_bytes for member in batch) >= ROUND_BYTES:
            yield batch
            batch = []
    if batch:
        yield batch
