"""Messages that cannot be delivered go to a topic: the same bytes, and why.

The dead letter is durable before the message counts as settled. One that cannot be written holds
the message back: it is tried again, never dropped.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from ibrik_api.errors import Refusal
from ibrik_api.names import MAX_NAME_LENGTH, message_id
from ibrik_api.resources.subscription import OnExhausted
from ibrik_api.resources.topic import TopicSpec
from ibrik_api.timestamps import format_timestamp
from ibrik_broker.delivery.across import PublishAcross, publish
from ibrik_broker.delivery.flow import Flow
from ibrik_broker.delivery.message import Delivery
from ibrik_broker.delivery.wishes import SubscriptionWish
from ibrik_broker.partitions.attributes import identity
from ibrik_broker.partitions.deduplication import ID_HEADER, source_in
from ibrik_broker.partitions.engine import Engine
from ibrik_broker.partitions.messages import Message
from ibrik_broker.partitions.topic import Topic
from ibrik_log.record import Record

SUFFIX = ".dlq"
PREFIX = "dlq-"
MAX_ERROR_BYTES = 1_024
DEAD_LETTER_SPEC = TopicSpec.parse({"deduplicationWindow": "1d"})
"""Of a dead-letter topic that is made by itself: a broker that was down for long still knows the
letters that it wrote just before."""

logger = structlog.get_logger("delivery")


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a message is a dead letter: a code of `answers.ERRORS`, and what the last try said."""

    code: str
    detail: str
    status: int | None = None


def dead_letter_topic(topic: str, subscription: str) -> str:
    """The name of the topic; cut where a topic's name may not be longer."""
    room = MAX_NAME_LENGTH - len(SUFFIX)
    return f"{topic}.{subscription}"[:room].rstrip("._-") + SUFFIX


def dead_letters_of(wish: SubscriptionWish) -> str:
    """The name of the topic that a subscription's dead letters go to."""
    return wish.dead_letter_topic or dead_letter_topic(wish.topic, wish.name)


def redriven_id(subscription_id: str) -> str:
    """The flow under which is kept which dead letters of a subscription were redriven."""
    return f"{subscription_id}:dlq"


def is_dead_letter_topic(name: str) -> bool:
    return name.endswith(SUFFIX)


class DeadLetters:
    """Writes dead letters through the engine, as any other message."""

    def __init__(
        self,
        engine: Engine,
        ensure_topic: Callable[[str, TopicSpec], Awaitable[None]],
        clock_ms: Callable[[], int],
        across: PublishAcross | None = None,
    ) -> None:
        """`across` publishes to topics of other brokers."""
        self._across = across
        self._engine = engine
        self._ensure_topic = ensure_topic
        self._clock_ms = clock_ms

    async def put(
        self, flow: Flow, wish: SubscriptionWish, delivery: Delivery, reason: Reason
    ) -> bool:
        """Settle a message that had all its attempts; False: it stays, blocked or for later."""
        name = dead_letters_of(wish)
        if wish.retry.on_exhausted is OnExhausted.BLOCK or is_dead_letter_topic(wish.topic):
            flow.park(delivery, None)
            return False
        try:
            await self._write(name, flow, wish, delivery, reason)
        except Refusal as refusal:
            logger.warning("dead letter not written", topic=name, reason=refusal.detail)
            if flow.is_current(delivery):
                flow.postpone(delivery, reason)
            return False
        if flow.is_current(delivery):
            flow.settle(delivery)
            flow.counters.dead_lettered += 1
        return True

    async def _write(
        self, name: str, flow: Flow, wish: SubscriptionWish, delivery: Delivery, reason: Reason
    ) -> None:
        await self._make(name)
        assert flow.topic is not None, "a message in hand has a topic"
        place = message_id(flow.topic.id, delivery.partition, delivery.offset)
        record = delivery.record
        own_id = identity(flow.topic.id, delivery.partition, delivery.offset, dict(record.headers))
        # Written again after a crash in between, it is the same dead letter; redriven and failed
        # again, it is another one. The id stands in the record, where it is found after a crash.
        letter_id = f"{wish.id}:{place}:{delivery.first_ms}".encode()
        headers = [
            *((name, value) for name, value in record.headers if name != ID_HEADER),
            *self._headers(flow.topic, own_id, wish, delivery, reason),
            (ID_HEADER, letter_id),
        ]
        source = source_in(dict(headers))
        letter = Message(Record(record.key, record.value, headers), None, letter_id, source)
        await publish(self._engine, name, letter, self._across)

    async def _make(self, name: str) -> None:
        """The topic, when there is none; in a pool it comes to the broker of the original's."""
        if self._engine.served(name) is None and name not in self._engine.absent:
            await self._ensure_topic(name, DEAD_LETTER_SPEC)

    def _headers(
        self, topic: Topic, own_id: str, wish: SubscriptionWish, delivery: Delivery, reason: Reason
    ) -> list[tuple[str, bytes | None]]:
        told = {
            "reason": reason.code,
            "error": reason.detail,
            "status": "" if reason.status is None else str(reason.status),
            "attempts": str(delivery.attempt),
            "first-attempt": format_timestamp(delivery.first_ms),
            "last-attempt": format_timestamp(self._clock_ms()),
            "channel": wish.channel_id or "",
            "subscription": wish.name,
            "topic": topic.name,
            "topic-id": topic.id,
            "partition": str(delivery.partition),
            "offset": str(delivery.offset),
            "id": own_id,
        }
        return [
            (PREFIX + name, text.encode()[:MAX_ERROR_BYTES]) for name, text in told.items() if text
        ]
