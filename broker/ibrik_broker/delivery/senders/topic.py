"""Delivery into another topic: the same key, bytes and headers, published once.

The id of a copy is made from the place of the original, so a repeat inside the deduplication window
of the target is answered with the first copy, also after a restart. It stands where an idempotency
key stands (`ibrik-id`), which deduplication reads back from the log.
"""

import asyncio

from ibrik_api.errors import Refusal
from ibrik_api.names import message_id
from ibrik_broker.delivery.across import PublishAcross, publish
from ibrik_broker.delivery.answers import Answer, failed
from ibrik_broker.delivery.senders.failures import failure
from ibrik_broker.delivery.senders.parcel import Parcel
from ibrik_broker.partitions.deadlines import Deadlines
from ibrik_broker.partitions.deduplication import ID_HEADER, source_in
from ibrik_broker.partitions.engine import Engine
from ibrik_broker.partitions.messages import Message, Record

_ABSENT = frozenset({"unknown-topic", "topic-detached", "topic-unavailable"})


class TopicSender:
    """One topic, of this broker or another one of the pool."""

    def __init__(
        self, name: str, *, engine: Engine, timeout_ms: int, across: PublishAcross | None = None
    ) -> None:
        """`across` publishes to topics of other brokers."""
        self._across = across
        self._name = name
        self._engine = engine
        self._timeout_s = timeout_ms / 1_000
        self._deadlines = Deadlines(timeout_ms)

    async def send(self, parcel: Parcel) -> Answer:
        loop = asyncio.get_running_loop()
        started_s = loop.time()
        retry_after_ms = None
        try:
            await self._deadlines.wait(
                publish(self._engine, self._name, _copy(parcel), self._across)
            )
        except Refusal as refusal:
            error = "unknown-topic" if refusal.code in _ABSENT else "refused"
            detail = f"{refusal.code}: {refusal.detail}"
            retry_after_ms = refusal.retry_after_ms
        except Exception as raised:  # noqa: BLE001 - a message never ends a flow
            error, detail = failure(raised, f"the topic {self._name}", self._timeout_s)
        else:
            return Answer(None, None, "", None, round((loop.time() - started_s) * 1_000))
        answer = failed(error, detail, duration_ms=round((loop.time() - started_s) * 1_000))
        return answer._replace(retry_after_ms=retry_after_ms)

    async def close(self) -> None:
        """The engine belongs to the broker."""


def _copy(parcel: Parcel) -> Message:
    record = parcel.record
    copy_id = _copy_id(parcel).encode()
    headers = [(name, value) for name, value in record.headers if name != ID_HEADER]
    headers.append((ID_HEADER, copy_id))
    source = source_in(dict(headers))  # as it is read back after a restart
    return Message(Record(record.key, record.value, headers), None, copy_id, source)


def _copy_id(parcel: Parcel) -> str:
    """The original's place; a replay is meant to come again, so it has ids of its own."""
    place = message_id(parcel.topic_id, parcel.partition, parcel.record.offset)
    return place if parcel.replay is None else f"{place}-{parcel.replay}"
