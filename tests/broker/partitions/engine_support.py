"""A real engine on a real folder, with a clock and a disk that a test can turn."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ibrik_api.resources.topic import TopicSpec
from ibrik_broker.partitions.engine import Engine, EngineConfig
from ibrik_broker.partitions.messages import Message, Outcome, Record
from ibrik_broker.partitions.topic import Topic
from ibrik_log import batch
from ibrik_log.errors import StorageFailed
from ibrik_log.files import RealDisk
from ibrik_log.record import StoredRecord
from ibrik_log.volume import Volume

NO_FLOOR = EngineConfig(min_free_bytes=0)


@dataclass
class Clock:
    """Milliseconds, moved by the test."""

    now_ms: int = 1_700_000_000_000

    def __call__(self) -> int:
        return self.now_ms


@dataclass
class Rig:
    engine: Engine
    clock: Clock
    topic_ids: dict[str, str] = field(default_factory=dict)
    failures: list[StorageFailed] = field(default_factory=list)

    async def topic(self, name: str = "orders", **spec: Any) -> Topic:
        """Open a topic, made on the volume when it is new."""
        wished = TopicSpec.model_validate(spec)
        volume = self.engine._volume
        found = [folder for folder in volume.topics() if folder.name == name]
        if found:
            topic_id = found[0].topic_id
        else:
            topic_id = f"00000000-0000-4000-8000-{len(volume.topics()):012d}"
            volume.create_topic(
                topic_id, name, self.clock(), wished.fingerprint(), wished.partitions
            )
        return await self.engine.open_topic(topic_id, name, wished)


@asynccontextmanager
async def running_engine(
    data: Path,
    *,
    config: EngineConfig = NO_FLOOR,
    clock: Clock | None = None,
    disk: Any = None,
    close: bool = True,
) -> AsyncIterator[Rig]:
    """An engine that is closed cleanly at the end (unless the test plays a crash)."""
    clock = clock or Clock()
    disk = disk or RealDisk()
    volume = Volume.open(disk, data)
    failures: list[StorageFailed] = []
    engine = Engine(disk, volume, config, clock_ms=clock, on_failure=failures.append)
    engine.start()
    try:
        yield Rig(engine, clock, failures=failures)
    finally:
        if close:
            await engine.close()
        volume.close()


def message(value: bytes, **fields: Any) -> Message:
    key, headers = fields.pop("key", None), fields.pop("headers", [])
    return Message(Record(key, value, headers), **fields)


async def read_all(topic: Topic, partition: int = 0) -> list[StoredRecord]:
    """Every visible record of a partition, through the engine's own reading."""
    found: list[StoredRecord] = []
    source = topic.partitions[partition]
    offset = source.earliest
    while frames := await source.read(offset, 1_000_000):
        for frame in frames:
            found += batch.decode(frame)
        offset = found[-1].offset + 1
    return found


def collected() -> tuple[list[Outcome], Callable[[Outcome], None], "asyncio.Event"]:
    """A list that outcomes go to, and an event that is set with each."""
    outcomes: list[Outcome] = []
    arrived = asyncio.Event()

    def done(outcome: Outcome) -> None:
        outcomes.append(outcome)
        arrived.set()

    return outcomes, done, arrived
