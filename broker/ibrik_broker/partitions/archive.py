"""How far a topic is archived: read from its folder, checked, and written before it counts."""

from collections.abc import Sequence
from pathlib import Path

import structlog

from ibrik_api.archiving import ArchiveReport
from ibrik_api.errors import Refusal
from ibrik_broker.partitions.topic import Topic
from ibrik_log.errors import UnreadableDocument
from ibrik_log.files import Disk, read_file, replace_file
from ibrik_log.log import Log
from ibrik_log.watermark import ARCHIVE_FILE, Watermark, decode_watermark, encode_watermark

logger = structlog.get_logger("ibrik.archive")


def load_watermark(disk: Disk, folder: Path, topic_id: str, logs: Sequence[Log]) -> Watermark:
    """What is known to be archived; in doubt nothing is, so that nothing is deleted for it."""
    content = read_file(disk, folder / ARCHIVE_FILE)
    if content is None:
        return Watermark()
    try:
        watermark = decode_watermark(content, topic_id)
    except UnreadableDocument:
        logger.exception("archive document unreadable", topic_id=topic_id)
        return Watermark()
    ends = [log.sealed_offset for log in logs]
    if any(offset > end for offset, end in zip(watermark.offsets, ends, strict=False)):
        # The logs are older than the document: a part of the volume was restored.
        logger.error("archive document is ahead of the log", topic_id=topic_id)
        return Watermark()
    return watermark


def store_watermark(disk: Disk, folder: Path, topic_id: str, watermark: Watermark) -> None:
    """Durable when this returns."""
    replace_file(disk, folder / ARCHIVE_FILE, encode_watermark(topic_id, watermark))


def reported_offsets(topic: Topic, report: ArchiveReport) -> dict[int, int]:
    """What a job reports of each partition.

    Raises Refusal: other-topic-id, unknown-partition, beyond-sealed.
    """
    if report.topic_id != topic.id:
        raise Refusal(
            "other-topic-id",
            f"The topic '{topic.name}' has the id {topic.id}, the report is for"
            f" {report.topic_id[:60]}. A topic made anew is another topic: archive it to a table of"
            " its own.",
            topic_id=topic.id,
        )
    offsets = {}
    for item in report.partitions:
        sealed_offset = topic.partition(item.partition).log.sealed_offset
        if item.archived_up_to > sealed_offset:
            raise Refusal(
                "beyond-sealed",
                f"{topic.name}/{item.partition} is sealed up to {sealed_offset}, the report says"
                f" {item.archived_up_to}. The table is not of this log as it is now: look whether"
                " an older volume was restored.",
                sealed_up_to=sealed_offset,
            )
        offsets[item.partition] = item.archived_up_to
    return offsets
