"""The registry with its real parts: a volume, an engine and SQLite in one folder.

    async with open_parts(tmp_path) as parts:
        await parts.registry.create_topic("orders", TopicSpec())

Leaving the block is a clean stop; opening the same folder again is the next start.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from ibrik_broker.auth.clients import Clients
from ibrik_broker.auth.publishers import Publishers
from ibrik_broker.metadata.clients import ClientRows
from ibrik_broker.metadata.database import Database
from ibrik_broker.metadata.publishers import PublisherRows
from ibrik_broker.metadata.rows import Origin
from ibrik_broker.metadata.topics import TopicRow, TopicRows, TopicState
from ibrik_broker.partitions.engine import Engine, EngineConfig
from ibrik_broker.partitions.messages import Message
from ibrik_broker.topics.registry import Registry
from ibrik_log.errors import StorageFailed
from ibrik_log.files import Disk, RealDisk
from ibrik_log.record import Record
from ibrik_log.volume import Volume

NOW_MS = 1_795_773_600_000
TOPIC_ID = "00000000-0000-4000-8000-000000000001"


@dataclass
class Parts:
    volume: Volume
    database: Database
    engine: Engine
    rows: TopicRows
    registry: Registry
    publishers: Publishers
    clients: Clients

    async def publish(self, name: str, *values: bytes) -> None:
        messages = [Message(Record(None, value)) for value in values]
        await self.engine.publish(self.engine.topic(name), messages)

    def messages(self, name: str) -> int:
        partitions = self.engine.topic(name).partitions
        return sum(partition.latest - partition.earliest for partition in partitions)


@asynccontextmanager
async def open_parts(
    folder: Path, *, load: bool = True, disk: Disk | None = None
) -> AsyncIterator[Parts]:
    disk = disk or RealDisk()
    volume = Volume.open(disk, folder)
    database = await Database.open(f"sqlite:///{folder}/metadata.db", volume.cluster_id)
    engine = Engine(
        disk,
        volume,
        EngineConfig(min_free_bytes=0),
        clock_ms=lambda: NOW_MS,
        on_failure=_fail,
    )
    engine.start()
    rows = TopicRows(database)
    registry = Registry(engine, volume, rows, clock_ms=lambda: NOW_MS)
    publishers = Publishers(PublisherRows(database), clock_ms=lambda: NOW_MS)
    clients = Clients(ClientRows(database), clock_ms=lambda: NOW_MS)
    registry.on_delete.append(publishers.forget_topic)
    try:
        await publishers.load()
        await clients.load()
        if load:
            await registry.load()
        yield Parts(volume, database, engine, rows, registry, publishers, clients)
    finally:
        await engine.close()
        await database.close()
        volume.close()


def row_of(name: str, state: TopicState, *, partitions: int = 1) -> TopicRow:
    """A row as a crash may have left it."""
    return TopicRow(
        id=TOPIC_ID,
        name=name,
        namespace="default",
        resource_name=name,
        resource_uid=None,
        origin=Origin.API,
        generation=1,
        spec={"partitions": partitions},
        state=state,
        revision=1,
        created_ms=NOW_MS,
        updated_ms=NOW_MS,
    )


def _fail(error: StorageFailed) -> None:
    raise AssertionError("the disk of a test never fails") from error
