"""Seeks, starts and gaps: where a cursor stands, and how it gets there."""

from pathlib import Path
from typing import Any

import pytest

from ibrik_api.errors import Refusal
from ibrik_api.resources.subscription import Mode, OnGap, StartFrom
from ibrik_broker.delivery.flow import Flow
from ibrik_broker.delivery.leases import LeaseRef
from ibrik_broker.delivery.seek import plan_seek
from ibrik_broker.delivery.wishes import StartWish
from tests.support.delivery import START_MS, DeliveryParts, open_delivery, status


def _offset(offset: int) -> StartWish:
    return StartWish(origin=StartFrom.OFFSET, offsets=(offset,))


async def _seek(parts: DeliveryParts, flow: Flow, to: StartWish, **options: Any) -> None:
    await parts.dispatcher.seek(flow.id, await plan_seek(flow, to, **options))


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (StartWish(), [b"1", b"2", b"3"]),
        (StartWish(origin=StartFrom.LATEST), [b"3"]),
        (_offset(1), [b"2", b"3"]),
        (StartWish(origin=StartFrom.TIMESTAMP, timestamp_ms=START_MS + 1_000), [b"2", b"3"]),
    ],
)
async def test_a_subscription_begins_where_it_is_told(
    tmp_path: Path, start: StartWish, expected: list[bytes]
) -> None:
    async with open_delivery(tmp_path) as parts:
        await parts.topic("orders")
        await parts.publish("orders", b"1")
        parts.clock.ms += 1_000
        await parts.publish("orders", b"2")
        await parts.subscribe("billing", "orders", start=start)
        await parts.publish("orders", b"3")
        await parts.until(lambda: len(parts.sender.parcels) == len(expected))
        assert parts.sender.values == expected


async def test_latest_stays_where_it_was_over_a_crash(tmp_path: Path) -> None:
    latest = StartWish(origin=StartFrom.LATEST)
    async with open_delivery(tmp_path) as parts:
        await parts.topic("orders")
        await parts.subscribe("billing", "orders", start=latest, halt="paused")
        await parts.publish("orders", b"1")
    async with open_delivery(tmp_path, clock=parts.clock) as parts:
        await parts.subscribe("billing", "orders", start=latest)
        await parts.until(lambda: parts.sender.values == [b"1"])


async def test_a_seek_delivers_again_and_makes_leases_stale(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        await parts.topic("orders")
        flow = await parts.subscribe("billing", "orders", mode=Mode.PULL)
        await parts.publish("orders", b"1", b"2", b"3")
        leases = parts.dispatcher.leases(flow.id)
        taken = await leases.lease(consumer="a", max_count=9, max_bytes=10**6, wait_s=0)
        plan = await plan_seek(flow, _offset(1))
        assert [seek.to_offset for seek in plan.partitions] == [1]
        await parts.dispatcher.seek(flow.id, plan)
        refs = [LeaseRef(d.partition, d.offset, d.attempt, d.epoch) for d in taken]
        assert await leases.ack(refs) == ["lease-expired"] * 3
        again = await leases.lease(consumer="a", max_count=9, max_bytes=10**6, wait_s=0)
        assert [(d.offset, d.attempt) for d in again] == [(1, 1), (2, 1)]
        (row,) = (await parts.stored(flow)).cursors
        assert (row.next_offset, row.epoch) == (1, 1)


async def test_a_dry_run_counts_what_would_come_again_or_never(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        await parts.topic("orders")
        flow = await parts.subscribe("billing", "orders")
        await parts.publish("orders", b"1", b"2", b"3")
        await parts.until(lambda: flow.backlog == 0)
        back = await plan_seek(flow, StartWish())
        assert [(s.redelivered, s.skipped) for s in back.partitions] == [(3, 0)]
        await parts.dispatcher.close_subscription(flow.id, forget=True)
        flow = await parts.subscribe("billing", "orders", halt="paused")
        ahead = await plan_seek(flow, StartWish(origin=StartFrom.LATEST))
        assert [(s.redelivered, s.skipped) for s in ahead.partitions] == [(0, 3)]


@pytest.mark.parametrize(("offset", "code"), [(1, "offset-below-start"), (9, "offset-above-end")])
async def test_a_cursor_stands_only_where_there_are_messages(
    tmp_path: Path, offset: int, code: str
) -> None:
    async with open_delivery(tmp_path) as parts:
        await parts.topic("orders")
        await parts.publish("orders", b"1", b"2")
        await parts.registry.purge("orders")
        await parts.publish("orders", b"3")
        flow = await parts.subscribe("billing", "orders", mode=Mode.PULL)
        with pytest.raises(Refusal) as refused:
            await plan_seek(flow, _offset(offset))
        assert refused.value.code == code
        assert (refused.value.facts["earliest"], refused.value.facts["latest"]) == (2, 3)


async def test_a_seek_of_one_partition_keeps_the_retries_of_the_others(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        await parts.topic("orders", partitions=2, partitioner="roundRobin")
        parts.sender.answer = lambda p: status(503 if p.partition == 1 else 200)
        flow = await parts.subscribe("billing", "orders")
        await parts.publish("orders", b"0", b"1")
        await parts.until(lambda: flow.counters.failed == 1 and flow.backlog == 1)
        parts.sender.answer = lambda _: status(200)
        await _seek(parts, flow, StartWish(), partitions=[0])
        await parts.until(lambda: flow.backlog == 0)
        assert sorted(p.partition for p in parts.sender.parcels) == [0, 0, 1, 1]


async def test_what_retention_took_is_a_recorded_gap(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        await parts.topic("orders")
        flow = await parts.subscribe("billing", "orders", halt="paused")
        await parts.publish("orders", b"1", b"2")
        await parts.registry.purge("orders")
        await parts.publish("orders", b"3")
        await parts.dispatcher.change(parts.wish("billing", "orders"))
        await parts.until(lambda: flow.backlog == 0)
        assert parts.sender.values == [b"3"]
        await parts.dispatcher.ledger.commit()
        (gap,) = (await parts.stored(flow)).gaps
        assert (gap.from_offset, gap.to_offset, gap.count) == (0, 2, 2)
        assert flow.counters.gaps == 2


async def test_a_subscription_may_stop_at_a_gap_instead(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        await parts.topic("orders")
        await parts.publish("orders", b"1")
        wish = {"on_gap": OnGap.PAUSE}
        flow = await parts.subscribe("billing", "orders", halt="paused", **wish)
        await parts.registry.purge("orders")
        await parts.publish("orders", b"2")
        await parts.dispatcher.change(parts.wish("billing", "orders", **wish))
        await parts.until(lambda: parts.halts == [("subscription", flow.id, "gap")])
        assert parts.sender.values == []
        await parts.dispatcher.change(parts.wish("billing", "orders", **wish))
        await parts.until(lambda: parts.sender.values == [b"2"])


async def test_a_parked_message_that_retention_took_is_a_gap_of_one(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        await parts.topic("orders")
        parts.sender.answer = lambda _: status(503)
        flow = await parts.subscribe("billing", "orders")
        await parts.publish("orders", b"1")
        await parts.until(lambda: flow.counters.failed == 1)
        await parts.registry.purge("orders")
        await parts.advance(1_000)
        await parts.until(lambda: flow.backlog == 0)
        await parts.dispatcher.ledger.commit()
        state = await parts.stored(flow)
        assert [(g.from_offset, g.to_offset) for g in state.gaps] == [(0, 1)]
        assert state.retries == []


async def test_a_topic_that_is_made_anew_is_read_from_its_start(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        await parts.topic("orders", deletionPolicy="Delete")
        flow = await parts.subscribe("billing", "orders")
        await parts.publish("orders", b"1", b"2")
        await parts.until(lambda: flow.backlog == 0)
        await parts.registry.delete_topic("orders")
        await parts.topic("orders")
        await parts.publish("orders", b"new")
        await parts.until(lambda: parts.sender.values == [b"1", b"2", b"new"])


async def test_new_partitions_are_read_from_their_start(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        await parts.topic("orders", partitioner="roundRobin")
        flow = await parts.subscribe("billing", "orders", start=StartWish(origin=StartFrom.LATEST))
        from ibrik_api.resources.topic import TopicSpec

        wider = TopicSpec.parse({"partitions": 3, "partitioner": "roundRobin"})
        await parts.registry.put_topic("orders", wider)
        await parts.publish("orders", b"1", b"2", b"3")
        await parts.until(lambda: len(parts.sender.parcels) == 3 and flow.backlog == 0)
        assert sorted(p.partition for p in parts.sender.parcels) == [0, 1, 2]
