"""Which dead letters of a subscription were redriven: a progress for each partition of their topic.

Kept as cursor rows under an id of their own, so that one transaction holds the message that is
parked again and the note that its dead letter is done with.
"""

from collections.abc import Iterable

from ibrik_broker.delivery.deadletters import redriven_id
from ibrik_broker.delivery.ledger import Ledger
from ibrik_broker.delivery.progress import Progress
from ibrik_broker.metadata.deliveries import CursorRow
from ibrik_broker.partitions.topic import Topic

RANGES_LIMIT = 10_000
"""Settled ranges of a partition, all of which are written with each change."""


class RedrivenPart:
    """One partition of the dead-letter topic."""

    def __init__(self, flow_id: str, index: int, topic_id: str, epoch: int) -> None:
        self.flow_id = flow_id
        self.index = index
        self.progress = Progress(0)
        self.is_fenced = False
        self._topic_id = topic_id
        self._epoch = epoch

    @property
    def is_full(self) -> bool:
        return self.progress.range_count >= RANGES_LIMIT

    def cursor_row(self, now_ms: int) -> CursorRow:
        progress = self.progress
        return CursorRow(
            flow_id=self.flow_id,
            partition=self.index,
            next_offset=progress.next_offset,
            settled=progress.encode(),
            claimed=[],
            epoch=self._epoch,
            updated_ms=now_ms,
            topic_id=self._topic_id,
        )

    def fence(self) -> None:
        """Another broker wrote it: what is known here is of no use."""
        self.is_fenced = True


class Redriven:
    """What was redriven of one dead-letter topic."""

    def __init__(self, subscription_id: str, topic: Topic, rows: Iterable[CursorRow]) -> None:
        known = list(rows)
        mine = [row for row in known if row.topic_id == topic.id]
        # Offsets of a topic that was deleted say nothing about the one that has its name now.
        others = max((row.epoch for row in known if row.topic_id != topic.id), default=-1)
        self.topic_id = topic.id
        self.parts: list[RedrivenPart] = []
        self._flow_id = redriven_id(subscription_id)
        self._epoch = max([others + 1, *(row.epoch for row in mine)])
        self.keep_up(topic)
        for row in mine:
            if row.partition < len(self.parts):
                part = self.parts[row.partition]
                part.progress = Progress(row.next_offset, row.settled)
        self.keep_up(topic)

    @property
    def is_fenced(self) -> bool:
        return any(part.is_fenced for part in self.parts)

    def keep_up(self, topic: Topic) -> None:
        """Know new partitions, and forget what lies below the start of the log."""
        for partition in topic.partitions[len(self.parts) :]:
            part = RedrivenPart(self._flow_id, partition.index, topic.id, self._epoch)
            self.parts.append(part)
        for part, partition in zip(self.parts, topic.partitions, strict=True):
            part.progress.settle_if_any(part.progress.next_offset, partition.earliest)

    def is_redriven(self, partition: int, offset: int) -> bool:
        return self.parts[partition].progress.is_settled(offset)

    def settle(self, ledger: Ledger, partition: int, offset: int) -> None:
        """Written with the next transaction."""
        part = self.parts[partition]
        part.progress.settle(offset)
        ledger.touch(part)
