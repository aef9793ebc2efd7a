"""`audit`: whether tables hold what the logs hold, row by row, and what the broker was told.

Changes nothing. What is in a table and not in the log any more is judged by its ranges; what both
hold is compared. A difference is a sentence, and all of them are looked for.
"""

import posixpath
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ibrik_log.errors import LogError
from ibrik_log.volume import TopicFolder
from ibrik_spark.broker import KnownArchive, connect
from ibrik_spark.errors import ExitCode, JobError, WrongTable
from ibrik_spark.layout import table_rows
from ibrik_spark.reports import Part, Report, timestamp
from ibrik_spark.rows import COLUMNS, Range, in_order
from ibrik_spark.schema import FILE_SCHEMA
from ibrik_spark.segments import DamagedRange
from ibrik_spark.slices import Slice, Span, cut
from ibrik_spark.spread import pieces
from ibrik_spark.table import Handle, Table, Topic, open_known, reading
from ibrik_spark.volume import MountedVolume, SealedPartition
from ibrik_spark.work import Found, each

JOB = "audit"
SPARK_BYTES = 4 * 1024**3  # below, this process is done before Spark has started
COMPARED = pa.schema([FILE_SCHEMA.field(name) for name in COLUMNS])


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says."""

    data: Path
    target: str
    topics: Sequence[str] = ()
    admin_url: str | None = None
    token: str | None = None
    is_comparing: bool = True
    spark_bytes: int = SPARK_BYTES
    cores: int | None = None


class AuditReport(Report):
    """The report of this job as people read it: a line a partition, then what is wrong."""

    __slots__ = ()

    def table(self) -> str:
        lines = []
        for part in self.parts:
            lines += [
                f"{part.topic}/{facts['partition']}  in the table {facts['from']:,} to "
                f"{facts['archivedUpTo']:,}  behind {facts['behind']:,}  "
                f"compared {facts['compared']:,} rows"
                for facts in part.facts.get("partitions", ())
            ]
            if part.facts.get("completeThrough"):
                lines.append(f"{part.topic}  complete through {part.facts['completeThrough']}")
        sentences = [sentence for part in self.parts for sentence in _sentences(part)]
        found = f"{len(sentences)} differences" if sentences else "no difference"
        end = self.detail or f"{self.rows:,} rows compared: {found}"
        return "".join(f"{line}\n" for line in [*lines, *sentences, end])


def _sentences(part: Part) -> list[str]:
    return part.facts.get("differences") or ([part.detail] if part.detail else [])


async def run(options: Options) -> Report:
    """Look at all that is archived. Raises nothing that was foreseen: the report says it."""
    started = timestamp(time.time())
    parts: list[Part] = []
    detail = ""
    try:
        volume = MountedVolume.open(options.data)
        folders = volume.named(options.topics)
        known = await _known(options, folders)
        parts += [
            _topic(options, volume, folder, known.get(folder.topic_id))
            for folder in folders
            if options.admin_url is None or folder.topic_id in known
        ]
        code = ExitCode.worst([part.code for part in parts])
        if not parts:
            detail = "no topic on this volume wishes to be archived (archive.enabled: true)"
    except JobError as error:
        code, detail = error.exit_code, str(error)
    return AuditReport(JOB, code, started, timestamp(time.time()), detail, parts)


async def _known(options: Options, folders: Sequence[TopicFolder]) -> dict[str, KnownArchive]:
    """What the broker believes of the topics that wish to be archived, by their ids."""
    found: dict[str, KnownArchive] = {}
    async with AsyncExitStack() as stack:
        if options.admin_url is None:
            return found
        broker = await stack.enter_async_context(connect(options.admin_url, options.token))
        for folder in folders:
            known = await broker.archive(folder.name)
            if known is not None and known.topic_id == folder.topic_id and known.is_enabled:
                found[folder.topic_id] = known
    return found


def _topic(
    options: Options, volume: MountedVolume, folder: TopicFolder, known: KnownArchive | None
) -> Part:
    audit = _Audit(options, volume, folder, known)
    try:
        code = audit.look()
    except (JobError, LogError) as error:
        code = error.exit_code if isinstance(error, JobError) else ExitCode.RETRY
        audit.differences.append(str(error))
    facts: dict[str, Any] = {"topicId": folder.topic_id, "isClean": not audit.differences}
    facts |= {"partitions": audit.partitions, "differences": audit.differences}
    if known is not None and not audit.differences:
        facts["completeThrough"] = known.complete_through
    rows = sum(partition["compared"] for partition in audit.partitions)
    return Part(folder.name, code, rows, "; ".join(audit.differences), facts)


@dataclass(slots=True)
class _Audit:
    """One topic: its table beside its log and the broker's word."""

    options: Options
    volume: MountedVolume
    folder: TopicFolder
    known: KnownArchive | None
    differences: list[str] = field(default_factory=list)
    partitions: list[dict[str, Any]] = field(default_factory=list)

    def look(self) -> ExitCode:
        name, topic_id = self.folder.name, self.folder.topic_id
        table = Table(self.options.target, Topic(self.volume.cluster_id, topic_id, name))
        handle = table.open()
        if handle is None:
            return self._without_table(table)
        self._twice(handle)
        self._another(handle)
        slices: list[Slice] = []
        for number in range(self.folder.partitions):
            slices += self._partition(handle, self.volume.partition(self.folder, number))
        if self.options.is_comparing:
            self._compare(slices)
        return ExitCode.CONFIGURATION if self.differences else ExitCode.DONE

    def _without_table(self, table: Table) -> ExitCode:
        if self.known is None or self.known.table is None:
            return ExitCode.NOTHING_TO_DO
        self.differences.append(
            f"{self.folder.name} was archived to {self.known.table.url}, and there is no table at "
            f"{table.location}; check the target, and that it is mounted"
        )
        return ExitCode.CONFIGURATION

    def _twice(self, handle: Handle) -> None:
        """A file that two commits have brought under two spellings of its name."""
        paths = Counter(posixpath.normpath(file.path) for file in handle.live_files())
        self.differences += [
            f"{path} is in the table at {handle.location} twice; bring the table back to its "
            "newest good version"
            for path, count in paths.items()
            if count > 1
        ]

    def _another(self, handle: Handle) -> None:
        known = self.known and self.known.table
        if known and known.table_id != handle.table_id:
            self.differences.append(
                f"the broker was told of the table {known.table_id} at {known.url}, and the one at "
                f"{handle.location} is {handle.table_id}; check the target"
            )

    def _partition(self, handle: Handle, partition: SealedPartition) -> list[Slice]:
        """What is said of one partition; the slices that log and table both hold."""
        number = partition.number
        try:
            span = handle.prove([number]).get(number)
        except WrongTable as error:
            self.differences.append(str(error))
            return []
        told = 0 if self.known is None else self.known.archived_up_to.get(number, 0)
        end = 0 if span is None else span.end
        if told > end:
            self.differences.append(
                f"the broker was told that partition {number} of {self.folder.name} is archived up "
                f"to offset {told}, and its table ends at {end}: what lies between may be deleted "
                "from the log. Bring the table back to its newest version"
            )
        if span is None:
            return []
        if partition.start_offset > end:
            self.differences.append(
                f"offsets {end} to {partition.start_offset - 1} of partition {number} of "
                f"{self.folder.name} were deleted from the log and are not in the table; "
                "`ibrik archive run` says how to go on"
            )
        self.partitions.append(
            {
                "partition": number,
                "logStart": partition.start_offset,
                "sealedUpTo": partition.end_offset,
                "from": span.start,
                "archivedUpTo": span.end,
                "behind": max(0, partition.end_offset - span.end),
                "compared": 0,
                "unreadable": 0,
            }
        )
        return [
            Slice(slice_.topic_id, number, both.start, both.start, both.end, slice_.size_bytes)
            for slice_ in cut(self.folder.topic_id, partition, None)
            if (both := _overlap(Span(slice_.start, slice_.end), span)) is not None
        ]

    def _compare(self, slices: Sequence[Slice]) -> None:
        options = self.options
        data, target = options.data, options.target
        found = each(
            slices,
            lambda slice_: compare(data, target, slice_),
            size_bytes=sum(slice_.size_bytes for slice_ in slices),
            spark_bytes=options.spark_bytes,
            cores=options.cores,
        )
        by_number = {facts["partition"]: facts for facts in self.partitions}
        for slice_, one in zip(slices, found, strict=True):
            facts = by_number[slice_.partition]
            facts["compared"] += one["rows"]
            facts["unreadable"] += one["unreadable"]
            if one["different"] is not None:
                self.differences.append(
                    f"offset {one['different']} of partition {slice_.partition} of "
                    f"{self.folder.name} is not the same in the log and in the table; look at both "
                    "(`ibrik log dump`), and keep both until it is known which one is right"
                )


def _overlap(left: Span, right: Span) -> Span | None:
    both = Span(max(left.start, right.start), min(left.end, right.end))
    return both if both.start < both.end else None


# --- one slice: runs in a task --------------------------------------------------------------------


def compare(data: Path, target: str, slice_: Slice) -> Found:
    """How many rows of a slice are equal in both, and the first offset that is not."""
    found: Found = {"rows": 0, "unreadable": 0, "different": None}
    handle = open_known(target, slice_.topic_id)
    range_ = Range(slice_.partition, slice_.start, slice_.end)
    with reading(handle):
        table = _Window(in_order(handle.dataset(), range_))
        for piece in pieces(data, slice_):
            if isinstance(piece, DamagedRange):
                found["unreadable"] += piece.to_offset - piece.from_offset
                continue
            logged = pa.Table.from_batches([table_rows(piece).select(COLUMNS)], COMPARED)
            first, last = piece.column("offset")[0].as_py(), piece.column("offset")[-1].as_py()
            archived = table.between(first, last + 1)
            if not logged.equals(archived):
                found["different"] = _first_difference(logged, archived)
                break
            found["rows"] += logged.num_rows
    return found


class _Window:
    """Rows in the order of the log, of which a range is wanted, and then one further on."""

    def __init__(self, tables: Iterator[pa.Table]) -> None:
        self._tables = tables
        self._pending = COMPARED.empty_table()

    def between(self, start: int, end: int) -> pa.Table:
        while self._end() < end:
            following = next(self._tables, None)
            if following is None:
                break
            more = following.select(COLUMNS).cast(COMPARED)
            self._pending = pa.concat_tables([self._pending, more])
        offsets = self._pending.column("offset")
        is_wanted = pc.and_(pc.greater_equal(offsets, start), pc.less(offsets, end))
        found = self._pending.filter(is_wanted)
        self._pending = self._pending.filter(pc.greater_equal(offsets, end))
        return found

    def _end(self) -> int:
        rows = self._pending.num_rows
        return int(self._pending.column("offset")[rows - 1].as_py()) + 1 if rows else 0


def _first_difference(logged: pa.Table, archived: pa.Table) -> int:
    """The offset of the first row that is not the same; both are in the order of the log."""
    low, high = 0, logged.num_rows
    while low < high:
        middle = (low + high) // 2 + 1
        if logged.slice(low, middle - low).equals(archived.slice(low, middle - low)):
            low = middle
        else:
            high = middle - 1
    return int(logged.column("offset")[low].as_py())
