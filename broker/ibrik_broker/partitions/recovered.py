"""What the recovery of a log found, as lines for the person who reads the broker's output.

Called once for each partition that is opened. A log that was closed cleanly and is whole says
nothing.
"""

import structlog

from ibrik_log.log import Log

logger = structlog.get_logger("ibrik.recovery")


def log_recovery(log: Log, topic: str, partition: int) -> None:
    report = log.recovered
    place = {"topic": topic, "partition": partition}
    if report.cut_bytes:
        logger.warning(
            "torn tail cut",
            cut_bytes=report.cut_bytes,
            reason=report.cut_reason,
            quarantine=str(report.quarantined),
            end_offset=log.end_offset,
            **place,
        )
    if report.unreadable:
        logger.warning("small files rebuilt", files=report.unreadable, **place)
    if report.ignored:
        logger.error("segments kept and not served", files=report.ignored, **place)
    for damage in log.damaged:
        logger.error(
            "records damaged and not served",
            from_offset=damage.from_offset,
            to_offset=damage.to_offset,
            record_count=damage.to_offset - damage.from_offset,
            **place,
        )
