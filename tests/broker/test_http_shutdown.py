"""SIGTERM while HTTP clients publish and read a stream: nothing acknowledged is lost."""

import asyncio
import signal
from pathlib import Path

import aiohttp
import pytest

from tests.support.broker import STOP_TIMEOUT_S, Broker, running_broker

pytestmark = pytest.mark.slow
PRODUCERS = 16


async def publish_until_refused(
    session: aiohttp.ClientSession, broker: Broker, offsets: list[int], enough: asyncio.Event
) -> str:
    """Publish one after the other; how it ended."""
    url = f"{broker.http_url}/v1/topics/orders/messages"
    while True:
        try:
            async with session.post(url, data=b"x") as answer:
                document = await answer.json(content_type=None)
        except aiohttp.ClientConnectionError:
            return "connection closed"
        if answer.status != 201:
            assert answer.status == 503, document
            return str(document["code"])
        offsets.append(document["offset"])
        if len(offsets) >= 500:
            enough.set()


async def read_stream(session: aiohttp.ClientSession, broker: Broker) -> str:
    """Everything that a live reader gets until the broker ends its stream."""
    url = f"{broker.http_url}/v1/topics/orders/stream?from=earliest"
    async with session.get(url) as answer:
        assert answer.status == 200
        return (await answer.read()).decode()


async def test_http_answers_what_it_accepted_and_says_goodbye(tmp_path: Path) -> None:
    with running_broker(tmp_path, IBRIK_DEV="true") as broker:
        offsets: list[int] = []
        enough = asyncio.Event()
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector) as session:
            async with session.post(
                f"{broker.http_url}/v1/topics/orders/messages", data=b"first"
            ) as answer:
                assert answer.status == 201
                offsets.append((await answer.json())["offset"])
            async with asyncio.timeout(STOP_TIMEOUT_S), asyncio.TaskGroup() as tasks:
                stream = tasks.create_task(read_stream(session, broker))
                ends = [
                    tasks.create_task(publish_until_refused(session, broker, offsets, enough))
                    for _ in range(PRODUCERS)
                ]
                await enough.wait()
                broker.process.send_signal(signal.SIGTERM)
            assert {end.result() for end in ends} <= {
                "connection closed",
                "shutting-down",
                "not-ready",
            }
            assert "event: goodbye" in stream.result()
        assert await asyncio.to_thread(broker.process.wait, STOP_TIMEOUT_S) == 0
    with running_broker(tmp_path) as broker:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{broker.http_url}/v1/topics/orders/partitions") as answer,
        ):
            kept = (await answer.json())["partitions"][0]["latest"]
    # Every acknowledged offset is kept, and nothing was kept that nobody was told of.
    assert sorted(offsets) == list(range(kept))
