"""Delivery with its real parts (engine, SQLite, dispatcher), a fake clock and a recording sender.

    async with open_delivery(tmp_path) as parts:
        await parts.topic("orders")
        await parts.subscribe("billing", "orders")
        await parts.publish("orders", b"1", b"2")
        await parts.until(lambda: parts.sender.values == [b"1", b"2"])

Leaving the block stops cleanly; `parts.crash()` inside it loses what a SIGKILL would lose.
"""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ibrik_api.resources.destination import Destination
from ibrik_api.resources.subscription import GroupType, Mode, Retry
from ibrik_api.resources.topic import RetryPreset, TopicSpec
from ibrik_broker.delivery.answers import Answer, answered, failed
from ibrik_broker.delivery.dispatcher import Dispatcher
from ibrik_broker.delivery.flow import Flow
from ibrik_broker.delivery.retry import resolve_policy
from ibrik_broker.delivery.senders.parcel import Parcel, Sender
from ibrik_broker.delivery.senders.topic import TopicSender
from ibrik_broker.delivery.wishes import ChannelWish, SubscriptionWish
from ibrik_broker.metadata.database import Database
from ibrik_broker.metadata.deliveries import DeliveryStore, FlowState
from ibrik_broker.metadata.topics import TopicRows
from ibrik_broker.partitions.engine import Engine, EngineConfig
from ibrik_broker.partitions.messages import Message
from ibrik_broker.topics.registry import Registry
from ibrik_log.errors import StorageFailed
from ibrik_log.files import RealDisk
from ibrik_log.record import Record, StoredRecord
from ibrik_log.volume import Volume

START_MS = 1_795_773_600_000
PATIENCE_SECONDS = 10.0
OK = answered(204, duration_ms=1)
RETRY_QUICKLY = resolve_policy(
    Retry.parse({"maxAttempts": 3, "backoff": {"initial": "1s", "factor": 2, "jitter": "none"}}),
    RetryPreset.IN_CLUSTER,
)


class FakeClock:
    """Time of day and monotonic time in one, moved by hand."""

    def __init__(self) -> None:
        self.ms = START_MS

    def __call__(self) -> int:
        return self.ms


class RecordingSender:
    """Answers as it is told; remembers what it was given."""

    def __init__(self) -> None:
        self.parcels: list[Parcel] = []
        self.answer: Callable[[Parcel], Answer | Awaitable[Answer]] = lambda _: OK
        self.open_count = 0
        self.most_open = 0

    @property
    def values(self) -> list[bytes | None]:
        return [parcel.record.value for parcel in self.parcels]

    async def send(self, parcel: Parcel) -> Answer:
        self.parcels.append(parcel)
        self.open_count += 1
        self.most_open = max(self.most_open, self.open_count)
        try:
            answer = self.answer(parcel)
            return answer if isinstance(answer, Answer) else await answer
        finally:
            self.open_count -= 1

    async def close(self) -> None:
        pass


@dataclass
class DeliveryParts:
    engine: Engine
    registry: Registry
    store: DeliveryStore
    dispatcher: Dispatcher
    clock: FakeClock
    sender: RecordingSender
    database: Database
    halts: list[tuple[str, str, str]] = field(default_factory=list)

    async def topic(self, name: str, **spec: Any) -> None:
        await self.registry.create_topic(name, TopicSpec.parse(spec))

    async def publish(self, topic: str, *values: bytes, key: bytes | None = None) -> None:
        messages = [Message(Record(key, value)) for value in values]
        await self.engine.publish(self.engine.topic(topic), messages)

    async def channel(self, identity: str = "ch", **spec: Any) -> None:
        spec.setdefault("http", {"url": "http://127.0.0.1:9/hook"})
        halt = spec.pop("halt", None)
        wish = ChannelWish(
            id=identity,
            name=identity,
            namespace="default",
            destination=Destination.parse(spec),
            halt=halt,
        )
        await self.dispatcher.put_channel(wish)

    def wish(self, name: str, topic: str, **wish: Any) -> SubscriptionWish:
        wish.setdefault("mode", Mode.PUSH)
        wish.setdefault("type", GroupType.SHARED)
        wish.setdefault("retry", RETRY_QUICKLY)
        if wish["mode"] is Mode.PUSH:
            wish.setdefault("channel_id", "ch")
        identity = str(uuid.uuid5(uuid.NAMESPACE_DNS, name))
        return SubscriptionWish(id=identity, name=name, namespace="default", topic=topic, **wish)

    async def subscribe(self, name: str, topic: str, **wish: Any) -> Flow:
        """Over the channel `ch`, which is made when it is not there."""
        wished = self.wish(name, topic, **wish)
        if wished.channel_id == "ch" and not self.dispatcher.outlets():
            await self.channel()
        await self.dispatcher.open(wished)
        return self.dispatcher.flow(wished.id)

    async def advance(self, ms: int) -> None:
        """Let time pass, and what is due happen."""
        self.clock.ms += ms
        self.dispatcher.alarms.ring()
        await settled()

    async def stop(self, seconds: float = 5.0) -> None:
        """End deliveries; with 0 seconds what is on its way is cut off, as by a SIGKILL."""
        await self.dispatcher.drain(seconds)
        await self.dispatcher.close()

    async def until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not is_so():
                await asyncio.sleep(0.001)

    async def stored(self, flow: Flow) -> FlowState:
        """What the database would know after a crash now."""
        return await self.store.load(flow.id)

    async def records(self, topic: str) -> list[StoredRecord]:
        found: list[StoredRecord] = []
        for partition in self.engine.topic(topic).partitions:
            offset = partition.earliest
            while offset < partition.latest:
                found += await self.dispatcher.reader.read(partition, offset, 1_000_000)
                offset = found[-1].offset + 1
        return found


async def settled() -> None:
    """Let every task that can go on do so."""
    for _ in range(20):
        await asyncio.sleep(0)


def status(code: int, **facts: Any) -> Answer:
    return answered(code, duration_ms=1, **facts)


def unreachable(detail: str = "refused") -> Answer:
    return failed("connect-failed", detail, duration_ms=1)


@asynccontextmanager
async def open_delivery(
    folder: Path,
    *,
    clock: FakeClock | None = None,
    sender: RecordingSender | None = None,
    database_url: str | None = None,
) -> AsyncIterator[DeliveryParts]:
    clock, sender = clock or FakeClock(), sender or RecordingSender()
    disk = RealDisk()
    volume = Volume.open(disk, folder)
    url = database_url or f"sqlite:///{folder}/metadata.db"
    database = await Database.open(url, volume.cluster_id)
    engine = Engine(disk, volume, EngineConfig(min_free_bytes=0), clock_ms=clock, on_failure=_fail)
    engine.start()
    registry = Registry(engine, volume, TopicRows(database), clock_ms=clock)
    await registry.load()
    store = DeliveryStore(database)
    try:
        async with asyncio.TaskGroup() as tasks:
            dispatcher = Dispatcher(
                engine,
                store,
                tasks,
                make_sender=lambda wish: _sender(wish, engine, sender),
                ensure_topic=registry.ensure_topic,
                clock_ms=clock,
                ticks_ms=clock,
            )
            parts = DeliveryParts(engine, registry, store, dispatcher, clock, sender, database)

            async def on_halt(*facts: str) -> None:
                parts.halts.append(facts)  # type: ignore[arg-type]

            dispatcher.on_halt = on_halt
            await dispatcher.start()
            yield parts
            await parts.stop()
    finally:
        await engine.close()
        await database.close()
        volume.close()


def _sender(wish: ChannelWish, engine: Engine, recording: RecordingSender) -> Sender:
    """Into topics really; to everything else as the test says."""
    topic = wish.destination.topic
    if topic is None:
        return recording
    return TopicSender(topic.name, engine=engine, timeout_ms=5_000)


def _fail(error: StorageFailed) -> None:
    raise AssertionError("the disk of a test never fails") from error
