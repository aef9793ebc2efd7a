"""What the harness asks the broker over HTTP besides publishing and leasing: create, look, read."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import aiohttp

from tests.crash_delivery.checker import DeadLetter, Stored
from tests.crash_delivery.diary import Place
from tests.crash_delivery.publishers import REFUSED_PAUSE_S, UnexpectedAnswer
from tests.crash_delivery.stage import (
    PARTS,
    TOPICS,
    Part,
    channel_resource,
    subscription_resource,
    topic_resource,
)
from tests.crash_delivery.values import decode_name
from tests.support.broker import Broker

REQUEST_TIMEOUT_S = 30.0
PAGE = 1_000


@contextlib.asynccontextmanager
async def open_session(broker: Broker) -> AsyncIterator[aiohttp.ClientSession]:
    timeout = aiohttp.ClientTimeout(total=REQUEST_TIMEOUT_S)
    async with aiohttp.ClientSession(broker.http_url, timeout=timeout) as session:
        yield session


async def set_stage(session: aiohttp.ClientSession, sinks_url: str) -> None:
    """Create all that plays; nothing of it changes later."""
    for topic in TOPICS:
        await _create(session, "topics", topic_resource(topic))
    for part in PARTS:
        if part.is_push:
            await _create(session, "channels", channel_resource(part, sinks_url))
        await _create(session, "subscriptions", subscription_resource(part))


async def _create(session: aiohttp.ClientSession, kind: str, resource: dict[str, Any]) -> None:
    async with session.post(f"/v1/{kind}", json=resource) as answer:
        if answer.status not in (200, 201):
            name = resource["metadata"]["name"]
            raise UnexpectedAnswer(f"create {kind} {name}: {answer.status} {await answer.text()}")


async def resume_channel(session: aiohttp.ClientSession, name: str) -> None:
    """Send again to an endpoint that said it was gone."""
    async with session.post(f"/v1/channels/{name}:resume") as answer:
        if answer.status not in (200, 503):
            raise UnexpectedAnswer(f"resume {name}: {answer.status} {await answer.text()}")


async def cursors(session: aiohttp.ClientSession, part: Part) -> dict[int, int]:
    """Where a subscription stands, by partition."""
    given = await _get(session, f"/v1/subscriptions/{part.name}/offsets")
    return {each["partition"]: each["offset"] for each in given["partitions"]}


async def unsettled(session: aiohttp.ClientSession, part: Part) -> int:
    """Messages that a subscription is not done with."""
    return int((await _get(session, f"/v1/subscriptions/{part.name}/lag"))["backlog"])


async def read_log(session: aiohttp.ClientSession, topic: str) -> dict[Place, Stored]:
    return {
        Place(message["partition"], message["offset"]): _stored(message)
        async for message in _messages(session, topic)
    }


async def read_dead_letters(
    session: aiohttp.ClientSession, part: Part
) -> list[tuple[Place, DeadLetter]]:
    """The dead letters of a subscription in their order, each with the place of its message.

    No topic for them means that there are none.
    """
    async with session.get(f"/v1/topics/{part.dead_letter_topic}") as answer:
        if answer.status == 404:
            return []
    letters = []
    async for message in _messages(session, part.dead_letter_topic):
        headers = message["headers"]
        at = datetime.fromisoformat(message["timestamp"])
        place = Place(int(headers["dlq-partition"]), int(headers["dlq-offset"]))
        letters.append((place, DeadLetter(_stored(message), round(at.timestamp() * 1_000))))
    return letters


async def _messages(session: aiohttp.ClientSession, topic: str) -> AsyncIterator[Any]:
    listed = await _get(session, f"/v1/topics/{topic}/partitions")
    for partition in listed["partitions"]:
        offset = 0
        while offset < partition["latest"]:
            path = f"/v1/topics/{topic}/partitions/{partition['partition']}/messages"
            given = await _get(session, path, offset=offset, max=PAGE)
            for message in given["messages"]:
                yield message
            offset = given["next_offset"]


def _stored(message: Any) -> Stored:
    return Stored(decode_name(message), message["key"], message["headers"]["colour"])


async def _get(session: aiohttp.ClientSession, path: str, **query: int) -> Any:
    while True:
        async with session.get(path, params=query) as answer:
            if answer.status == 200:
                return await answer.json()
            if answer.status != 503:
                raise UnexpectedAnswer(f"{path}: {answer.status} {await answer.text()}")
        await asyncio.sleep(REFUSED_PAUSE_S)
