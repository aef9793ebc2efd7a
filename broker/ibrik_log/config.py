"""How one log rolls and what it keeps: values, given by the topic."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LogConfig:
    """How a log rolls and what it keeps. None: no limit."""

    segment_bytes: int = 256 * 1024 * 1024
    segment_ms: int = 3_600_000
    retention_ms: int | None = None
    retention_bytes: int | None = None
    index_interval_bytes: int = 4096
