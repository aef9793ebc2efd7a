"""Publishing whole record batches as they are: the fast path, and the only one with sequences.

Each frame is checked, stamped and written; its records are never encoded again. Ids in it join the
deduplication window once it is durable, but are not looked up: repeats are told by sequence.
"""

import asyncio
from collections.abc import Callable

from ibrik_api.errors import Refusal
from ibrik_broker.partitions.messages import Append, Outcome, Receipt
from ibrik_broker.partitions.refusals import translated
from ibrik_broker.partitions.snapshots import has_ids, ids_in_frame
from ibrik_broker.partitions.topic import Topic
from ibrik_log import batch
from ibrik_log.batch import BatchHeader
from ibrik_log.errors import LogError


class RawPublishRequest:
    """The frames of one request, all for one partition."""

    def __init__(self, topic: Topic, partition: int | None, body: bytes) -> None:
        self.topic = topic
        self.frames, headers = _checked_frames(topic, body)
        self.counts = [header.record_count for header in headers]
        self.partition = _place(topic, partition, headers)
        self.receipts: list[Receipt | None] = [None] * len(self.frames)
        self.refusal: Refusal | None = None
        self.answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._missing_count = len(self.frames)

    def run(self) -> None:
        partition = self.topic.partition(self.partition)
        for index, (frame, count) in enumerate(zip(self.frames, self.counts, strict=True)):
            append = Append(len(frame), self._done(index), frame=frame, record_count=count)
            partition.submit(append)

    def _done(self, index: int) -> Callable[[Outcome], None]:
        def on_outcome(outcome: Outcome) -> None:
            if outcome.refusal is not None:
                self.refusal = self.refusal or outcome.refusal
            else:
                self.receipts[index] = Receipt(
                    self.partition,
                    outcome.base_offset,
                    outcome.timestamp_ms,
                    outcome.durability,
                    outcome.is_duplicate,
                )
                if outcome.is_duplicate:
                    self.topic.duplicate_count += self.counts[index]
                elif has_ids(self.frames[index]):
                    for identity, known in ids_in_frame(self.frames[index], self.partition):
                        self.topic.window.remember(identity, known)
            self._missing_count -= 1
            if self._missing_count == 0 and not self.answered.done():
                self.answered.set_result(None)

        return on_outcome


def _checked_frames(topic: Topic, body: bytes) -> tuple[list[bytearray], list[BatchHeader]]:
    """Every frame of the body, checked before the first one is submitted."""
    frames: list[bytearray] = []
    headers: list[BatchHeader] = []
    try:
        for part in batch.split(body):
            headers.append(batch.check(part))
            frames.append(bytearray(part))
            if len(part) > topic.settings.max_message_bytes:
                _check_records(topic, frames[-1])
    except LogError as error:
        refusal = translated(error, topic.name, 0)
        refusal.errors = [{"pointer": f"/{len(frames)}", "detail": str(error)}]
        raise refusal from error
    if not frames:
        raise Refusal("invalid-batch", "The body holds no record batch.")
    return frames, headers


def _check_records(topic: Topic, frame: bytearray) -> None:
    limit = topic.settings.max_message_bytes
    for record in batch.decode(frame):
        size = len(record.key or b"") + len(record.value or b"")
        if size > limit:
            raise Refusal(
                "message-too-large",
                f"A record of the batch has {size:,} bytes; '{topic.name}' takes {limit:,}.",
            )


def _place(topic: Topic, partition: int | None, headers: list[BatchHeader]) -> int:
    if partition is not None:
        return topic.partition(partition).index
    if len(topic.partitions) > 1 and any(header.producer.id >= 0 for header in headers):
        raise Refusal(
            "invalid-request",
            "Sequences count per partition: name one with Ibrik-Partition for a sequenced batch.",
        )
    return topic.choose_partition(None)
