"""The door to the broker that records are published to once more, in sequence.

The sequences of a producer are what makes a killed run go on without doubling: the broker knows
from its log how many records of a producer it holds, and says so. Nothing is kept beside it.
"""

from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiolimiter import AsyncLimiter

import ibrik_client
from ibrik_client import IbrikError, RetryPolicy
from ibrik_log.batch import Producer, encode
from ibrik_log.record import Record

from .broker import PATIENCE_S, refusals
from .errors import BrokerRefused

BATCH_RECORDS = 1_000
BATCH_BYTES = 512 * 1024
SEQUENCES = 2**31
"""They are 32-bit, and begin again at 0."""
ENDED = ("failed", "cancelled")


@dataclass(frozen=True, slots=True)
class KnownTopic:
    """A topic of the broker."""

    name: str
    topic_id: str
    partitions: int


@dataclass(slots=True)
class Progress:
    """How far one producer is: the number of its next record, and what became of the others."""

    producer_id: int
    next: int = 0
    published: int = 0
    there: int = 0
    """Records that an earlier run had published."""

    def pass_by(self, count: int) -> None:
        self.next += count
        self.there += count


class Broker:
    """The broker that gets the records."""

    def __init__(self, client: ibrik_client.Client, rate: int | None) -> None:
        self._client = client
        self._limiter = None if rate is None else AsyncLimiter(rate, 1)
        self._batch_records = min(BATCH_RECORDS, rate or BATCH_RECORDS)

    async def topic(self, name: str) -> KnownTopic:
        with refusals(f"ask for topic {name}"):
            return _known(await self._client.admin.topic(name))

    async def topic_made(self, name: str, partitions: int) -> KnownTopic:
        """The topic of this name; made when there is none, as after the first run of a replay."""
        with refusals(f"make topic {name}"):
            try:
                return _known(await self._client.admin.topic(name))
            except IbrikError as error:
                if error.code != "unknown-topic":
                    raise
            return _known(await self._client.admin.create_topic(name, {"partitions": partitions}))

    async def publish(
        self, topic: str, partition: int, records: Iterable[Record], progress: Progress
    ) -> None:
        """Publish what is not there yet, durably and in this order."""
        for batch in batches(records, self._batch_records):
            await self._publish_batch(topic, partition, batch, progress)

    async def _publish_batch(
        self, topic: str, partition: int, records: list[Record], progress: Progress
    ) -> None:
        with refusals(f"publish to {topic}"):
            while records:
                if self._limiter is not None:
                    await self._limiter.acquire(len(records))
                sequence = progress.next % SEQUENCES
                frame = encode(records, producer=Producer(progress.producer_id, 0, sequence))
                try:
                    (ack,) = await self._client.publish_raw(
                        topic, bytes(frame), partition=partition
                    )
                except IbrikError as error:
                    held = there(error, sequence)
                    if not held:
                        raise
                    progress.pass_by(min(held, len(records)))
                    records = records[held:]
                    continue
                if ack.is_duplicate:
                    progress.pass_by(len(records))
                else:
                    progress.next += len(records)
                    progress.published += len(records)
                return

    async def check_channel(self, channel: str) -> None:
        """Refused before anything is published for it."""
        with refusals(f"ask for channel {channel}"):
            await self._client.admin.channel(channel)

    async def deliver(self, topic: str, channel: str, rate: int | None) -> dict[str, Any]:
        """Have the whole topic delivered to a channel, once; the replay of the broker that does."""
        with refusals(f"replay {topic} to channel {channel}"):
            for replay in await self._client.admin.replays():
                is_same = replay["topic"] == topic and replay["target"].get("channel") == channel
                if is_same and replay["state"] not in ENDED:
                    return replay
            wish: dict[str, Any] = {
                "source": {"topic": topic, "from": "earliest"},
                "target": {"channel": channel},
            }
            return await self._client.admin.create_replay(wish | ({"rate": rate} if rate else {}))


@asynccontextmanager
async def connect(url: str, token: str | None, rate: int | None) -> AsyncIterator[Broker]:
    """Nothing is sent before the first call; `rate` bounds the records a second."""
    retry = RetryPolicy(deadline_s=PATIENCE_S)
    async with ibrik_client.connect(url, token=token, retry=retry) as client:
        yield Broker(client, rate)


def batches(records: Iterable[Record], most: int = BATCH_RECORDS) -> Iterator[list[Record]]:
    """At most so many records each, and some hundred kilobytes; a larger record goes alone."""
    batch: list[Record] = []
    size_bytes = 0
    for record in records:
        record_bytes = _size_bytes(record)
        if batch and (len(batch) == most or size_bytes + record_bytes > BATCH_BYTES):
            yield batch
            batch, size_bytes = [], 0
        batch.append(record)
        size_bytes += record_bytes
    if batch:
        yield batch


def _size_bytes(record: Record) -> int:
    size = len(record.key or b"") + len(record.value or b"")
    return size + sum(len(name) + len(value or b"") for name, value in record.headers)


def there(error: IbrikError, sequence: int) -> int:
    """How many records from this sequence on the broker holds already, when that is what it says.

    A number far ahead is one that lies behind: the broker holds less than it acknowledged.
    """
    expected = error.problem.get("expected_sequence")
    if error.code != "out-of-order-sequence" or not isinstance(expected, int):
        return 0
    there = (expected - sequence) % SEQUENCES
    if there >= SEQUENCES // 2:
        raise BrokerRefused(
            "the broker holds less of this replay than it acknowledged; look at its volume, and "
            "begin another replay with --run NAME"
        ) from error
    return there


def _known(view: dict[str, Any]) -> KnownTopic:
    return KnownTopic(
        view["metadata"]["name"], view["status"]["topicId"], view["spec"]["partitions"]
    )
