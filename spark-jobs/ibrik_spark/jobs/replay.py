"""`replay`: records of a table back into a topic, or on to a channel, each once.

A run is named by its table, its range and its target: the same run again, as after a kill, goes on
where the broker's log says that it ended. Gaps of the table are counted; nothing stands for them.
"""

import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ibrik_api.timestamps import format_timestamp, parse_timestamp
from ibrik_log.record import Record
from ibrik_spark.errors import ExitCode, JobError, WrongTable
from ibrik_spark.reports import Part, Report, timestamp
from ibrik_spark.rows import Range, in_order, place, ranges
from ibrik_spark.sending import Broker, KnownTopic, Progress, connect
from ibrik_spark.table import Handle, open_known, reading

JOB = "replay"
EARLIEST = "earliest"
PUBLISHER_HEADER = "ibrik-publisher"  # the broker's own: who published the original
WHENCE = (
    "archive-table",
    "archive-version",
    "archive-partition",
    "archive-offset",
    "archive-timestamp",
)
DERIVED = 1 << 62
"""Ids of producers that are derived lie above those that a broker gives out."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says."""

    target: str
    topic: str
    """Its name, for a topic that the broker serves, or its id."""
    server: str
    token: str | None = None
    start: str = EARLIEST
    end: str | None = None
    partitions: Sequence[int] = ()
    into: str | None = None
    channel: str | None = None
    rate: int | None = None
    name: str = ""
    """Sets a run apart from the one with the same range and target."""
    is_forced: bool = False
    is_plan: bool = False


class ReplayReport(Report):
    """The report of this job as people read it: a line a partition, then where it all went."""

    __slots__ = ()

    def table(self) -> str:
        lines: list[str] = []
        for part in self.parts:
            facts = part.facts
            lines += [
                f"{part.topic}/{p['partition']}  offsets {p['from']} to {p['to'] - 1}  "
                f"{p['records']:,} records"
                for p in facts["partitions"]
            ]
            if "into" in facts:
                there = f", {facts['there']:,} were there already" if facts["there"] else ""
                lines.append(f"into {facts['into']}: {part.rows:,} published{there}")
            if "replay" in facts:
                lines.append(
                    f"to channel {facts['channel']}: ibrik replay describe {facts['replay']}"
                )
            lines += [part.detail] if part.detail else []
            if not facts["partitions"]:
                lines.append(f"{part.topic}: the table has nothing in this range")
        return "".join(f"{line}\n" for line in [*lines, *([self.detail] if self.detail else [])])


async def run(options: Options) -> Report:
    """Replay a range. Raises nothing that was foreseen: the report says it."""
    started = timestamp(time.time())
    parts: list[Part] = []
    detail = ""
    try:
        rate = None if options.channel else options.rate
        async with connect(options.server, options.token, rate) as broker:
            parts = [await _Run(options, broker).replay()]
        code = parts[0].code
    except JobError as error:
        code, detail = error.exit_code, str(error)
    return ReplayReport(JOB, code, started, timestamp(time.time()), detail, parts)


class _Run:
    def __init__(self, options: Options, broker: Broker) -> None:
        self._options = options
        self._broker = broker

    async def replay(self) -> Part:
        handle = open_known(self._options.target, await self._topic_id())
        with reading(handle):
            found = ranges(handle.dataset(), wishes(self._options))
        facts = _facts(handle, found)
        name = handle.topic.name
        if self._options.is_plan or not any(range_.records for range_ in found):
            code = ExitCode.DONE if found else ExitCode.NOTHING_TO_DO
            return Part(name, code, detail=_lost(found), facts=facts)
        if self._options.channel is not None:
            await self._broker.check_channel(self._options.channel)
        identity = run_identity(handle.table_id, found, self._options)
        into = await self._into(handle, found, identity)
        published = there = 0
        for range_ in found:
            progress = await self._publish(handle, range_, into, identity)
            published += progress.published
            there += progress.there
        facts |= {"into": into.name, "there": there}
        if self._options.channel is not None:
            replay = await self._broker.deliver(
                into.name, self._options.channel, self._options.rate
            )
            facts |= {"channel": self._options.channel, "replay": replay["id"]}
        code = ExitCode.DONE if published else ExitCode.NOTHING_TO_DO
        return Part(name, code, published, _lost(found), facts)

    async def _topic_id(self) -> str:
        """A topic that is gone has no name any more, but its folder in the target is its id."""
        try:
            return str(uuid.UUID(self._options.topic))
        except ValueError:
            return (await self._broker.topic(self._options.topic)).topic_id

    async def _into(self, handle: Handle, found: Sequence[Range], identity: str) -> KnownTopic:
        """The topic that gets the records; without a name, one of this run's own."""
        if self._options.into is None:
            partitions = 1 + max(range_.partition for range_ in found)
            name = f"{handle.topic.name}.replay-{identity[:8]}"
            return await self._broker.topic_made(name, partitions)
        into = await self._broker.topic(self._options.into)
        if into.topic_id == handle.topic.topic_id and not self._options.is_forced:
            raise WrongTable(
                f"{into.name} is the topic that was archived: its readers would get these records "
                "again, and its archive them twice. Choose another topic, or say --force"
            )
        return into

    async def _publish(
        self, handle: Handle, range_: Range, into: KnownTopic, identity: str
    ) -> Progress:
        """A partition keeps its place, or shares one; so keys keep their order."""
        progress = Progress(producer_id(identity, into.topic_id, range_))
        partition = range_.partition % into.partitions
        whence = _Whence(handle.table_id, handle.version, range_.partition)
        with reading(handle):
            for rows in in_order(handle.dataset(), range_):
                await self._broker.publish(into.name, partition, whence.records(rows), progress)
        return progress


def wishes(options: Options) -> list[Any]:
    """What the rows of a range fulfil; WrongTable says what is no place."""
    found = [pc.field("partition").isin(list(options.partitions))] if options.partitions else []
    if options.start != EARLIEST:
        column, start = _place(options.start)
        found += place(column, start=start)
    if options.end is not None:
        column, end = _place(options.end)
        found += place(column, end=end)
    return found


def _place(text: str) -> tuple[str, Any]:
    if text.isdigit():
        return "offset", int(text)
    try:
        moment = pa.scalar(parse_timestamp(text) * 1_000, pa.timestamp("us", tz="UTC"))
    except ValueError as error:
        raise WrongTable(f"{error}; or write an offset") from error
    return "timestamp", moment


def run_identity(table_id: str, found: Sequence[Range], options: Options) -> str:
    """What makes two runs the same: what they were told.

    The end does not count, since a table grows and what was sent stays; but a channel gets the
    whole of a run, so there it does.
    """
    ends = [(range_.partition, range_.end) for range_ in found] if options.channel else []
    told = (options.start, sorted(options.partitions), options.into, options.channel, options.name)
    return _digest(table_id, told, ends).hex()


def producer_id(identity: str, into_id: str, range_: Range) -> int:
    """The same for the same run, whatever process carries it out; its sequence counts from here."""
    digest = _digest(identity, into_id, range_.partition, range_.start)
    return DERIVED | int.from_bytes(digest[:8], "big") % DERIVED


def _digest(*parts: object) -> bytes:
    return blake2b(repr(parts).encode(), digest_size=16).digest()


class _Whence:
    """Records with headers that say where they come from."""

    def __init__(self, table_id: str, version: int, partition: int) -> None:
        texts = (table_id, str(version), str(partition))
        self._headers = list(zip(WHENCE, (text.encode() for text in texts), strict=False))

    def records(self, rows: pa.Table) -> Iterator[Record]:
        columns = rows.set_column(
            rows.schema.get_field_index("timestamp"),
            "timestamp",
            pc.divide(rows.column("timestamp").cast(pa.int64()), 1_000),
        )
        for batch in columns.to_batches(max_chunksize=1_000):
            for row in batch.to_pylist():
                yield Record(row["key"], row["value"], self._dressed(row))

    def _dressed(self, row: dict[str, Any]) -> list[tuple[str, bytes | None]]:
        """The headers of the original; of one that was replayed before, without where from."""
        own = [(header["name"], header["value"]) for header in row["headers"]]
        place = [
            ("archive-offset", str(row["offset"]).encode()),
            ("archive-timestamp", format_timestamp(row["timestamp"]).encode()),
        ]
        kept = [header for header in own if header[0] not in (*WHENCE, PUBLISHER_HEADER)]
        return [*kept, *self._headers, *place]


def _facts(handle: Handle, found: Sequence[Range]) -> dict[str, Any]:
    return {
        "topicId": handle.topic.topic_id,
        "table": {"id": handle.table_id, "url": handle.location, "version": handle.version},
        "partitions": [
            {
                "partition": range_.partition,
                "from": range_.start,
                "to": range_.end,
                "records": range_.records,
                "lost": range_.lost,
                "missing": range_.missing,
            }
            for range_ in found
        ],
    }


def _lost(found: Sequence[Range]) -> str:
    """What nothing can be published for, in a sentence."""
    lost = sum(range_.lost for range_ in found)
    missing = sum(range_.missing for range_ in found)
    parts = [f"{lost:,} offsets are gaps of the archive"] if lost else []
    parts += [f"{missing:,} offsets are not in the table any more"] if missing else []
    return f"{' and '.join(parts)}; nothing is published for them" if parts else ""
