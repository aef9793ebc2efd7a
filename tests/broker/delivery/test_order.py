"""Order: of a key, of a partition, and none; also over failures, dead letters and a crash."""

import asyncio
from pathlib import Path

import pytest

from ibrik_api.resources.topic import Ordering
from ibrik_broker.delivery.senders.parcel import Parcel
from tests.support.delivery import DeliveryParts, open_delivery, settled, status


async def _publish(parts: DeliveryParts, text: str) -> None:
    """`a1 b1 a2`: values whose first letter is the key."""
    for value in text.split():
        await parts.publish("orders", value.encode(), key=value[:1].encode())


def _values(parts: DeliveryParts) -> str:
    return " ".join((value or b"").decode() for value in parts.sender.values)


async def test_a_failing_key_holds_back_itself_and_nobody_else(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        await parts.topic("orders")

        def answer(parcel: Parcel) -> object:
            fails = parcel.record.value == b"a1" and parcel.attempt == 1
            return status(503 if fails else 200)

        parts.sender.answer = answer  # type: ignore[assignment]
        flow = await parts.subscribe("billing", "orders", ordering=Ordering.KEY)
        await _publish(parts, "a1 b1 a2 b2 a3")
        await parts.until(lambda: flow.counters.delivered == 2)
        assert _values(parts) == "a1 b1 b2"
        await parts.advance(1_000)
        await parts.until(lambda: flow.backlog == 0)
        assert _values(parts) == "a1 b1 b2 a1 a2 a3"


async def test_after_a_dead_letter_the_key_goes_on_at_once(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        await parts.topic("orders")
        parts.sender.answer = lambda p: status(400 if p.record.value == b"a1" else 200)
        flow = await parts.subscribe("billing", "orders", ordering=Ordering.KEY)
        await _publish(parts, "a1 a2")
        await parts.until(lambda: flow.backlog == 0)
        assert _values(parts) == "a1 a2"
        assert [r.value for r in await parts.records("orders.billing.dlq")] == [b"a1"]


async def test_strict_order_has_one_message_of_a_partition_on_its_way(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        await parts.topic("orders")
        released = asyncio.Event()

        async def slowly(_parcel: Parcel) -> object:
            await released.wait()
            return status(200)

        parts.sender.answer = slowly  # type: ignore[assignment]
        flow = await parts.subscribe("billing", "orders", ordering=Ordering.STRICT)
        await _publish(parts, "a1 b1 c1")
        await parts.until(lambda: parts.sender.open_count == 1)
        await settled()
        assert _values(parts) == "a1"
        released.set()
        await parts.until(lambda: flow.backlog == 0)
        assert _values(parts) == "a1 b1 c1"
        assert parts.sender.most_open == 1


async def test_without_order_a_failure_delays_nobody(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        await parts.topic("orders")
        parts.sender.answer = lambda p: status(503 if p.record.value == b"a1" else 200)
        flow = await parts.subscribe("billing", "orders")
        await _publish(parts, "a1 a2 a3")
        await parts.until(lambda: flow.counters.delivered == 2)
        assert flow.backlog == 1


@pytest.mark.parametrize("ordering", [Ordering.KEY, Ordering.STRICT])
async def test_order_holds_over_a_crash_while_the_first_is_on_its_way(
    tmp_path: Path, ordering: Ordering
) -> None:
    never = asyncio.Event()

    async def hang(_parcel: Parcel) -> object:
        await never.wait()
        return status(200)

    async with open_delivery(tmp_path) as parts:
        await parts.topic("orders")
        parts.sender.answer = hang  # type: ignore[assignment]
        flow = await parts.subscribe("billing", "orders", ordering=ordering)
        await _publish(parts, "a1 a2 a3")
        await parts.until(lambda: parts.sender.open_count == 1)
        assert (await parts.stored(flow)).cursors[0].claimed[0][:3] == [0, 1, 1]
        await parts.stop(0)  # what was on its way is cut off: its claim stays
    clock = parts.clock
    async with open_delivery(tmp_path, clock=clock) as parts:
        flow = await parts.subscribe("billing", "orders", ordering=ordering)
        await settled()
        assert _values(parts) == ""
        await parts.advance(1_000)
        await parts.until(lambda: flow.backlog == 0)
        assert _values(parts) == "a1 a2 a3"
        assert [parcel.attempt for parcel in parts.sender.parcels] == [2, 1, 1]
