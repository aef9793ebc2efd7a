"""What the engine says at a scrape: plain integers that it counts anyway, as metrics."""

from collections.abc import Iterator

from ibrik_broker.partitions.engine import Engine
from ibrik_broker.partitions.partition import Partition
from ibrik_broker.telemetry import metrics
from ibrik_broker.telemetry.metrics import Reading


def engine_readings(engine: Engine) -> Iterator[Reading]:
    """All readings of the engine and its topics."""
    writer = engine.writer
    yield Reading(metrics.GROUP_RECORDS, (), writer.group_records)
    yield Reading(metrics.FLUSH, (), writer.flush_seconds)
    yield Reading(metrics.APPEND_TO_ACK, (), writer.append_to_ack_seconds)
    yield Reading(metrics.TAIL_CACHE_BYTES, (), engine.tails.size_bytes)
    yield Reading(metrics.STORAGE_FREE_BYTES, (), writer.free_bytes)
    yield Reading(metrics.STORAGE_CAPACITY_BYTES, (), writer.capacity_bytes)
    yield Reading(metrics.STORAGE_FULL, (), int(writer.is_storage_low))
    cached_bytes = disk_bytes = 0
    for topic in engine.topics():
        yield Reading(metrics.DUPLICATE_RECORDS, (topic.name,), topic.duplicate_count)
        for partition in topic.partitions:
            cached_bytes += partition.read_cached_bytes
            disk_bytes += partition.read_disk_bytes
            yield from _partition_readings(partition)
            if topic.spec.archive.enabled:
                yield from _archive_readings(partition)
    yield Reading(metrics.READ_BYTES, ("cache",), cached_bytes)
    yield Reading(metrics.READ_BYTES, ("disk",), disk_bytes)


def _partition_readings(partition: Partition) -> Iterator[Reading]:
    labels = (partition.topic_name, str(partition.index))
    damaged = sum(end - start for start, end in partition.log.damaged)
    yield Reading(metrics.APPENDED_RECORDS, labels, partition.appended_count)
    yield Reading(metrics.APPENDED_BYTES, labels, partition.appended_bytes)
    yield Reading(metrics.DROPPED_RECORDS, labels, partition.dropped_count)
    yield Reading(metrics.LOG_START_OFFSET, labels, partition.earliest)
    yield Reading(metrics.HIGH_WATERMARK, labels, partition.latest)
    yield Reading(metrics.LOG_BYTES, labels, partition.size_bytes)
    yield Reading(metrics.DAMAGED_RECORDS, labels, damaged)
    yield Reading(metrics.BUFFERED_RECORDS, labels, partition.buffer.pending_records)
    yield Reading(metrics.BUFFERED_BYTES, labels, partition.buffer.pending_bytes)


def _archive_readings(partition: Partition) -> Iterator[Reading]:
    labels = (partition.topic_name, str(partition.index))
    yield Reading(metrics.ARCHIVED_OFFSET, labels, partition.archived_up_to)
    yield Reading(metrics.ARCHIVE_LAG_RECORDS, labels, partition.archive_lag)
    yield Reading(metrics.ARCHIVE_HELD_BYTES, labels, partition.held.size_bytes)
    yield Reading(metrics.ARCHIVE_OVER_HOLD, labels, int(bool(partition.held.over)))
    yield Reading(metrics.ARCHIVE_DROPPED_RECORDS, labels, partition.unarchived_dropped_count)
