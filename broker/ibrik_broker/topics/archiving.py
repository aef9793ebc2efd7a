"""How the archive of a topic looks from outside: for jobs, people, and the status of the Topic."""

from ibrik_api.archiving import PartitionArchive, TopicArchive
from ibrik_api.resources.archive import ArchiveRun, ArchiveTable
from ibrik_api.resources.topic import TopicArchiveStatus
from ibrik_api.timestamps import format_timestamp
from ibrik_broker.partitions.partition import Partition
from ibrik_broker.partitions.topic import Topic


def archive_view(topic: Topic) -> TopicArchive:
    """All of it, partition by partition."""
    return TopicArchive(
        topic=topic.name,
        topic_id=topic.id,
        enabled=topic.spec.archive.enabled,
        table=_table(topic),
        last_run=_last_run(topic),
        lag=_lag(topic),
        is_over_hold=_is_over_hold(topic),
        complete_through=_complete_through(topic),
        partitions=[_partition(partition) for partition in topic.partitions],
    )


def archive_status(topic: Topic) -> TopicArchiveStatus | None:
    """What the status of a Topic says; None when it has no archive."""
    if not topic.spec.archive.enabled:
        return None
    return TopicArchiveStatus(
        archived_up_to=[partition.archived_up_to for partition in topic.partitions],
        lag=_lag(topic),
        held_bytes=sum(partition.held.size_bytes for partition in topic.partitions),
        is_over_hold=_is_over_hold(topic),
        complete_through=_complete_through(topic),
        table=_table(topic),
        last_run=_last_run(topic),
    )


def _partition(partition: Partition) -> PartitionArchive:
    sealed_offset = partition.log.sealed_offset
    return PartitionArchive(
        partition=partition.index,
        log_start=partition.earliest,
        archived_up_to=partition.archived_up_to,
        sealed_up_to=sealed_offset,
        # What was only written is flushed by a seal, and shown a moment later.
        log_end=max(partition.latest, sealed_offset),
        held_bytes=partition.held.size_bytes,
    )


def _lag(topic: Topic) -> int:
    return sum(partition.archive_lag for partition in topic.partitions)


def _is_over_hold(topic: Topic) -> bool:
    return any(partition.held.over for partition in topic.partitions)


def _complete_through(topic: Topic) -> str | None:
    """The append time of the oldest message that is not archived; of the newest if all are."""
    waiting = [
        segment.first_append_ms
        for partition in topic.partitions
        for segment in partition.log.segments
        if segment.next_offset > max(partition.archived_up_to, segment.base_offset)
        and segment.first_append_ms
    ]
    newest_ms = max((partition.log.last_append_ms for partition in topic.partitions), default=0)
    moment_ms = min(waiting, default=newest_ms)
    return format_timestamp(moment_ms) if moment_ms else None


def _table(topic: Topic) -> ArchiveTable | None:
    table = topic.watermark.table
    return None if table is None else ArchiveTable.parse(table)


def _last_run(topic: Topic) -> ArchiveRun | None:
    run = topic.watermark.last_run
    return None if run is None else ArchiveRun.parse(run)
