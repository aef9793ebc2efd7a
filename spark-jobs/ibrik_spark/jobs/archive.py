"""`archive`: every sealed record of the topics that wish it, into their tables, exactly once.

For each topic: where the table stands, what is sealed and not in it, files, one commit, the proof
that the table holds it, and only then the broker is told how far it may delete.
"""

import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ibrik_log.errors import LogError
from ibrik_log.volume import TopicFolder
from ibrik_spark.broker import Broker, KnownArchive, connect
from ibrik_spark.errors import (
    DamageFound,
    ExitCode,
    JobError,
    Superseded,
    WrongTable,
    WrongVolume,
)
from ibrik_spark.history import divergence
from ibrik_spark.reports import Part, Report, timestamp
from ibrik_spark.slices import Hole, Slice, Span, cut, tiled
from ibrik_spark.table import Handle, Table, Topic
from ibrik_spark.volume import MountedVolume, SealedPartition
from ibrik_spark.work import Here, Tasks, Work, Writer, spark

if TYPE_CHECKING:
    from ibrik_spark.files import Written

JOB = "archive"
ROUND_BYTES = 2 * 1024**3  # of segments for one commit: what a killed run does again at most
SPARK_BYTES = 1024**3  # below, this process is done before Spark has started


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says."""

    data: Path
    target: str
    topics: Sequence[str] = ()
    period: str = "1h"
    admin_url: str | None = None
    token: str | None = None
    records_gaps: bool = False
    is_new_table: bool = False
    is_plan: bool = False
    spark_bytes: int = SPARK_BYTES
    cores: int | None = None


@dataclass(slots=True)
class Plan:
    """One topic that is archived: where its table stands and what is to write."""

    topic: Topic
    table: Table
    handle: Handle | None
    proved: dict[int, Span]
    slices: list[Slice] = field(default_factory=list)
    rows: int = 0

    @property
    def size_bytes(self) -> int:
        return sum(slice_.size_bytes for slice_ in self.slices)

    def rounds(self) -> Iterator[list[Slice]]:
        """Slices for one commit each, in the order of the log."""
        batch: list[Slice] = []
        size_bytes = 0
        for slice_ in self.slices:
            batch.append(slice_)
            size_bytes += slice_.size_bytes
            if size_bytes >= ROUND_BYTES:
                yield batch
                batch, size_bytes = [], 0
        if batch:
            yield batch


async def run(options: Options) -> Report:
    """Archive what there is. Raises nothing that was foreseen: the report says it."""
    started = timestamp(time.time())
    detail = ""
    parts: list[Part] = []
    code = ExitCode.NOTHING_TO_DO
    try:
        volume = MountedVolume.open(options.data)
        async with _broker(options) as broker:
            parts = await _Run(options, volume, broker, started).archive()
        code = ExitCode.worst([part.code for part in parts])
        if not parts:
            detail = "no topic on this volume wishes to be archived (archive.enabled: true)"
    except JobError as error:
        code, detail = error.exit_code, str(error)
    return Report(JOB, code, started, timestamp(time.time()), detail, parts)


@asynccontextmanager
async def _broker(options: Options) -> AsyncIterator[Broker | None]:
    """The broker; None when the folder is looked at without one, as a copy of a volume is."""
    async with AsyncExitStack() as stack:
        broker = None
        if options.admin_url is not None:
            broker = await stack.enter_async_context(connect(options.admin_url, options.token))
        yield broker


class _Run:
    """One run over all topics; what fails for one of them does not keep the others."""

    def __init__(
        self, options: Options, volume: MountedVolume, broker: Broker | None, started: str
    ) -> None:
        self._options = options
        self._volume = volume
        self._broker = broker
        self._started = started

    async def archive(self) -> list[Part]:
        parts: list[Part] = []
        plans: list[Plan] = []
        for folder in self._volume.named(self._options.topics):
            try:
                plan = await self._plan(folder)
            except (JobError, LogError) as error:
                parts.append(_failed(folder.name, folder.topic_id, error))
                continue
            if plan is not None:
                plans.append(plan)
        if self._options.is_plan:
            return parts + [_planned(plan) for plan in plans]
        with ExitStack() as stack:
            writer = self._writer(plans, stack.enter_context)
            parts += [await self._carry_out(plan, writer) for plan in plans]
        return parts

    async def _plan(self, folder: TopicFolder) -> Plan | None:
        """What is to do for a topic; None when it does not wish to be archived, or is an old one.

        Proves what the table holds before anything is added, and tells the broker.
        """
        known = None
        if self._broker is not None:
            known = await self._broker.archive(folder.name)
            if known is None or known.topic_id != folder.topic_id or not known.is_enabled:
                return None
        topic = Topic(self._volume.cluster_id, folder.topic_id, folder.name)
        table = Table(self._options.target, topic)
        handle = table.open()
        numbers = range(folder.partitions)
        proved = handle.prove(numbers) if handle is not None else {}
        if known is not None:
            self._compare(topic, table, handle, proved, known)
        plan = Plan(topic, table, handle, proved)
        for number, span in proved.items():
            _refuse_another_history(plan, self._volume.partition(folder, number), span.end)
        if self._broker is not None and not self._options.is_plan:
            if known is not None and _is_behind(known, proved):
                await self._report(plan, None)
            await self._broker.roll(folder.name, self._options.period)
        for number in numbers:
            partition = self._volume.partition(folder, number)
            plan.slices += cut(folder.topic_id, partition, _end(proved, number))
        return plan

    def _compare(
        self,
        topic: Topic,
        table: Table,
        handle: Handle | None,
        proved: dict[int, Span],
        known: KnownArchive,
    ) -> None:
        """The table that the broker was told of is this one, and has not lost anything since."""
        if known.table is None:
            return
        if handle is None or handle.table_id != known.table.table_id:
            if self._options.is_new_table:
                return
            raise WrongTable(
                f"{topic.name} was archived to the table at {known.table.url}, and "
                f"{table.location} is {'another' if handle else 'not there'}; check the target and "
                "that it is mounted, or begin a new table with --new-table"
            )
        for number, offset in known.archived_up_to.items():
            end = _end(proved, number) or 0
            if offset > end:
                raise WrongTable(
                    f"the table at {table.location} ends partition {number} of {topic.name} at "
                    f"offset {end}, and the broker was told {offset}: it is an older version. "
                    "Bring it back to its newest version; until then nothing is archived"
                )

    def _writer(self, plans: list[Plan], enter: Callable[[Any], Any]) -> Writer:
        options = self._options
        work = Work(options.data, options.records_gaps, time.time_ns() // 1_000_000)
        size_bytes = sum(plan.size_bytes for plan in plans)
        if size_bytes == 0 or size_bytes < options.spark_bytes:
            return Here(work)
        return Tasks(work, enter(spark(options.cores)))

    async def _carry_out(self, plan: Plan, writer: Writer) -> Part:
        """Write, commit, prove, tell: for each round of one topic."""
        error: Exception | None = None
        gaps: list[dict[str, Any]] = []
        try:
            if plan.slices and plan.handle is None:
                plan.handle = plan.table.create()
            for slices in plan.rounds():
                written = writer.write(plan.table.location, slices)
                _commit(plan, _whole(written), self._started)
                gaps += _gaps(written)
                _refuse_damage(plan.topic, written)
                await self._report(plan, None)
        except (JobError, LogError) as failure:
            error = failure
        part = _part(plan, gaps, error)
        try:
            await self._report(plan, part)
        except JobError as failure:
            return part if error is not None else _part(plan, gaps, failure)
        return part

    async def _report(self, plan: Plan, part: Part | None) -> None:
        if self._broker is None or plan.handle is None:
            return
        last_run = None
        if part is not None:
            last_run = {
                "startedAt": self._started,
                "endedAt": timestamp(time.time()),
                "code": int(part.code),
                "rows": part.rows,
            }
        await self._broker.report(
            plan.topic.name,
            plan.topic.topic_id,
            table=_table_document(plan.handle, plan.table),
            archived_up_to={number: span.end for number, span in plan.proved.items()},
            last_run=last_run,
        )


def _refuse_another_history(plan: Plan, partition: SealedPartition, end: int) -> None:
    """Before the broker hears of `end`: it would delete what it took in below it since."""
    assert plan.handle is not None
    found = divergence(partition, end, plan.handle.record)
    if found is not None:
        raise WrongVolume(
            f"partition {partition.number} of {plan.topic.name} is not what the table at "
            f"{plan.table.location} holds: {found}, so its volume was brought back to an older "
            "copy. Keep this table, and begin a new one in another target with --new-table; until "
            "then nothing is archived"
        )


def _commit(plan: Plan, written: "dict[int, list[Written]]", started: str) -> None:
    """One commit of what goes on from where the table stands; the proof, on a new handle."""
    if not written:
        return
    assert plan.handle is not None
    for number, parts in written.items():
        archived = plan.handle.archived_up_to(number)
        if archived is not None and archived != parts[0].start:
            raise Superseded(
                f"another run has archived {plan.topic.name} in the meantime; nothing of this one "
                "is visible, and the next goes on from there"
            )
        _prove_files(plan, number, parts)
    files = [file for parts in written.values() for part in parts for file in part.files]
    ends = {number: parts[-1].end for number, parts in written.items()}
    plan.handle.commit(files, ends, {"job": JOB, "startedAt": started})
    plan.rows += sum(file.rows - file.gaps for file in files)
    plan.handle = plan.table.open()
    assert plan.handle is not None
    plan.proved = plan.handle.prove({*plan.proved, *ends})


def _prove_files(plan: Plan, partition: int, parts: "list[Written]") -> None:
    """The files tile the range that is to be committed, or a fault of ours stops here."""
    wanted = Span(parts[0].start, parts[-1].end)
    spans = [Span(file.start, file.last + 1) for part in parts for file in part.files]
    try:
        found = tiled(spans)
    except Hole as hole:
        raise WrongTable(_untiled(plan, partition, str(hole))) from hole
    if found != wanted:
        raise WrongTable(_untiled(plan, partition, f"they hold {found} in place of {wanted}"))


def _untiled(plan: Plan, partition: int, what: str) -> str:
    return (
        f"the files written for partition {partition} of {plan.topic.name} are not whole: {what}. "
        "Nothing was committed; please report this"
    )


def _whole(written: "Sequence[Written]") -> "dict[int, list[Written]]":
    """By partition in the order of the log, up to the first damage that no gap was recorded for."""
    partitions: dict[int, list[Written]] = {}
    ended: set[int] = set()
    for part in sorted(written, key=lambda part: (part.partition, part.start)):
        if part.partition not in ended and part.end > part.start:
            partitions.setdefault(part.partition, []).append(part)
        if part.damage is not None:
            ended.add(part.partition)
    return partitions


def _refuse_damage(topic: Topic, written: "Sequence[Written]") -> None:
    found = [(part.partition, part.damage) for part in written if part.damage is not None]
    if found:
        number, damage = min(found)
        raise DamageFound(
            f"offsets {damage.from_offset} to {damage.to_offset - 1} of partition {number} of "
            f"{topic.name} cannot be read: {damage.reason}. Everything before them is archived; "
            "--damage record-gap writes down that they are missing and goes on"
        )


def _gaps(written: "Sequence[Written]") -> list[dict[str, Any]]:
    return [
        {
            "partition": part.partition,
            "from": gap.from_offset,
            "to": gap.to_offset,
            "reason": gap.reason,
        }
        for part in written
        for gap in part.gaps
    ]


def _end(proved: dict[int, Span], partition: int) -> int | None:
    span = proved.get(partition)
    return None if span is None else span.end


def _is_behind(known: KnownArchive, proved: dict[int, Span]) -> bool:
    """Whether a run committed and could not tell the broker any more."""
    return any(span.end > known.archived_up_to.get(n, 0) for n, span in proved.items())


def _table_document(handle: Handle, table: Table) -> dict[str, Any]:
    return {"id": handle.table_id, "url": table.location, "version": handle.version}


def _part(plan: Plan, gaps: list[dict[str, Any]], error: Exception | None) -> Part:
    facts: dict[str, Any] = {"topicId": plan.topic.topic_id}
    if plan.handle is not None:
        facts["table"] = _table_document(plan.handle, plan.table)
    facts["partitions"] = [
        {"partition": number, "from": span.start, "archivedUpTo": span.end}
        for number, span in sorted(plan.proved.items())
    ]
    if gaps:
        facts["gaps"] = gaps
    if error is not None:
        return Part(plan.topic.name, _code(error), plan.rows, str(error), facts)
    code = ExitCode.DONE if plan.slices else ExitCode.NOTHING_TO_DO
    return Part(plan.topic.name, code, plan.rows, "", facts)


def _planned(plan: Plan) -> Part:
    """What a run would do, for --plan."""
    facts = {
        "topicId": plan.topic.topic_id,
        "bytes": plan.size_bytes,
        "partitions": [
            {"partition": slice_.partition, "from": slice_.gap_start, "to": slice_.end}
            for slice_ in plan.slices
        ],
    }
    code = ExitCode.DONE if plan.slices else ExitCode.NOTHING_TO_DO
    return Part(plan.topic.name, code, facts=facts)


def _failed(topic: str, topic_id: str, error: Exception) -> Part:
    return Part(topic, _code(error), detail=str(error), facts={"topicId": topic_id})


def _code(error: Exception) -> ExitCode:
    """The log's own errors pass: an offset that retention has taken, a disk that hiccups."""
    return error.exit_code if isinstance(error, JobError) else ExitCode.RETRY
