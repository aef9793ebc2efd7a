"""One message on its way to one place: a value that flows hand out and get back."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ibrik_log.record import StoredRecord

if TYPE_CHECKING:
    from ibrik_broker.delivery.deadletters import Reason


@dataclass(slots=True, eq=False)
class Delivery:
    """A message handed out, or about to be."""

    partition: int
    record: StoredRecord
    epoch: int
    """Of the flow when it was handed out: a seek makes what is in hand meaningless."""
    lane: bytes | None = None
    attempt: int = 1
    """Of this delivery, from 1."""
    first_ms: int = 0
    """When the first attempt began (wall clock); 0: this is the first."""
    until_ticks: int = 0
    """When it counts as failed (monotonic milliseconds): the lease's deadline, or of a push the
    time at which the next attempt would be due if the broker died now."""
    is_parked: bool = False
    """Whether it has a row among the retries."""
    reason: "Reason | None" = None
    """Why it is a dead letter already, and is not to be delivered."""

    @property
    def offset(self) -> int:
        return self.record.offset

    @property
    def size_bytes(self) -> int:
        record = self.record
        return len(record.value or b"") + len(record.key or b"") + 64 * len(record.headers) + 64
