"""A TCP door on a real engine, a real log and a real database, in this process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ibrik_api.resources.topic import TopicSpec
from ibrik_broker.app import Core
from ibrik_broker.settings import LimitSettings, Settings
from ibrik_broker.tcp.door import TcpDoor
from ibrik_log.errors import StorageFailed
from ibrik_wire import Reply, ReplyParser

ANSWER_TIMEOUT_S = 20.0


@dataclass
class Client:
    """A socket and a parser; nothing is sent or read but what a test says."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    replies: list[Reply] = field(default_factory=list)
    parser: ReplyParser = field(default_factory=ReplyParser)

    def send(self, stream: bytes) -> None:
        self.writer.write(stream)

    def end(self) -> None:
        """Say that no more comes, as `nc -q1` does at the end of its input."""
        self.writer.write_eof()

    async def expect(self, count: int) -> list[Reply]:
        """The next `count` replies."""
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            while len(self.replies) < count:
                received = await self.reader.read(65_536)
                assert received, f"the broker hung up after {self.replies}"
                self.replies += self.parser.feed(received)
        taken, self.replies = self.replies[:count], self.replies[count:]
        return taken

    async def expect_end(self) -> list[Reply]:
        """All replies until the broker ends the stream."""
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            received = await self.reader.read(-1)
        replies, self.replies = self.replies + self.parser.feed(received), []
        return replies

    async def close(self) -> None:
        self.writer.close()
        await self.writer.wait_closed()


@dataclass
class Rig:
    core: Core
    door: TcpDoor
    address: tuple[str, int]
    clients: list[Client] = field(default_factory=list)

    async def connect(self) -> Client:
        reader, writer = await asyncio.open_connection(*self.address)
        client = Client(reader, writer)
        self.clients.append(client)
        return client

    async def create(self, name: str, **spec: object) -> None:
        await self.core.registry.create_topic(name, TopicSpec.model_validate(spec))

    def counter(self, metric: str, *labels: str) -> float:
        """What the door would say at a scrape."""
        for spec, found, value in self.door.readings():
            if spec.name == metric and found == labels:
                assert isinstance(value, float | int)
                return value
        return 0


@asynccontextmanager
async def running_door(
    tmp_path: Path, *, dev: bool = False, **limits: object
) -> AsyncIterator[Rig]:
    """A door with the topic `orders`."""

    def on_storage_failed(error: StorageFailed) -> None:
        raise error

    settings = Settings(data=tmp_path / "data", limits=LimitSettings.model_validate(limits))
    core = await Core.open(settings, on_storage_failed)

    async def create_topic(name: str) -> None:
        await core.registry.create_topic(name, TopicSpec())

    try:
        async with asyncio.TaskGroup() as tasks:
            door = TcpDoor(
                core.engine, settings.limits, tasks, create_topic=create_topic if dev else None
            )
            tcp = settings.tcp.model_copy(update={"port": 0})
            rig = Rig(core, door, await door.open(tcp))
            await rig.create("orders")
            try:
                yield rig
            finally:
                for client in rig.clients:
                    client.writer.close()
                await door.drain(5)
    finally:
        await core.close()
