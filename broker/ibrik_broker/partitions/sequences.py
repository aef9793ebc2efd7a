"""Producer sequences of one partition: a retried batch is found, a gap is refused.

Pure state, after Kafka's ProducerStateManager (KIP-98): for each producer its epoch and its last
five batches. Rebuilt from batch headers after a restart. Called by the log writer only.
"""

from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ibrik_api.errors import Refusal
from ibrik_log.batch import BatchHeader, Producer

REMEMBERED_BATCHES = 5
"""As in Kafka: an idempotent producer has at most five requests in flight."""
REMEMBERED_PRODUCERS = 10_000
"""Per partition; the producer that wrote longest ago is forgotten first."""
SEQUENCE_LIMIT = 2**31
"""Sequences are 32-bit and start again at 0 after 2^31 - 1."""


class KnownBatch(NamedTuple):
    first_sequence: int
    last_sequence: int
    base_offset: int
    timestamp_ms: int


@dataclass(slots=True)
class ProducerEntry:
    epoch: int
    batches: deque[KnownBatch] = field(default_factory=lambda: deque(maxlen=REMEMBERED_BATCHES))

    @property
    def next_sequence(self) -> int:
        return (self.batches[-1].last_sequence + 1) % SEQUENCE_LIMIT


class ProducerSequences:
    """What one partition knows of its producers."""

    def __init__(self) -> None:
        self._entries: OrderedDict[int, ProducerEntry] = OrderedDict()

    def check(self, producer: Producer, record_count: int) -> KnownBatch | None:
        """Return the earlier batch when this is a repeat, None when it may be appended.

        Raises Refusal `producer-fenced`, `unknown-producer` or `out-of-order-sequence`.
        """
        entry = self._entries.get(producer.id)
        if entry is None or producer.epoch > entry.epoch:
            if producer.sequence != 0:
                raise _unknown(producer) if entry is None else _gap(producer, 0)
            return None
        if producer.epoch < entry.epoch:
            raise Refusal(
                "producer-fenced",
                f"Producer {producer.id} has continued with epoch {entry.epoch};"
                f" epoch {producer.epoch} may not write any more.",
                current_epoch=entry.epoch,
            )
        last = (producer.sequence + record_count - 1) % SEQUENCE_LIMIT
        for batch in entry.batches:
            if batch.first_sequence == producer.sequence and batch.last_sequence == last:
                return batch
        if producer.sequence != entry.next_sequence:
            raise _gap(producer, entry.next_sequence)
        return None

    def record(self, producer: Producer, record_count: int, base_offset: int, now_ms: int) -> None:
        """Remember a batch that was appended."""
        entry = self._entries.get(producer.id)
        if entry is None or producer.epoch > entry.epoch:
            entry = self._entries[producer.id] = ProducerEntry(producer.epoch)
        last = (producer.sequence + record_count - 1) % SEQUENCE_LIMIT
        entry.batches.append(KnownBatch(producer.sequence, last, base_offset, now_ms))
        self._entries.move_to_end(producer.id)
        if len(self._entries) > REMEMBERED_PRODUCERS:
            self._entries.popitem(last=False)

    def replay(self, header: BatchHeader) -> None:
        """Remember a batch found in the log."""
        if header.producer.id >= 0:
            self.record(
                header.producer,
                header.record_count,
                header.base_offset,
                header.max_timestamp_ms,
            )

    def rows(self) -> Iterator[tuple[int, int, int, int, int, int]]:
        """All that is known, oldest first: id, epoch, first, last, base offset, time."""
        for producer_id, entry in self._entries.items():
            for batch in entry.batches:
                yield (producer_id, entry.epoch, *batch)

    def restore(self, row: tuple[int, int, int, int, int, int]) -> None:
        """Take one row of `rows` back."""
        producer_id, epoch, first, last, base_offset, timestamp_ms = row
        count = (last - first) % SEQUENCE_LIMIT + 1
        self.record(Producer(producer_id, epoch, first), count, base_offset, timestamp_ms)


def _unknown(producer: Producer) -> Refusal:
    return Refusal(
        "unknown-producer",
        f"Nothing is known of producer {producer.id} in this partition, so sequence"
        f" {producer.sequence} cannot be placed. Begin again at sequence 0.",
    )


def _gap(producer: Producer, expected: int) -> Refusal:
    return Refusal(
        "out-of-order-sequence",
        f"Producer {producer.id} sent sequence {producer.sequence}; {expected} comes next.",
        expected_sequence=expected,
    )
