"""What retention does to one partition, with and without an archive. The maintenance thread.

Without an archive what is old goes. With one only what is archived goes; the rest is held back, and
the topic's holdMax says what happens when that becomes too much.
"""

import structlog

from ibrik_api.resources.topic import HoldAction
from ibrik_broker.partitions.holding import Held, Hold, held_back
from ibrik_broker.partitions.partition import Partition
from ibrik_broker.partitions.refusals import archive_behind

logger = structlog.get_logger("ibrik.retention")


def retain(partition: Partition, now_ms: int) -> None:
    """Delete what may go; note what is held back, and refuse publishing where holdMax says so."""
    hold, log = partition.settings.hold, partition.log
    if hold is None:
        partition.held, partition.hold_refusal = Held(), None
        log.apply_retention(now_ms)
        return
    held = _look(partition, hold, now_ms)
    _tell(partition, hold, held)
    if held.over and hold.action is HoldAction.DROP:
        _drop(partition, held, now_ms)
        held = _look(partition, hold, now_ms)
    partition.held = held
    is_blocked = bool(held.over) and hold.action is HoldAction.BLOCK
    partition.hold_refusal = archive_behind(partition.topic_name, held) if is_blocked else None
    log.apply_retention(now_ms, keep_from=partition.archived_up_to)


def _look(partition: Partition, hold: Hold, now_ms: int) -> Held:
    return held_back(
        partition.log.expired(now_ms),
        partition.archived_up_to,
        hold,
        now_ms=now_ms,
        retention_ms=partition.settings.log.retention_ms,
    )


def _tell(partition: Partition, hold: Hold, held: Held) -> None:
    """Once when the limit is passed, and once when that is over."""
    if bool(held.over) == bool(partition.held.over):
        return
    place = {"topic": partition.topic_name, "partition": partition.index}
    if held.over:
        logger.error(
            "archive behind", held_bytes=held.size_bytes, action=hold.action.value, **place
        )
    else:
        logger.info("archive caught up", held_bytes=held.size_bytes, **place)


def _drop(partition: Partition, held: Held, now_ms: int) -> None:
    """Delete the oldest segments although they are not archived."""
    log = partition.log
    from_offset = max(log.start_offset, partition.archived_up_to)
    to_offset = log.apply_retention(now_ms, keep_from=held.over[-1].next_offset)
    dropped = to_offset - from_offset
    partition.unarchived_dropped_count += dropped
    logger.error(
        "unarchived messages dropped",
        topic=partition.topic_name,
        partition=partition.index,
        from_offset=from_offset,
        to_offset=to_offset,
        count=dropped,
    )
