"""What a flow counts anyway: plain integers, read at a scrape."""

from dataclasses import dataclass


@dataclass(slots=True)
class FlowCounters:
    delivered: int = 0
    """Acknowledged: 2xx, OK, or by a consumer."""
    failed: int = 0
    """Attempts that failed."""
    retried: int = 0
    """Attempts that were not the first of their message."""
    dead_lettered: int = 0
    lost: int = 0
    """Fire and forget: tries that failed."""
    filtered: int = 0
    """Messages that did not fit the filter."""
    gaps: int = 0
    """Messages that the log did not hold any more."""
