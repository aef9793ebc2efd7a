"""Following a topic: events, resuming, gaps, heartbeats, goodbyes, many readers."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import ClientResponse, ClientSession

from tests.broker.http.rig import TIMEOUT_S, Rig, running_doors


@dataclass
class Reader:
    """A client of server-sent events, as far as the tests need one."""

    response: ClientResponse
    last_id: str = ""

    async def block(self) -> dict[str, str]:
        """The fields of the next block; comments are under the empty name."""
        fields: dict[str, str] = {}
        async with asyncio.timeout(TIMEOUT_S):
            while line := (await self.response.content.readline()).decode().rstrip("\n"):
                name, _, value = line.partition(":")
                fields[name] = value.strip()
        self.last_id = fields.get("id", self.last_id)
        return fields

    async def event(self) -> dict[str, str]:
        """The next block that has data."""
        while "data" not in (fields := await self.block()):
            assert fields, "the stream ended"
        return fields

    async def values(self, count: int) -> list[Any]:
        return [json.loads((await self.event())["data"])["value"] for _ in range(count)]


@asynccontextmanager
async def following(
    rig: Rig, query: str = "", topic: str = "orders", last_id: str = ""
) -> AsyncIterator[Reader]:
    url = f"http://127.0.0.1:{rig.data_port}/v1/topics/{topic}/stream{query}"
    headers = {"Last-Event-ID": last_id} if last_id else {}
    async with ClientSession() as session, session.get(url, headers=headers) as response:
        assert response.status == 200
        assert response.headers["Content-Type"] == "text/event-stream"
        yield Reader(response)


async def test_a_reader_gets_what_is_there_and_what_comes(rig: Rig) -> None:
    await rig.publish(b"1")
    async with following(rig, "?from=earliest") as reader:
        assert await reader.values(1) == [1]
        await rig.publish(b"2")
        await rig.publish(b"3")
        assert await reader.values(2) == [2, 3]


async def test_a_reader_begins_at_the_end_by_default(rig: Rig) -> None:
    await rig.publish(b"1")
    async with following(rig) as reader:
        await reader.block()
        await rig.publish(b"2")
        assert await reader.values(1) == [2]


async def test_a_reader_resumes_after_the_last_event(rig: Rig) -> None:
    await rig.create("many", partitions=4)
    for number in range(20):
        await rig.publish(b"%d" % number, topic="many", Ibrik_Key=str(number))
    seen: list[int] = []
    last_id = ""
    while len(seen) < 20:
        async with following(rig, "?from=earliest", "many", last_id) as reader:
            count = min(3, 20 - len(seen))
            while count:
                event = await reader.event()
                seen.append(json.loads(event["data"])["value"])
                count -= 1 if "id" in event else 0
            last_id = reader.last_id
    assert sorted(seen) == list(range(20))


async def test_an_idle_reader_resumes_where_it_was(rig: Rig) -> None:
    await rig.publish(b"1")
    async with following(rig) as reader:
        await reader.block()
    await rig.publish(b"2")
    async with following(rig, last_id=reader.last_id) as again:
        assert await again.values(1) == [2]


async def test_a_batch_ends_with_the_id_that_resumes_after_it(rig: Rig) -> None:
    await rig.batch({"messages": [{"value": value} for value in range(3)]})
    async with following(rig, "?from=earliest") as reader:
        events = [await reader.event() for _ in range(3)]
    assert ["id" in event for event in events] == [False, False, True]
    async with following(rig, "?offset=1") as reader:
        assert await reader.values(2) == [1, 2]


async def test_what_retention_took_is_an_explicit_gap(rig: Rig) -> None:
    async with following(rig) as reader:
        await reader.block()
    for _ in range(3):
        await rig.publish(b"1")
    await rig.call("POST", "/v1/topics/orders:purge")
    await rig.publish(b"2")
    async with following(rig, last_id=reader.last_id) as again:
        gap = await again.event()
        assert gap["event"] == "gap"
        assert json.loads(gap["data"]) == {
            "partition": 0,
            "from": 0,
            "to": 3,
            "count": 3,
            "reason": "offset-below-start",
        }
        assert await again.values(1) == [2]


async def test_a_damaged_range_is_a_gap_too(tmp_path: Path) -> None:
    async with running_doors(tmp_path) as rig:
        for value in (b'"first"', b'"second"', b'"third"'):
            await rig.publish(value)
        topic_id = rig.parts.engine.topic("orders").id
    (segment,) = (tmp_path / "topics" / topic_id / "0").glob("*.log")
    content = bytearray(segment.read_bytes())
    content[content.index(b"second")] ^= 1
    segment.write_bytes(content)
    async with running_doors(tmp_path) as rig, following(rig, "?from=earliest") as reader:
        assert await reader.values(1) == ["first"]
        gap = json.loads((await reader.event())["data"])
        assert (gap["from"], gap["to"], gap["reason"]) == (1, 2, "corrupt-range")
        assert await reader.values(1) == ["third"]


async def test_an_idle_stream_says_that_it_lives(tmp_path: Path) -> None:
    async with running_doors(tmp_path, heartbeat_ms=10) as rig, following(rig) as reader:
        await reader.block()
        assert await reader.block() == {"": "heartbeat"}
        assert await reader.block() == {"": "heartbeat"}


async def test_readers_are_told_goodbye_at_different_times(rig: Rig) -> None:
    async with following(rig) as one, following(rig) as two:
        for reader in (one, two):
            await reader.block()
        rig.data.stream.close()
        goodbyes = [await reader.event() for reader in (one, two)]
        assert [json.loads(g["data"]) for g in goodbyes] == [{"reason": "shutting-down"}] * 2
        assert goodbyes[0]["retry"] != goodbyes[1]["retry"]
        assert await one.response.content.read() == b""


async def test_a_shutdown_does_not_wait_for_readers(rig: Rig) -> None:
    async with following(rig) as reader:
        await reader.block()
        async with asyncio.timeout(1):
            await rig.runners[0].cleanup()
        assert (await reader.event())["event"] == "goodbye"


async def test_readers_of_a_deleted_topic_are_let_go(rig: Rig) -> None:
    async with following(rig) as reader:
        await reader.block()
        await rig.call("DELETE", "/v1/topics/orders?policy=Delete")
        assert json.loads((await reader.event())["data"]) == {"reason": "unknown-topic"}


async def test_partitions_that_are_added_are_followed(rig: Rig) -> None:
    async with following(rig) as reader:
        await reader.block()
        body = {"metadata": {"name": "orders"}, "spec": {"partitions": 2}}
        await rig.call("PUT", "/v1/topics/orders", body)
        await rig.publish(b"1", Ibrik_Partition="0")
        await rig.publish(b"2", Ibrik_Partition="1")
        assert sorted(await reader.values(2)) == [1, 2]


async def test_readers_at_the_tail_share_what_is_rendered(rig: Rig) -> None:
    readers_count, batches_count = 100, 5
    url = f"http://127.0.0.1:{rig.data_port}/v1/topics/orders/stream"
    chunks = rig.data.stream.chunks

    async def follow(started: asyncio.Semaphore) -> list[Any]:
        async with rig.session.get(url) as response:
            reader = Reader(response)
            await reader.block()
            started.release()
            return await reader.values(batches_count)

    started = asyncio.Semaphore(0)
    async with asyncio.TaskGroup() as tasks:
        readers = [tasks.create_task(follow(started)) for _ in range(readers_count)]
        for _ in range(readers_count):
            await started.acquire()
        for number in range(batches_count):
            await rig.publish(b"%d" % number)
    assert [reader.result() for reader in readers] == [list(range(batches_count))] * readers_count
    assert chunks.rendered_count == batches_count


async def test_a_slow_reader_is_not_buffered_for(rig: Rig) -> None:
    """Nothing is read, 40 MB are published: the broker holds a few hundred kilobytes of them."""
    reader, writer = await asyncio.open_connection("127.0.0.1", rig.data_port, limit=2**16)
    writer.write(b"GET /v1/topics/orders/stream HTTP/1.1\r\nHost: x\r\n\r\n")
    await reader.readuntil(b"\r\n\r\n")
    value = b'"' + b"x" * 1_000_000 + b'"'
    for _ in range(40):
        await rig.publish(value)
    (protocol,) = (p for p in rig.runners[0].server.connections if p._current_request is not None)
    assert protocol.transport.get_write_buffer_size() < 3_000_000
    received = 0
    async with asyncio.timeout(TIMEOUT_S):
        while received < 40 * len(value):
            received += len(await reader.read(2**16))
    writer.close()


async def test_an_id_of_another_topic_is_refused(rig: Rig) -> None:
    await rig.create("other", partitions=2)
    async with following(rig, topic="other") as reader:
        await reader.block()
    headers = {"Last-Event-ID": reader.last_id}
    reply = await rig.call("GET", "/v1/topics/orders/stream", headers=headers)
    reply.refused("invalid-request")
