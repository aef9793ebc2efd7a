"""Push: messages of a topic arrive at a destination, as durably as it was asked for."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path

import pytest

from ibrik_broker.delivery.pusher import Pusher
from tests.support.delivery import OK, open_delivery, status, unreachable


async def test_every_message_arrives_once_and_the_cursor_follows(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        await parts.topic("orders")
        flow = await parts.subscribe("billing", "orders")
        await parts.publish("orders", b"1", b"2", b"3")
        await parts.until(lambda: len(parts.sender.parcels) == 3)
        await parts.until(lambda: flow.backlog == 0)
        assert sorted(parts.sender.values) == [b"1", b"2", b"3"]
        await parts.dispatcher.ledger.commit()
        state = await parts.stored(flow)
        assert [(row.next_offset, row.settled, row.claimed) for row in state.cursors] == [
            (3, [], [])
        ]


async def test_a_failed_message_comes_again_when_its_time_has_come(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        await parts.topic("orders")
        parts.sender.answer = lambda parcel: status(503) if parcel.attempt == 1 else status(200)
        flow = await parts.subscribe("billing", "orders")
        await parts.publish("orders", b"1")
        await parts.until(lambda: len(flow.parked) == 1)
        await parts.advance(999)
        assert [p.attempt for p in parts.sender.parcels] == [1]
        await parts.advance(1)
        await parts.until(lambda: flow.backlog == 0)
        assert [p.attempt for p in parts.sender.parcels] == [1, 2]
        await parts.dispatcher.ledger.commit()
        assert (await parts.stored(flow)).retries == []


async def test_after_the_last_attempt_a_message_goes_to_the_dead_letters(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        await parts.topic("orders")
        parts.sender.answer = lambda _: unreachable()
        flow = await parts.subscribe("billing", "orders")
        await parts.publish("orders", b"1", key=b"k")
        for failures, wait_ms in ((1, 1_000), (2, 2_000)):
            await parts.until(lambda n=failures: flow.counters.failed == n)  # type: ignore[misc]
            await parts.advance(wait_ms)
        await parts.until(lambda: flow.backlog == 0)
        assert [p.attempt for p in parts.sender.parcels] == [1, 2, 3]
        (dead,) = await parts.records("orders.billing.dlq")
        assert (dead.key, dead.value) == (b"k", b"1")
        told = dict(dead.headers)
        assert told["dlq-reason"] == b"connect-failed"
        assert told["dlq-attempts"] == b"3"
        assert told["dlq-offset"] == b"0"


async def test_workers_wait_for_the_next_claim_instead_of_ending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []
    start = Pusher._start

    def counted(self: Pusher, work: Coroutine[None, None, None]) -> None:
        started.append(work.__name__)
        start(self, work)

    monkeypatch.setattr(Pusher, "_start", counted)
    async with open_delivery(tmp_path) as parts:
        await parts.topic("orders")
        flow = await parts.subscribe("billing", "orders")
        parts.sender.answer = lambda _: asyncio.sleep(0, OK)
        await parts.publish("orders", *(b"%d" % n for n in range(500)))
        await parts.until(lambda: flow.counters.delivered == 500)
    assert len(started) < 100, "a task for each of a few claims, and a few workers"
