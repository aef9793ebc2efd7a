"""`traffic`: how many messages there were in each minute, by topic and partition, and hot keys.

Reads the sealed records of a volume and changes nothing. Counts are exact; of keys each task sends
its most frequent ones, so a count of a key is exact when a slice has fewer keys than that.
"""

import base64
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ibrik_log.volume import TopicFolder
from ibrik_spark.errors import ExitCode
from ibrik_spark.reports import Part, Report, carried_out, timestamp
from ibrik_spark.segments import DamagedRange
from ibrik_spark.slices import Slice
from ibrik_spark.spread import Found, Options, pieces, slices_of, spread
from ibrik_spark.volume import MountedVolume

JOB = "traffic"
MINUTE_MS = 60_000
KEYS_SENT = 1_000  # of one slice
HOT_KEYS = 10
QUIET_LISTED = 20


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


def _parts(options: Options) -> list[Part]:
    volume = MountedVolume.open(options.data)
    return [_topic(options, volume, folder) for folder in volume.named(options.topics)]


def _topic(options: Options, volume: MountedVolume, folder: TopicFolder) -> Part:
    slices = slices_of(volume, folder)
    found = spread(options, slices, look)
    numbers = [slice_.partition for slice_ in slices]
    facts = summary(list(zip(numbers, found, strict=True)))
    code = ExitCode.DONE if facts["records"] else ExitCode.NOTHING_TO_DO
    return Part(folder.name, code, facts.pop("records"), "", {"topicId": folder.topic_id} | facts)


# --- one slice: runs in a task --------------------------------------------------------------------


def look(data: Path, slice_: Slice) -> Found:
    """Records and bytes of each minute, and the most frequent keys."""
    minutes: dict[int, list[int]] = {}
    keys: Counter[bytes] = Counter()
    damaged = 0
    for piece in pieces(data, slice_):
        if isinstance(piece, DamagedRange):
            damaged += piece.to_offset - piece.from_offset
            continue
        _add_minutes(minutes, piece)
        counted = pc.value_counts(piece.column("key").drop_null())
        keys.update(dict(zip(*(counted.field(n).to_pylist() for n in (0, 1)), strict=True)))
    return {
        "minutes": [[minute, *counts] for minute, counts in sorted(minutes.items())],
        "keys": [[_text_of(key), count] for key, count in keys.most_common(KEYS_SENT)],
        "damaged": damaged,
    }


def _add_minutes(minutes: dict[int, list[int]], batch: pa.RecordBatch) -> None:
    at = batch.column("timestamp").cast(pa.int64()).to_numpy() // MINUTE_MS
    lengths = pc.add(
        pc.fill_null(pc.binary_length(batch.column("key")), 0),
        pc.fill_null(pc.binary_length(batch.column("value")), 0),
    ).to_numpy()
    found, places = np.unique(at, return_inverse=True)
    records, sizes = np.bincount(places), np.bincount(places, weights=lengths)
    for minute, count, size in zip(found, records, sizes, strict=True):
        known = minutes.setdefault(int(minute), [0, 0])
        known[0] += int(count)
        known[1] += int(size)


def _text_of(key: bytes) -> str:
    """A key as text; one that is none as Base64."""
    try:
        text = key.decode()
    except UnicodeDecodeError:
        return "base64:" + base64.b64encode(key).decode()
    return text if text.isprintable() else repr(text)


# --- all slices of a topic ------------------------------------------------------------------------


def summary(found: Sequence[tuple[int, Found]]) -> dict[str, Any]:
    """What the slices of one topic come to, each with the number of its partition."""
    minutes: dict[int, list[int]] = {}
    keys: Counter[str] = Counter()
    partitions: Counter[int] = Counter({number: 0 for number, _ in found})
    for number, f in found:
        keys.update(dict(f["keys"]))
        for minute, records, size_bytes in f["minutes"]:
            known = minutes.setdefault(minute, [0, 0])
            known[0] += records
            known[1] += size_bytes
            partitions[number] += records
    total = partitions.total()
    times = sorted(minutes)
    return {
        "records": total,
        "bytes": sum(size_bytes for _, size_bytes in minutes.values()),
        "damaged": sum(f["damaged"] for _, f in found),
        "from": _time(times[0]) if times else None,
        "to": _time(times[-1]) if times else None,
        "partitions": [
            {"partition": number, "records": records, "share": _share(records, total)}
            for number, records in sorted(partitions.items())
        ],
        "hotKeys": [
            {"key": key, "records": records, "share": _share(records, total)}
            for key, records in keys.most_common(HOT_KEYS)
        ],
        "quiet": _quiet(times),
        "minutes": [
            {"time": _time(m), "records": minutes[m][0], "bytes": minutes[m][1]} for m in times
        ],
    }


def _quiet(times: Sequence[int]) -> list[dict[str, Any]]:
    """The longest stretches between the first and the last minute in which nothing came."""
    found = [(after - before - 1, before + 1) for before, after in pairwise(times)]
    longest = sorted((q for q in found if q[0]), key=lambda q: (-q[0], q[1]))
    return [{"from": _time(start), "minutes": count} for count, start in longest[:QUIET_LISTED]]


def _share(records: int, total: int) -> float:
    return round(records / total, 4) if total else 0.0


def _time(minute: int) -> str:
    return timestamp(minute * 60)
