"""What one attempt carries, and what every sender can do. Values and a protocol only."""

from dataclasses import dataclass
from typing import Protocol

from ibrik_broker.delivery.answers import Answer
from ibrik_log.record import StoredRecord


@dataclass(slots=True, eq=False)
class Parcel:
    """One message on its way to one destination, for the n-th time."""

    topic: str
    topic_id: str
    partition: int
    record: StoredRecord
    attempt: int = 1
    """From 1."""
    max_attempts: int = 1
    subscription: str = ""
    """Name of the subscription; empty for a replay."""
    channel: str = ""
    """Name of the channel; empty for a destination that a subscription holds itself."""
    replay: str | None = None
    """Id of the replay that this delivery belongs to."""


class Sender(Protocol):
    """Speaks to one destination."""

    async def send(self, parcel: Parcel) -> Answer:
        """Make one attempt. Every failure is an Answer; only cancellation is raised."""
        ...

    async def close(self) -> None:
        """Give back what the sender holds open."""
        ...
