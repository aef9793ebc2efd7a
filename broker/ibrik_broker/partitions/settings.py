"""A topic's spec as the engine uses it: numbers with units, decided once per change of the spec."""

from dataclasses import dataclass

from ibrik_api.resources.topic import TopicSpec, WhenFull
from ibrik_broker.partitions.holding import Hold, hold_of
from ibrik_broker.partitions.messages import Durability
from ibrik_log.log import LogConfig

SEGMENT_BYTES_MAX = 2**31 - 1
"""The format's own bound: positions in an index have 31 bits."""


@dataclass(frozen=True, slots=True)
class TopicSettings:
    durability: Durability
    max_message_bytes: int
    buffer_records: int
    buffer_bytes: int
    when_full: WhenFull
    deduplication_window_ms: int
    log: LogConfig
    hold: Hold | None
    """How much is held back for the archive; None when the topic has none."""


def topic_settings(spec: TopicSpec, segment_bytes_max: int) -> TopicSettings:
    return TopicSettings(
        durability=Durability(spec.durability),
        max_message_bytes=spec.max_message_bytes,
        buffer_records=spec.buffer.records,
        buffer_bytes=spec.buffer.size_bytes,
        when_full=spec.buffer.when_full,
        deduplication_window_ms=spec.deduplication_window_ms,
        log=LogConfig(
            segment_bytes=min(spec.segment.size_bytes, segment_bytes_max),
            segment_ms=spec.segment.time_ms,
            retention_ms=spec.retention.time_ms,
            retention_bytes=spec.retention.size_bytes,
        ),
        hold=hold_of(spec.archive),
    )
