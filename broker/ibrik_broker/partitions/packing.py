"""Requests into record batches: what shares a batch, what stays its own, what is refused.

A batch header names one producer, so a sequenced request and a raw frame each stay their own batch;
all other records share batches of at most 1,000 records or 256 KiB. Called by the log writer only.
"""

from collections.abc import Iterator

from ibrik_api.errors import Refusal
from ibrik_broker.partitions.messages import Append, Durability, Outcome, Record, refused
from ibrik_broker.partitions.partition import Frame, Partition
from ibrik_broker.partitions.refusals import translated
from ibrik_log import batch
from ibrik_log.errors import StorageFull

BATCH_RECORDS = 1_000
BATCH_BYTES = 256 * 1024

Outcomes = list[tuple[Append, Outcome]]


def write_appends(
    partition: Partition, appends: list[Append], now_ms: int
) -> tuple[Outcomes, list[Frame]]:
    """Append all requests of one partition in their order; each gets an outcome.

    Raises StorageFailed when the disk did: nothing of the group may be acknowledged then.
    """
    outcomes: Outcomes = []
    frames: list[Frame] = []
    for run in _runs(appends):
        if run[0].seals_from_age_ms is not None:
            outcomes.append((run[0], _seal(partition, run[0].seals_from_age_ms, now_ms)))
        elif run[0].frame is None:
            _write_run(partition, run, now_ms, outcomes, frames)
        else:
            _write_frame(partition, run[0], now_ms, outcomes, frames)
    return outcomes, frames


def _runs(appends: list[Append]) -> Iterator[list[Append]]:
    """Neighbours that may share batches; a raw frame is a run of its own, and so is a seal."""
    run: list[Append] = []
    for append in appends:
        if append.frame is not None or append.seals_from_age_ms is not None:
            if run:
                yield run
                run = []
            yield [append]
        else:
            run.append(append)
    if run:
        yield run


def _write_run(
    partition: Partition,
    run: list[Append],
    now_ms: int,
    outcomes: Outcomes,
    frames: list[Frame],
) -> None:
    records = run[0].records if len(run) == 1 else [r for append in run for r in append.records]
    size_bytes = sum(append.size_bytes for append in run)
    parts = [records] if _fits(records, size_bytes) else list(_parts(records))
    encoded = [batch.encode(part, timestamp_ms=now_ms) for part in parts if part]
    try:
        offset = _append(partition, encoded, now_ms, frames)
    except StorageFull as error:
        outcome = refused(translated(error, partition.topic_name, partition.index))
        outcomes.extend((append, outcome) for append in run)
        return
    durability, timestamp_ms = partition.settings.durability, partition.log.last_append_ms
    for append in run:
        outcomes.append((append, Outcome(offset, timestamp_ms, durability)))
        offset += append.record_count


def _fits(records: list[Record], size_bytes: int) -> bool:
    return len(records) <= BATCH_RECORDS and size_bytes <= BATCH_BYTES


def _parts(records: list[Record]) -> Iterator[list[Record]]:
    """Slices that each become one batch."""
    start, size = 0, 0
    for index, (key, value, _headers) in enumerate(records):
        grown = size + len(value or b"") + len(key or b"")
        if index > start and (index - start == BATCH_RECORDS or grown > BATCH_BYTES):
            yield records[start:index]
            start, grown = index, grown - size
        size = grown
    yield records[start:]


def _write_frame(
    partition: Partition, append: Append, now_ms: int, outcomes: Outcomes, frames: list[Frame]
) -> None:
    """Append one raw frame; a sequenced one only if its sequence is the next."""
    assert append.frame is not None
    producer = batch.read_header(append.frame).producer
    durability = partition.settings.durability
    try:
        if producer.id >= 0:
            known = partition.sequences.check(producer, append.record_count)
            if known is not None:
                outcome = Outcome(
                    known.base_offset, known.timestamp_ms, durability, is_duplicate=True
                )
                outcomes.append((append, outcome))
                return
        offset = _append(partition, [append.frame], now_ms, frames)
    except (Refusal, StorageFull) as error:
        refusal = translated(error, partition.topic_name, partition.index)
        outcomes.append((append, refused(refusal)))
        return
    if producer.id >= 0:
        partition.sequences.record(producer, append.record_count, offset, now_ms)
    outcomes.append((append, Outcome(offset, partition.log.last_append_ms, durability)))


def _seal(partition: Partition, min_age_ms: int, now_ms: int) -> Outcome:
    try:
        sealed_offset = partition.log.seal(now_ms, min_age_ms=min_age_ms)
    except StorageFull as error:
        return refused(translated(error, partition.topic_name, partition.index))
    return Outcome(sealed_offset, partition.log.last_append_ms, Durability.FLUSHED)


def _append(
    partition: Partition, encoded: list[bytearray], now_ms: int, frames: list[Frame]
) -> int:
    """Write frames to the log; returns the offset of the first record.

    An empty request (of the maintenance) only seals a segment whose time has come.
    """
    if not encoded:
        if partition.log.is_roll_due(now_ms):
            partition.log.roll(now_ms)
        return partition.log.end_offset
    first = offset = partition.log.append(encoded, now_ms)
    for content in encoded:
        next_offset = offset + batch.read_header(content).record_count
        frames.append(Frame(offset, next_offset, bytes(content)))
        offset = next_offset
    return first
