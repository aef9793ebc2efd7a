"""The input buffer of one partition as arithmetic: two sequences and a byte count.

Decides what is admitted; holds no record, no clock and no lock. The names follow the ring buffer of
the LMAX Disruptor: a sequence is claimed when a record enters and consumed when it is written.
"""

from dataclasses import dataclass


@dataclass(slots=True)
class BufferState:
    """How full the buffer is. `claimed >= consumed` always; their difference waits for the disk."""

    records_limit: int
    bytes_limit: int
    claimed: int = 0
    consumed: int = 0
    pending_bytes: int = 0

    @property
    def pending_records(self) -> int:
        return self.claimed - self.consumed

    def has_room(self, record_count: int, size_bytes: int) -> bool:
        """Whether a request fits; an empty buffer takes one of any size, so none starves."""
        if self.claimed == self.consumed:
            return True
        return (
            self.claimed - self.consumed + record_count <= self.records_limit
            and self.pending_bytes + size_bytes <= self.bytes_limit
        )

    def claim(self, record_count: int, size_bytes: int) -> None:
        self.claimed += record_count
        self.pending_bytes += size_bytes

    def consume(self, record_count: int, size_bytes: int) -> None:
        """Records left the buffer: written, refused or dropped."""
        self.consumed += record_count
        self.pending_bytes -= size_bytes
        assert self.consumed <= self.claimed, "a record is consumed once, after it was claimed"
        assert self.pending_bytes >= 0, "bytes leave the buffer once, after they entered"
