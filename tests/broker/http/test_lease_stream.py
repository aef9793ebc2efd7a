"""Streams of a subscription: leases as events, one reader at a time, nothing buffered."""

import asyncio
import json
import resource
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession

from ibrik_api.resources.subscription import GroupType, Mode
from tests.broker.http.consumers import ConsumerRig, running_consumers
from tests.broker.http.rig import TIMEOUT_S
from tests.broker.http.test_stream import Reader

PATH = "/v1/subscriptions/billing/stream"


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[ConsumerRig]:
    async with running_consumers(tmp_path) as rig:
        await rig.subscribe(mode=Mode.STREAM)
        yield rig


@asynccontextmanager
async def listening(
    rig: ConsumerRig, query: str = "", name: str = "billing"
) -> AsyncIterator[Reader]:
    url = f"http://127.0.0.1:{rig.data_port}/v1/subscriptions/{name}/stream{query}"
    async with ClientSession() as session, session.get(url) as response:
        assert response.status == 200
        assert response.headers["Content-Type"] == "text/event-stream"
        assert response.headers["Ibrik-Topic"] == "orders"
        yield Reader(response)


async def messages(reader: Reader, count: int) -> list[Any]:
    events = [await reader.event() for _ in range(count)]
    assert all(set(event) == {"data"} for event in events)
    return [json.loads(event["data"]) for event in events]


async def condition(is_met: Callable[[], bool]) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while not is_met():
            await asyncio.sleep(0.002)


async def test_a_reader_gets_what_waits_and_what_comes_as_leases(rig: ConsumerRig) -> None:
    await rig.publish_numbers(2)
    async with listening(rig) as reader:
        found = await messages(reader, 2)
        await rig.publish_numbers(1, first=2)
        found += await messages(reader, 1)
        assert [message["value"] for message in found] == [0, 1, 2]
        assert (await rig.ack(*found))["acked"] == 3
    assert (await rig.look("lag"))["backlog"] == 0


async def test_when_the_reader_goes_its_leases_return_at_once(rig: ConsumerRig) -> None:
    await rig.publish_numbers(3)
    async with listening(rig) as reader:
        one, *_ = await messages(reader, 3)
        await rig.ack(one)
    flow = rig.delivery.flow("id-of-billing")
    await condition(lambda: flow.in_flight_count == 0)
    assert [(m["value"], m["attempt"]) for m in await rig.lease()] == [(1, 1), (2, 1)]


async def test_a_reader_has_no_more_in_hand_than_it_asked_for(rig: ConsumerRig) -> None:
    await rig.publish_numbers(5)
    async with listening(rig, "?max=2") as reader:
        one, two = await messages(reader, 2)
        assert rig.delivery.flow("id-of-billing").in_flight_count == 2
        await rig.ack(two)
        (three,) = await messages(reader, 1)
        assert three["value"] == 2
        await rig.act("nack", {"leases": [one["lease"]], "delay": "1h"})
        assert [m["value"] for m in await messages(reader, 1)] == [3]
        await rig.act("seek", {"to": {"from": "earliest"}})
        assert [m["value"] for m in await messages(reader, 2)] == [0, 1]


async def test_what_expires_makes_room_too(rig: ConsumerRig) -> None:
    await rig.publish_numbers(1)
    async with listening(rig, "?max=1") as reader:
        await messages(reader, 1)
        rig.forward(30_001)
        rig.delivery.alarms.ring()
        (again,) = await messages(reader, 1)
        assert (again["value"], again["attempt"]) == (0, 2)


async def test_automatic_acknowledgement_settles_what_is_written(rig: ConsumerRig) -> None:
    await rig.publish_numbers(3)
    async with listening(rig, "?ack=auto&max=1") as reader:
        assert [m["value"] for m in await messages(reader, 3)] == [0, 1, 2]
        assert (await rig.look("lag"))["backlog"] == 0
    assert await rig.lease() == []


async def test_an_exclusive_subscription_has_one_stream_at_a_time(rig: ConsumerRig) -> None:
    await rig.subscribe("ledger", type=GroupType.EXCLUSIVE, mode=Mode.STREAM)
    path = "/v1/subscriptions/ledger/stream"
    async with listening(rig, "?consumer=one", "ledger"):
        (await rig.call("GET", path)).refused("consumer-conflict")
        (await rig.call("GET", f"{path}?consumer=one")).refused("consumer-conflict")
        (await rig.act("lease", {"consumer": "two"}, "ledger")).refused("consumer-conflict")
        assert await rig.lease("ledger", consumer="one") == []
    leases = rig.delivery.leases("id-of-ledger")
    await condition(lambda: not leases.flow.in_flight_count)
    async with asyncio.timeout(TIMEOUT_S):
        while (await rig.act("lease", {"consumer": "two"}, "ledger")).status != 204:
            await asyncio.sleep(0.002)


async def test_shared_readers_get_different_messages(rig: ConsumerRig) -> None:
    async with listening(rig, "?max=1") as one, listening(rig, "?max=1") as two:
        await rig.publish_numbers(2)
        async with asyncio.timeout(10):  # less than a heartbeat: no news is missed
            found = await messages(one, 1) + await messages(two, 1)
        assert sorted(message["value"] for message in found) == [0, 1]


async def test_what_retention_took_is_a_gap_event(rig: ConsumerRig) -> None:
    async with listening(rig, "?max=1") as reader:
        await rig.publish_numbers(1)
        (first,) = await messages(reader, 1)
        await rig.publish_numbers(3, first=1)
        await rig.call("POST", "/v1/topics/orders:purge")
        await rig.publish_numbers(1, first=4)
        await rig.ack(first)
        gap = await reader.event()
        assert gap["event"] == "gap"
        told = json.loads(gap["data"])
        assert (told["partition"], told["to"], told["reason"]) == (0, 4, "offset-below-start")
        assert [m["value"] for m in await messages(reader, 1)] == [4]


async def test_an_idle_stream_says_that_it_lives(tmp_path: Path) -> None:
    async with running_consumers(tmp_path, heartbeat_ms=10) as rig:
        await rig.subscribe()
        async with listening(rig, "?max=1") as reader:
            assert await reader.block() == {"": "heartbeat"}
            assert await reader.block() == {"": "heartbeat"}
            await rig.publish_numbers(1)
            await messages(reader, 1)
            assert await reader.block() == {"": "heartbeat"}  # full, and alive


async def test_readers_are_told_goodbye_at_different_times(rig: ConsumerRig) -> None:
    async with listening(rig) as one, listening(rig) as two:
        await condition(lambda: rig.consumers.presence.waiting_count == 2)
        rig.consumers.close()
        goodbyes = [await reader.event() for reader in (one, two)]
    assert [json.loads(g["data"]) for g in goodbyes] == [{"reason": "shutting-down"}] * 2
    assert goodbyes[0]["retry"] != goodbyes[1]["retry"]


async def test_readers_of_a_subscription_that_goes_are_let_go(rig: ConsumerRig) -> None:
    async with listening(rig) as reader:
        await reader.block()
        await rig.delivery.close_subscription("id-of-billing", forget=True)
        goodbye = await reader.event()
    assert (goodbye["event"], json.loads(goodbye["data"])["reason"]) == (
        "goodbye",
        "unknown-subscription",
    )


async def test_a_slow_reader_is_not_buffered_for(rig: ConsumerRig) -> None:
    """Nothing is read, 40 MB wait: a few hundred kilobytes are leased and written."""
    for _ in range(40):
        await rig.publish(b'"' + b"x" * 1_000_000 + b'"')
    reader, writer = await asyncio.open_connection("127.0.0.1", rig.data_port, limit=2**16)
    writer.write(f"GET {PATH} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    await reader.readuntil(b"\r\n\r\n")
    flow = rig.delivery.flow("id-of-billing")
    await condition(lambda: flow.in_flight_count > 0)
    assert await rig.lease(max=1)  # the others are free for others
    assert flow.in_flight_count < 20
    writer.transport.abort()
    await condition(lambda: flow.in_flight_count == 1)


WRONG: list[tuple[str, str]] = [
    ("?max=0", "invalid-request"),
    ("?max=-1", "invalid-request"),
    ("?max=100001", "invalid-request"),
    ("?ack=maybe", "invalid-request"),
    ("?consumer=", "invalid-request"),
    (f"?consumer={'x' * 254}", "invalid-request"),
    ("?from=earliest", "invalid-request"),
]


async def test_a_wrong_question_is_refused(rig: ConsumerRig) -> None:
    for query, code in WRONG:
        (await rig.call("GET", PATH + query)).refused(code)


async def test_what_cannot_be_listened_to_is_refused(rig: ConsumerRig) -> None:
    await rig.subscribe("pushed", mode=Mode.PUSH)
    for name, code in (
        ("biling", "unknown-subscription"),
        ("Billing", "invalid-name"),
        ("pushed", "wrong-mode"),
    ):
        (await rig.call("GET", f"/v1/subscriptions/{name}/stream")).refused(code)
    rig.delivery.flow("id-of-billing").halt = "paused"
    (await rig.call("GET", PATH)).refused("subscription-paused")


@pytest.mark.slow
async def test_a_thousand_idle_readers_take_little_memory(tmp_path: Path) -> None:
    async with running_consumers(tmp_path, connections=2_000) as rig:
        await rig.subscribe()
        before = resident_bytes()
        writers = []
        for _ in range(1_000):
            _reader, writer = await asyncio.open_connection("127.0.0.1", rig.data_port)
            writer.write(f"GET {PATH} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            writers.append(writer)
        await condition(lambda: rig.consumers.presence.waiting_count == 1_000)
        assert resident_bytes() - before < 60_000_000  # the clients, which live here too, included
        for writer in writers:
            writer.transport.abort()
        await condition(lambda: rig.consumers.presence.waiting_count == 0)


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
