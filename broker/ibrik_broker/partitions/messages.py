"""What crosses the engine's boundary: messages in, receipts out, and the request between them.

Values only. Doors build `Message` and `Append`; the engine answers with `Receipt` and `Outcome`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from ibrik_api.errors import Refusal
from ibrik_log.record import Record

__all__ = ["Acks", "Append", "Durability", "Message", "Outcome", "Receipt", "Record"]


class Acks(StrEnum):
    """What the producer waits for."""

    DURABLE = "durable"
    NONE = "none"


class Durability(StrEnum):
    """What an acknowledgement stands for. See docs/concepts/acknowledgement.md."""

    FLUSHED = "flushed"
    WRITTEN = "written"
    NONE = "none"


class Message(NamedTuple):
    """One record to publish, and what the producer asked for it."""

    record: Record
    partition: int | None = None
    id: bytes | None = None
    """The deduplication identity (Idempotency-Key, else ce_id); None asks for no deduplication."""
    source: bytes | None = None


class Receipt(NamedTuple):
    """Where one message stands, and how safely. `offset` is -1 when nobody waited for it."""

    partition: int
    offset: int
    timestamp_ms: int
    durability: Durability
    is_duplicate: bool = False


class Outcome(NamedTuple):
    """How one `Append` ended: all its records from `base_offset` on, or all refused."""

    base_offset: int
    timestamp_ms: int
    durability: Durability
    is_duplicate: bool = False
    refusal: Refusal | None = None


def refused(refusal: Refusal) -> Outcome:
    return Outcome(-1, 0, Durability.NONE, refusal=refusal)


@dataclass(slots=True, eq=False)
class Append:
    """One request to append to one partition: records to encode, or one checked frame as it is.

    Or to seal its active segment; the outcome's offset is the end of what is sealed then.

    `done` is called once, on the event loop: when the records are durable, when they are refused,
    or, for a producer that does not wait, when they are in the buffer.
    """

    size_bytes: int
    done: Callable[[Outcome], None]
    records: list[Record] = field(default_factory=list)
    frame: bytearray | None = None
    seals_from_age_ms: int | None = None
    """Seal the active segment when its oldest record is that old; None seals nothing."""
    waits: bool = True
    """False for `acks=none`: answered on entry, and what a full buffer may drop."""
    record_count: int = 0

    def __post_init__(self) -> None:
        if self.frame is None:
            self.record_count = len(self.records)
