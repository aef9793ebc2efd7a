"""Leases: each message to one consumer, until it is settled or its deadline passes."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ibrik_api.errors import Refusal
from ibrik_api.resources.subscription import GroupType, Mode
from ibrik_api.resources.topic import Ordering, TopicSpec
from ibrik_broker.delivery.leases import LeaseRef, Leases
from ibrik_broker.delivery.message import Delivery
from tests.support.delivery import DeliveryParts, open_delivery, settled

EXPIRED = "lease-expired"


async def _leases(parts: DeliveryParts, **wish: Any) -> Leases:
    if not parts.engine.topics():
        await parts.topic("orders")
    flow = await parts.subscribe("billing", "orders", mode=Mode.PULL, **wish)
    return parts.dispatcher.leases(flow.id)


async def _lease(leases: Leases, most: int = 10, consumer: str = "a", wait_s: float = 0) -> Any:
    return await leases.lease(consumer=consumer, max_count=most, max_bytes=1_000_000, wait_s=wait_s)


def _refs(deliveries: Sequence[Delivery]) -> list[LeaseRef]:
    return [LeaseRef(d.partition, d.offset, d.attempt, d.epoch) for d in deliveries]


async def test_a_message_is_leased_to_one_consumer_only(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        leases = await _leases(parts)
        await parts.publish("orders", b"1", b"2", b"3")
        first, second = await _lease(leases, 2), await _lease(leases, 2, "b")
        assert [d.offset for d in first] == [0, 1]
        assert [d.offset for d in second] == [2]
        assert await _lease(leases) == []


async def test_acks_settle_in_any_order_and_a_repeat_is_fine(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        leases = await _leases(parts)
        await parts.publish("orders", b"1", b"2", b"3")
        refs = _refs(await _lease(leases))
        assert await leases.ack([refs[2], refs[0]]) == [None, None]
        (row,) = (await parts.stored(leases.flow)).cursors
        assert (row.next_offset, row.settled) == (1, [1, 1])
        assert await leases.ack(refs) == [None, None, None]
        (row,) = (await parts.stored(leases.flow)).cursors
        assert (row.next_offset, row.settled, row.claimed) == (3, [], [])


async def test_what_is_not_acknowledged_in_time_comes_again(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        leases = await _leases(parts, ack_deadline_ms=1_000)
        await parts.publish("orders", b"1")
        (late,) = await _lease(leases)
        await parts.advance(1_000)
        (again,) = await _lease(leases, consumer="b", wait_s=5)
        assert (again.offset, again.attempt) == (0, 2)
        assert await leases.ack(_refs([late])) == [EXPIRED]
        assert leases.flow.backlog == 1
        assert await leases.ack(_refs([again])) == [None]
        assert leases.flow.backlog == 0


async def test_an_extended_lease_is_not_taken_away(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        leases = await _leases(parts, ack_deadline_ms=1_000)
        await parts.publish("orders", b"1")
        taken = await _lease(leases)
        await parts.advance(900)
        assert await leases.extend(_refs(taken), deadline_ms=None) == [None]
        await parts.advance(900)
        assert await _lease(leases) == []
        assert await leases.ack(_refs(taken)) == [None]


async def test_a_nacked_message_comes_again_after_its_delay(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        leases = await _leases(parts)
        await parts.publish("orders", b"1")
        assert await leases.nack(_refs(await _lease(leases)), delay_ms=5_000, reason="no") == [None]
        assert await _lease(leases) == []
        await parts.advance(5_000)
        (again,) = await _lease(leases)
        assert again.attempt == 2


async def test_a_message_that_nobody_can_handle_goes_to_the_dead_letters(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        leases = await _leases(parts)
        await parts.publish("orders", b"poison", b"fine")
        for attempt in (1, 2, 3):
            bad = next(d for d in await _lease(leases) if d.record.value == b"poison")
            assert bad.attempt == attempt
            await leases.nack(_refs([bad]), delay_ms=0, reason="cannot read it")
        (dead,) = await parts.records("orders.billing.dlq")
        assert dead.value == b"poison"
        assert dict(dead.headers)["dlq-error"] == b"cannot read it"
        assert dict(dead.headers)["dlq-attempts"] == b"3"


async def test_a_message_whose_dead_letter_cannot_be_written_is_not_leased_again(
    tmp_path: Path,
) -> None:
    async with open_delivery(tmp_path) as parts:
        leases = await _leases(parts)
        await parts.topic("orders.billing.dlq", maxMessageBytes="1Ki")
        await parts.publish("orders", b"x" * 2_000)
        for _ in range(3):
            bad = _refs(await _lease(leases))
            assert await leases.nack(bad, delay_ms=0, reason="cannot read it") == [None]
        assert await leases.ack(bad) == [EXPIRED]
        for _ in range(2):
            await parts.advance(1_000)
            assert await _lease(leases) == []
        await parts.registry.put_topic("orders.billing.dlq", TopicSpec())
        await parts.advance(1_000)
        assert await _lease(leases) == []
        (dead,) = await parts.records("orders.billing.dlq")
        told = dict(dead.headers)
        assert (told["dlq-reason"], told["dlq-attempts"]) == (b"nacked", b"3")
        assert leases.flow.backlog == 0


async def test_released_leases_are_as_if_they_had_never_been_given(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        leases = await _leases(parts)
        await parts.publish("orders", b"1", b"2")
        leases.release(await _lease(leases))
        again = await _lease(leases)
        assert [(d.offset, d.attempt) for d in again] == [(0, 1), (1, 1)]


async def test_leases_outlive_a_restart_until_their_deadline(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        leases = await _leases(parts, ack_deadline_ms=60_000)
        await parts.publish("orders", b"1", b"2")
        kept = _refs(await _lease(leases))
        await parts.stop(0)
    async with open_delivery(tmp_path, clock=parts.clock) as parts:
        leases = await _leases(parts, ack_deadline_ms=60_000)
        assert await _lease(leases) == []
        assert await leases.ack(kept[:1]) == [None]
        await parts.advance(60_000)
        assert await leases.ack(kept[1:]) == [EXPIRED]
        (again,) = await _lease(leases)
        assert (again.offset, again.attempt) == (1, 2)


async def test_a_waiting_consumer_gets_what_is_published(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        leases = await _leases(parts)
        waiting = asyncio.ensure_future(_lease(leases, wait_s=5))
        await settled()
        await parts.publish("orders", b"1")
        (taken,) = await waiting
        assert taken.offset == 0


async def test_an_exclusive_subscription_has_one_consumer(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        leases = await _leases(parts, type=GroupType.EXCLUSIVE)
        await parts.publish("orders", b"1", b"2")
        taken = await _lease(leases, 1, "a")
        with pytest.raises(Refusal) as refused:
            await _lease(leases, 1, "b")
        assert refused.value.code == "consumer-conflict"
        await leases.ack(_refs(taken))
        assert len(await _lease(leases, 1, "b")) == 1


async def test_no_more_is_leased_than_may_be_in_flight(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        leases = await _leases(parts, max_in_flight=3)
        await parts.publish("orders", *[b"x"] * 5)
        taken = await _lease(leases)
        assert len(taken) == 3
        assert await _lease(leases) == []
        await leases.ack(_refs(taken[:2]))
        assert len(await _lease(leases)) == 2


async def test_a_key_is_leased_once_at_a_time(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        leases = await _leases(parts, ordering=Ordering.KEY)
        await parts.publish("orders", b"a1", b"a2", key=b"a")
        await parts.publish("orders", b"b1", key=b"b")
        taken = await _lease(leases)
        assert [d.record.value for d in taken] == [b"a1", b"b1"]
        await leases.ack(_refs(taken[:1]))
        assert [d.record.value for d in await _lease(leases)] == [b"a2"]


async def test_a_cancelled_lease_loses_nothing(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        leases = await _leases(parts)
        for _ in range(5):
            await parts.publish("orders", b"x")
        for turns in range(30):
            taking = asyncio.ensure_future(_lease(leases))
            for _ in range(turns):
                await asyncio.sleep(0)
            taking.cancel()
            (result,) = await asyncio.gather(taking, return_exceptions=True)
            if not isinstance(result, BaseException):
                leases.release(result)
        taken = await _lease(leases)
        assert [(d.offset, d.attempt) for d in taken] == [(n, 1) for n in range(5)]


async def test_a_push_subscription_leases_nothing(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        await parts.topic("orders")
        flow = await parts.subscribe("billing", "orders")
        with pytest.raises(Refusal) as refused:
            parts.dispatcher.leases(flow.id)
        assert refused.value.code == "wrong-mode"


async def test_one_message_wakes_one_of_many_who_wait(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        leases = await _leases(parts)
        waiting = [asyncio.ensure_future(_lease(leases, 1, wait_s=5)) for _ in range(20)]
        await settled()
        await parts.publish("orders", b"1")
        await parts.until(lambda: any(each.done() for each in waiting))
        await settled()
        assert sum(each.done() for each in waiting) == 1
        await parts.publish("orders", *[b"x"] * 19)
        taken = [delivery for got in await asyncio.gather(*waiting) for delivery in got]
        assert sorted(delivery.offset for delivery in taken) == list(range(20))


async def test_news_for_one_who_leaves_goes_to_the_next(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        leases = await _leases(parts)
        first = asyncio.ensure_future(leases.wait(5))
        second = asyncio.ensure_future(leases.wait(5))
        await settled()
        leases.wake()
        first.cancel()
        assert await second
        assert first.cancelled() or first.done()


async def test_a_broker_that_stops_says_so_and_not_that_it_is_paused(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        leases = await _leases(parts)
        await parts.dispatcher.drain(0)
        with pytest.raises(Refusal) as refused:
            await _lease(leases)
        assert refused.value.code == "shutting-down"


async def test_whoever_waits_while_the_subscription_changes_is_told_to_try_again(
    tmp_path: Path,
) -> None:
    async with open_delivery(tmp_path) as parts:
        leases = await _leases(parts)
        waiting = asyncio.ensure_future(_lease(leases, wait_s=5))
        await settled()
        strict = parts.wish("billing", "orders", mode=Mode.PULL, ordering=Ordering.STRICT)
        await parts.dispatcher.change(strict)
        with pytest.raises(Refusal) as refused:
            await waiting
        assert refused.value.code == "not-ready"
