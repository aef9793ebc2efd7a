"""`quality`: what is wrong or odd in the sealed records of a volume. Changes nothing.

Wrong is what no healthy log holds: damaged or missing offsets, times that go back or lie ahead. Odd
is what a data engineer wants to know: nulls, sizes, ids that were published twice, dead letters.
"""

import asyncio
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ibrik_log.volume import TopicFolder
from ibrik_spark.errors import ExitCode, JobError
from ibrik_spark.identities import digests_of, keep, repeated
from ibrik_spark.letters import dead_letters
from ibrik_spark.reports import Part, Report, timestamp
from ibrik_spark.segments import DamagedRange
from ibrik_spark.slices import Slice
from ibrik_spark.spread import Options, pieces, slices_of, spread
from ibrik_spark.volume import MountedVolume
from ibrik_spark.work import Found

JOB = "quality"
SIZE_BITS = 40
OUTLIER_BITS = 6  # a record 64 times as large as the median
AHEAD_MS = 300_000  # clocks of brokers differ; this is a clock that is wrong
MAX_RANGES = 20  # damaged ranges that are listed of one partition
COUNTS = ("records", "bytes", "nullKeys", "nullValues", "emptyValues", "damaged")


class QualityReport(Report):
    """The report of this job as people read it: a line a partition, then what is wrong."""

    __slots__ = ()

    def table(self) -> str:
        lines = [
            f"{part.topic}/{facts['partition']}  {facts['records']:,} records  "
            f"{facts['bytes']:,} bytes  median {facts['medianBytes']:,}  "
            f"largest {facts['largestBytes']:,}  null keys {facts['nullKeys']:,}  "
            f"null values {facts['nullValues']:,}  "
            f"outliers {facts['outliers']:,}"
            for part in self.parts
            for facts in part.facts["partitions"]
        ]
        lines += [
            f"{part.topic}  {part.facts['repeatedIds']:,} ids were there before"
            for part in self.parts
            if part.facts["repeatedIds"]
        ]
        lines += [_letters_text(found) for part in self.parts for found in _letters(part)]
        sentences = [part.detail for part in self.parts if part.detail]
        found = f"{len(sentences)} with problems" if sentences else "no problem"
        end = self.detail or f"{self.rows:,} records: {found}"
        return "".join(f"{line}\n" for line in [*lines, *sentences, end])


def _letters(part: Part) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = part.facts.get("deadLetters", [])
    return found


def _letters_text(found: dict[str, Any]) -> str:
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in found["reasons"].items())
    least = "" if found["isAll"] else "at least "
    return f"{found['subscription']}  {least}{found['letters']:,} dead letters: {reasons}"


def run(options: Options, server: str | None = None, token: str | None = None) -> Report:
    """Look at all that is sealed. Raises nothing that was foreseen: the report says it.

    With the address of a broker it is asked for the dead letters of each topic.
    """
    started_s = time.time()
    parts: list[Part] = []
    detail = ""
    try:
        volume = MountedVolume.open(options.data)
        now_ms = int(started_s * 1000)
        folders = volume.named(options.topics)
        parts += [_topic(options, volume, folder, now_ms) for folder in folders]
        code = ExitCode.worst([part.code for part in parts])
        if server is not None:
            for part in parts:
                found = asyncio.run(dead_letters(server, token, part.topic))
                part.facts["deadLetters"] = found
    except JobError as error:
        code, detail = error.exit_code, str(error)
    started, ended = timestamp(started_s), timestamp(time.time())
    return QualityReport(JOB, code, started, ended, detail, parts)


def _topic(options: Options, volume: MountedVolume, folder: TopicFolder, now_ms: int) -> Part:
    slices = slices_of(volume, folder)
    with tempfile.TemporaryDirectory(prefix="ibrik-quality-") as scratch:
        found = spread(options, slices, partial(look, Path(scratch)))
        twice = repeated(Path(scratch), [f["ids"] for f in found])
    partitions = [
        summary(number, [f for f, s in zip(found, slices, strict=True) if s.partition == number])
        for number in sorted({slice_.partition for slice_ in slices})
    ]
    wrong = [
        sentence
        for partition in partitions
        for sentence in _wrong(f"{folder.name}/{partition['partition']}", partition, now_ms)
    ]
    code = ExitCode.DONE if partitions else ExitCode.NOTHING_TO_DO
    return Part(
        folder.name,
        ExitCode.CONFIGURATION if wrong else code,
        sum(partition["records"] for partition in partitions),
        "; ".join(wrong),
        {
            "topicId": folder.topic_id,
            "isClean": not wrong,
            "repeatedIds": twice,
            "partitions": partitions,
        },
    )


# --- one slice: runs in a task --------------------------------------------------------------------


def look(scratch: Path, data: Path, slice_: Slice) -> Found:
    """What there is to say of one slice, small enough to be sent; its ids stay in `scratch`."""
    counts = dict.fromkeys(COUNTS, 0)
    sizes = np.zeros(SIZE_BITS, dtype=np.int64)
    largest, backwards = [0, -1], 0
    first_ms = last_ms = None
    ids: list[Any] = []
    ranges: list[list[Any]] = []
    for piece in pieces(data, slice_):
        if isinstance(piece, DamagedRange):
            counts["damaged"] += piece.to_offset - piece.from_offset
            ranges.append(list(piece))
            continue
        lengths = _count(piece, counts)
        sizes += np.bincount(_bits(lengths), minlength=SIZE_BITS)
        top = int(lengths.argmax())
        largest = max(largest, [int(lengths[top]), piece.column("offset")[top].as_py()])
        times = piece.column("timestamp").cast(pa.int64()).to_numpy()
        before = times[:1] if last_ms is None else [last_ms]
        backwards += int((np.diff(times, prepend=before) < 0).sum())
        first_ms, last_ms = first_ms or int(times[0]), int(times[-1])
        ids.append(digests_of(piece))
    return counts | {
        "ids": keep(scratch, ids),
        "sizes": sizes.tolist(),
        "largest": largest,
        "backwards": backwards,
        "times": [first_ms, last_ms],
        "ranges": ranges[:MAX_RANGES],
    }


def _count(batch: pa.RecordBatch, counts: dict[str, int]) -> Any:
    """Add a batch to the counts; the length of each record's key and value together."""
    keys, values = batch.column("key"), batch.column("value")
    value_lengths = pc.binary_length(values)
    lengths = pc.add(
        pc.fill_null(pc.binary_length(keys), 0), pc.fill_null(value_lengths, 0)
    ).to_numpy()
    counts["records"] += batch.num_rows
    counts["bytes"] += int(lengths.sum())
    counts["nullKeys"] += keys.null_count
    counts["nullValues"] += values.null_count
    counts["emptyValues"] += pc.sum(pc.equal(value_lengths, 0)).as_py() or 0
    return lengths.astype(np.int64)


def _bits(lengths: Any) -> Any:
    """The bucket of each length: how many bits it has."""
    return np.ceil(np.log2(lengths + 1)).astype(np.int64)


# --- all slices of a partition --------------------------------------------------------------------


def summary(partition: int, found: Sequence[Found]) -> dict[str, Any]:
    """What all slices of one partition come to; they are in the order of the log."""
    sizes = np.sum([f["sizes"] for f in found], axis=0)
    times = [f["times"] for f in found if f["times"][0] is not None]
    largest_bytes, largest_offset = max(f["largest"] for f in found)
    median = _percentile(sizes, 0.5)
    facts: dict[str, Any] = {"partition": partition}
    facts |= {name: sum(f[name] for f in found) for name in COUNTS}
    return facts | {
        "backwards": sum(f["backwards"] for f in found)
        + sum(after[0] < before[1] for before, after in pairwise(times)),
        "medianBytes": _most(median),
        "p99Bytes": min(_most(_percentile(sizes, 0.99)), largest_bytes),
        "largestBytes": largest_bytes,
        "largestOffset": largest_offset,
        "outliers": int(sizes[median + OUTLIER_BITS :].sum()),
        "newestMs": max((last for _, last in times), default=0),
        "damagedRanges": [r for f in found for r in f["ranges"]][:MAX_RANGES],
    }


def _percentile(sizes: Any, part: float) -> int:
    """The bucket below which this part of all records lies."""
    return int(np.searchsorted(np.cumsum(sizes), part * sizes.sum()))


def _most(bits: int) -> int:
    return (1 << bits) - 1


def _wrong(name: str, facts: dict[str, Any], now_ms: int) -> Iterator[str]:
    """Sentences for what no healthy log holds, with the next step."""
    if facts["damaged"]:
        from_offset, to_offset, reason = facts["damagedRanges"][0]
        yield (
            f"{name}: {facts['damaged']:,} records cannot be read, the first at offsets "
            f"{from_offset} to {to_offset - 1} ({reason}). Restore the segment from a backup, or "
            "accept the gap"
        )
    if facts["backwards"]:
        yield f"{name}: the append time goes back {facts['backwards']:,} times; report this"
    if facts["newestMs"] > now_ms + AHEAD_MS:
        yield (
            f"{name}: records of {timestamp(facts['newestMs'] / 1000)} lie ahead of this clock. "
            "Look at the clocks of the broker's node and of this machine"
        )
