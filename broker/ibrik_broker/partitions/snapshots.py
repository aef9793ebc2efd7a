"""Snapshots of what a restart would otherwise read out of the log: producer sequences, known ids.

Caches: a missing or unreadable snapshot costs a longer scan, never a wrong answer. Written at each
roll of a segment and at a clean stop; only entries of flushed records are in them.
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
from crc32c import crc32c

from ibrik_broker.partitions.deduplication import (
    CE_ID_HEADER,
    ID_HEADER,
    DeduplicationWindow,
    Identified,
    Known,
    identity_in,
    payload_digest,
)
from ibrik_broker.partitions.sequences import ProducerSequences
from ibrik_log import batch
from ibrik_log.errors import LogError
from ibrik_log.files import Disk, read_file, replace_file
from ibrik_log.log import Log

SEQUENCES_FILE = "producers.snapshot"
WINDOW_FILE = "deduplication.snapshot"
SCAN_BYTES = 128 * 1024
ID_MARKS = (ID_HEADER.encode(), CE_ID_HEADER.encode())

SequenceRow = tuple[int, int, int, int, int, int]


class SequencesSnapshot(msgspec.Struct, frozen=True):
    next_offset: int
    """The sequences cover every batch below it."""
    rows: list[SequenceRow]


class WindowSnapshot(msgspec.Struct, frozen=True):
    next_offsets: list[int]
    """Per partition: the ids of every record below it are in, as far as they are young enough."""
    entries: list[tuple[bytes, int, int, int, bytes]]


Snapshot = TypeVar("Snapshot", bound=msgspec.Struct)


def _store(disk: Disk, path: Path, snapshot: msgspec.Struct) -> None:
    """CRC-32C in four bytes, then msgpack (docs/formats/snapshots.md)."""
    content = msgspec.msgpack.encode(snapshot)
    replace_file(disk, path, crc32c(content).to_bytes(4, "big") + content, durable=False)


def _load(disk: Disk, path: Path, kind: type[Snapshot]) -> Snapshot | None:
    """The snapshot, or None when it cannot be trusted: the log says the same, only slower."""
    content = read_file(disk, path)
    if content is None or crc32c(content[4:]) != int.from_bytes(content[:4], "big"):
        return None
    try:
        return msgspec.msgpack.decode(content[4:], type=kind)
    except msgspec.DecodeError:
        return None


def store_sequences(disk: Disk, folder: Path, snapshot: SequencesSnapshot) -> None:
    _store(disk, folder / SEQUENCES_FILE, snapshot)


def load_sequences(disk: Disk, folder: Path, log: Log) -> ProducerSequences:
    """The sequences as of the log's end: the snapshot, then the headers written since."""
    sequences = ProducerSequences()
    start = log.start_offset
    snapshot = _load(disk, folder / SEQUENCES_FILE, SequencesSnapshot)
    if snapshot is not None and snapshot.next_offset <= log.end_offset:
        start = max(start, snapshot.next_offset)
        for row in snapshot.rows:
            sequences.restore(row)
    for header in log.scan_headers(start):
        sequences.replay(header)
    return sequences


def store_window(disk: Disk, folder: Path, snapshot: WindowSnapshot) -> None:
    _store(disk, folder / WINDOW_FILE, snapshot)


def restore_window(
    disk: Disk, folder: Path, logs: Sequence[Log], window: DeduplicationWindow, now_ms: int
) -> None:
    """Fill a window with the ids of its snapshot and those written since, in the order of time.

    One batch of each partition is in memory at a time: the window bounds what is kept.
    """
    starts = [log.start_offset for log in logs]
    sources: list[Iterable[Identified]] = []
    snapshot = _load(disk, folder / WINDOW_FILE, WindowSnapshot)
    if snapshot is not None and _fits(snapshot, logs):
        starts[: len(snapshot.next_offsets)] = snapshot.next_offsets
        sources.append(Identified(row[0], Known(*row[1:])) for row in snapshot.entries)
    since_ms = now_ms - window.window_ms
    for index, log in enumerate(logs):
        sources.append(_ids_in_log(log, index, starts[index], since_ms))
    window.restore(heapq.merge(*sources, key=_append_time), now_ms)


def _append_time(entry: Identified) -> int:
    return entry.known.timestamp_ms


def _fits(snapshot: WindowSnapshot, logs: Sequence[Log]) -> bool:
    """Not of a longer log than there is: such a snapshot is older than a restored volume."""
    ends = [log.end_offset for log in logs]
    return len(snapshot.next_offsets) <= len(ends) and all(
        offset <= end for offset, end in zip(snapshot.next_offsets, ends, strict=False)
    )


def _ids_in_log(log: Log, partition: int, start: int, since_ms: int) -> Iterator[Identified]:
    young = log.offset_for_timestamp(since_ms)
    offset = log.end_offset if young is None else max(start, young, log.start_offset)
    while offset < log.end_offset:
        try:
            frames = log.read(offset, SCAN_BYTES, log.end_offset)
        except LogError as error:  # a damaged range: go on behind it
            offset = getattr(error, "to_offset", log.end_offset)
            continue
        for frame in frames:
            offset = batch.read_header(frame).next_offset
            if has_ids(frame):
                yield from ids_in_frame(frame, partition)


def has_ids(frame: bytes | bytearray) -> bool:
    """Whether a batch may hold ids: a search is far cheaper than decoding."""
    return any(mark in frame for mark in ID_MARKS)


def ids_in_frame(frame: bytes | bytearray, partition: int) -> list[Identified]:
    """The identity of every record of a stored batch that has one."""
    found = []
    for record in batch.decode(frame):
        identity = identity_in(record.headers)
        if identity is not None:
            known = Known(partition, record.offset, record.timestamp_ms, payload_digest(record))
            found.append(Identified(identity, known))
    return found
