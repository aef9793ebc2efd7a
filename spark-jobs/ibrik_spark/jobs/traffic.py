"""`traffic`: how many messages there were in each minute, by topic and partition, and hot keys.

Counts the sealed records of a volume, or the rows of tables; changes neither. Tables can be read by
several pods, and hold what retention has deleted from the log.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from ibrik_log.volume import TopicFolder
from ibrik_spark.counts import COLUMNS, Counts, summary
from ibrik_spark.errors import ExitCode
from ibrik_spark.files import rows_of
from ibrik_spark.reports import Part, Report, carried_out
from ibrik_spark.schema import LiveFile
from ibrik_spark.segments import DamagedRange
from ibrik_spark.slices import Slice
from ibrik_spark.spread import SPARK_BYTES, Options, pieces, slices_of, spread
from ibrik_spark.table import Handle, tables_in
from ibrik_spark.target import store_at
from ibrik_spark.volume import MountedVolume
from ibrik_spark.work import Found, each

JOB = "traffic"
TABLE_COLUMNS = ["partition", "offset", *COLUMNS, "gap_to"]


@dataclass(frozen=True, slots=True)
class TableOptions:
    """What the command line says of a look at tables."""

    target: str
    topics: Sequence[str] = ()
    spark_bytes: int = SPARK_BYTES
    cores: int | None = None


class TrafficReport(Report):
    """The report of this job as people read it."""

    __slots__ = ()

    def table(self) -> str:
        lines: list[str] = []
        for part in self.parts:
            facts = part.facts
            if not part.rows:
                lines.append(f"{part.topic}  nothing is sealed")
                continue
            busiest = max(facts["minutes"], key=lambda minute: minute["records"])
            lines.append(
                f"{part.topic}  {part.rows:,} records  {facts['bytes']:,} bytes  "
                f"{facts['from']} to {facts['to']}  busiest minute {busiest['time']} with "
                f"{busiest['records']:,}"
            )
            lines += [
                f"  partition {partition['partition']}  {partition['records']:,} records  "
                f"{partition['share']:.0%}"
                for partition in facts["partitions"]
            ]
            lines += [
                f"  key {hot['key']}  {hot['records']:,} records  {hot['share']:.0%}"
                for hot in facts["hotKeys"]
            ]
            if facts["damaged"]:
                lines.append(f"  {facts['damaged']:,} records cannot be read and are not counted")
            lines += [f"  quiet from {q['from']} for {q['minutes']:,} min" for q in facts["quiet"]]
        return "".join(f"{line}\n" for line in [*lines, *([self.detail] if self.detail else [])])


def run(options: Options) -> Report:
    """Count all that is sealed. Raises nothing that was foreseen: the report says it."""
    return carried_out(TrafficReport, JOB, lambda _started: _parts(options))


def run_on_tables(options: TableOptions) -> Report:
    """Count all that is archived. Raises nothing that was foreseen: the report says it."""
    return carried_out(TrafficReport, JOB, lambda _started: _table_parts(options))


def _parts(options: Options) -> list[Part]:
    volume = MountedVolume.open(options.data)
    return [_topic(options, volume, folder) for folder in volume.named(options.topics)]


def _topic(options: Options, volume: MountedVolume, folder: TopicFolder) -> Part:
    found = spread(options, slices_of(volume, folder), look)
    return _part(folder.name, folder.topic_id, found)


def _table_parts(options: TableOptions) -> list[Part]:
    handles = tables_in(options.target, options.topics)
    return [_table(options, handle) for handle in handles]


def _table(options: TableOptions, handle: Handle) -> Part:
    files, location = handle.live_files(), handle.location
    answers = each(
        files,
        lambda file: {"partitions": look_at_file(location, file)},
        size_bytes=sum(file.size_bytes for file in files),
        spark_bytes=options.spark_bytes,
        cores=options.cores,
    )
    found = [found for answer in answers for found in answer["partitions"]]
    return _part(handle.topic.name, handle.topic.topic_id, found)


def _part(topic: str, topic_id: str, found: Sequence[Found]) -> Part:
    facts = summary(found)
    code = ExitCode.DONE if facts["records"] else ExitCode.NOTHING_TO_DO
    return Part(topic, code, facts.pop("records"), "", {"topicId": topic_id} | facts)


# --- one portion: runs in a task ------------------------------------------------------------------


def look(data: Path, slice_: Slice) -> Found:
    """Records and bytes of each minute, and the most frequent keys."""
    counts = Counts()
    for piece in pieces(data, slice_):
        if isinstance(piece, DamagedRange):
            counts.add_damaged(piece.to_offset - piece.from_offset)
        else:
            counts.add(piece)
    return counts.found(slice_.partition)


def look_at_file(location: str, file: LiveFile) -> list[Found]:
    """The same of a file of a table, for each partition in it; a gap is what cannot be read."""
    counted: dict[int, Counts] = {}
    for rows in rows_of(store_at(location), [file.path], TABLE_COLUMNS):
        for number in rows.column("partition").unique().to_pylist():
            counts = counted.setdefault(number, Counts())
            of_it = rows.filter(pc.equal(rows.column("partition"), number))
            is_gap = of_it.column("gap_to").is_valid()
            counts.add(of_it.filter(pc.invert(is_gap)))
            counts.add_damaged(_lost(of_it.filter(is_gap)))
    return [counts.found(number) for number, counts in counted.items()]


def _lost(gaps: pa.RecordBatch) -> int:
    offsets = pc.subtract(gaps.column("gap_to"), gaps.column("offset"))
    return int(pc.sum(offsets, min_count=0).as_py())
