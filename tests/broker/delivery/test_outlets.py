"""What holds a destination back (circuit, rate, pauses, halts), and whom it does not hold back."""

import asyncio
from pathlib import Path

from ibrik_api.resources.channel import Circuit
from ibrik_api.resources.destination import Destination
from ibrik_api.resources.subscription import Guarantee, Retry
from ibrik_api.resources.topic import RetryPreset
from ibrik_broker.delivery.answers import Answer
from ibrik_broker.delivery.retry import resolve_policy
from ibrik_broker.delivery.senders.parcel import Parcel
from ibrik_broker.delivery.wishes import ChannelWish
from tests.support.delivery import OK, open_delivery, settled, status, unreachable

URL = {"url": "http://127.0.0.1:9/hook"}


async def test_no_more_than_the_concurrency_are_on_their_way(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        await parts.topic("orders")
        await parts.channel(http=URL, limits={"concurrency": 3})
        released = asyncio.Event()

        async def slowly(_parcel: Parcel) -> Answer:
            await released.wait()
            return OK

        parts.sender.answer = slowly
        flow = await parts.subscribe("billing", "orders")
        await parts.publish("orders", *[b"x"] * 50)
        await parts.until(lambda: parts.sender.open_count == 3)
        await settled()
        assert parts.sender.open_count == 3
        released.set()
        await parts.until(lambda: flow.backlog == 0)
        assert parts.sender.most_open == 3


async def test_a_hanging_destination_delays_no_other(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        await parts.topic("orders")
        never = asyncio.Event()

        async def answer(parcel: Parcel) -> Answer:
            if parcel.channel == "hanging":
                await never.wait()
            return OK

        parts.sender.answer = answer
        for channel in ("hanging", "fine"):
            await parts.channel(channel, http=URL)
            await parts.subscribe(f"to-{channel}", "orders", channel_id=channel)
        await parts.publish("orders", *[b"x"] * 200)
        await parts.until(lambda: sum(p.channel == "fine" for p in parts.sender.parcels) == 200)
        assert parts.dispatcher.outlet("hanging").in_flight == 4
        await parts.stop(0)


async def test_an_open_circuit_costs_no_attempts(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        await parts.topic("orders")
        await parts.channel(http=URL, limits={"concurrency": 1})
        parts.sender.answer = lambda _: unreachable()
        flow = await parts.subscribe("billing", "orders")
        await parts.publish("orders", *[b"x"] * 20)
        await parts.until(lambda: flow.counters.failed == 5)
        await settled()
        outlet = parts.dispatcher.outlet("ch")
        assert outlet.circuit(parts.clock.ms) is Circuit.OPEN
        await parts.advance(29_999)
        assert len(parts.sender.parcels) == 5
        parts.sender.answer = lambda _: OK
        await parts.advance(1)
        await parts.until(lambda: flow.backlog == 0)
        assert outlet.circuit(parts.clock.ms) is Circuit.CLOSED
        attempts = [parcel.attempt for parcel in parts.sender.parcels]
        assert (attempts.count(1), attempts.count(2), max(attempts)) == (20, 5, 2)


async def test_retry_after_pauses_the_channel(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        await parts.topic("orders")
        await parts.channel(http=URL, limits={"concurrency": 1})
        parts.sender.answer = lambda _: status(429, retry_after_ms=60_000)
        flow = await parts.subscribe("billing", "orders")
        await parts.publish("orders", b"1", b"2", b"3")
        await parts.until(lambda: flow.counters.failed == 1)
        await parts.advance(59_999)
        assert len(parts.sender.parcels) == 1
        parts.sender.answer = lambda _: OK
        await parts.advance(1)
        await parts.until(lambda: flow.backlog == 0)


async def test_gone_stops_the_channel_and_keeps_the_backlog(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        await parts.topic("orders")
        await parts.channel(http=URL, limits={"concurrency": 1})
        parts.sender.answer = lambda _: status(410)
        flow = await parts.subscribe("billing", "orders")
        await parts.publish("orders", b"1", b"2")
        await parts.until(lambda: parts.halts == [("channel", "ch", "gone")])
        await parts.advance(86_400_000)
        assert len(parts.sender.parcels) == 1
        assert flow.backlog == 2
        parts.sender.answer = lambda _: OK
        await parts.channel(http=URL)
        await parts.until(lambda: flow.backlog == 0)


async def test_the_rate_of_a_channel_is_kept(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        await parts.topic("orders")
        await parts.channel(http=URL, limits={"rate": 10})
        flow = await parts.subscribe("billing", "orders")
        await parts.publish("orders", *[b"x"] * 30)
        await parts.until(lambda: len(parts.sender.parcels) == 10)
        began_ms = parts.clock.ms
        while flow.backlog:
            await parts.advance(10)
            await asyncio.sleep(0.001)  # the database has a thread of its own
            allowed = 10 + (parts.clock.ms - began_ms) * 10 / 1_000
            assert len(parts.sender.parcels) <= allowed
        assert len(parts.sender.parcels) == 30


async def test_the_rate_of_a_subscription_is_kept(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        await parts.topic("orders")
        flow = await parts.subscribe("billing", "orders", rate=5)
        await parts.publish("orders", *[b"x"] * 7)
        await parts.until(lambda: len(parts.sender.parcels) == 5)
        await settled()
        assert len(parts.sender.parcels) == 5
        await parts.advance(400)
        await parts.until(lambda: flow.backlog == 0)


async def test_fire_and_forget_tries_once_and_counts_losses(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        await parts.topic("orders")
        parts.sender.answer = lambda p: status(503 if p.record.value == b"1" else 200)
        flow = await parts.subscribe("billing", "orders", guarantee=Guarantee.FIRE_AND_FORGET)
        await parts.publish("orders", b"1", b"2")
        await parts.until(lambda: flow.counters.delivered == 1 and flow.counters.lost == 1)
        assert flow.backlog == 0
        assert len(parts.sender.parcels) == 2


async def test_fire_and_forget_moves_the_cursor_before_it_sends(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        await parts.topic("orders")
        found = []

        async def look(_parcel: Parcel) -> Answer:
            found.extend((await parts.stored(flow)).cursors)
            return OK

        parts.sender.answer = look
        flow = await parts.subscribe("billing", "orders", guarantee=Guarantee.FIRE_AND_FORGET)
        await parts.publish("orders", b"1")
        await parts.until(lambda: flow.counters.delivered == 1)
        assert [(row.next_offset, row.claimed) for row in found] == [(1, [])]


async def test_a_claim_is_durable_before_anything_is_sent(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        await parts.topic("orders")
        found = []

        async def look(_parcel: Parcel) -> Answer:
            found.extend((await parts.stored(flow)).cursors)
            return OK

        parts.sender.answer = look
        flow = await parts.subscribe("billing", "orders")
        await parts.publish("orders", b"1")
        await parts.until(lambda: flow.backlog == 0)
        assert [row.claimed[0][:3] for row in found] == [[0, 1, 1]]


async def test_a_blocked_message_waits_until_someone_resumes(tmp_path: Path) -> None:
    blocking = resolve_policy(
        Retry.parse({"maxAttempts": 1, "onExhausted": "block"}), RetryPreset.IN_CLUSTER
    )
    async with open_delivery(tmp_path) as parts:
        await parts.topic("orders")
        parts.sender.answer = lambda _: status(503)
        flow = await parts.subscribe("billing", "orders", retry=blocking)
        await parts.publish("orders", b"1")
        await parts.until(lambda: flow.parked.blocked_count == 1)
        await parts.advance(86_400_000)
        assert len(parts.sender.parcels) == 1
        parts.sender.answer = lambda _: OK
        await parts.dispatcher.change(parts.wish("billing", "orders", retry=blocking))
        await parts.until(lambda: flow.backlog == 0)
        assert not [t for t in parts.engine.topics() if t.name.endswith(".dlq")]


async def test_a_subscription_waits_for_a_channel_that_is_not_there(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        await parts.topic("orders")
        await parts.channel("other", http=URL)
        flow = await parts.subscribe("billing", "orders", channel_id="later")
        await parts.publish("orders", b"1")
        await settled()
        assert flow.backlog == 1
        wish = ChannelWish(
            id="later", name="later", namespace="x", destination=Destination.parse({"http": URL})
        )
        await parts.dispatcher.put_channel(wish)
        await parts.until(lambda: flow.backlog == 0)
        await parts.dispatcher.drop_channel("later")
        await parts.publish("orders", b"2")
        await settled()
        assert flow.backlog == 1


async def test_a_dead_letter_that_cannot_be_written_loses_nothing(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        await parts.topic("orders")
        await parts.topic("orders.billing.dlq", maxMessageBytes="1Ki")
        parts.sender.answer = lambda _: status(400)
        flow = await parts.subscribe("billing", "orders")
        await parts.publish("orders", b"x" * 2_000)
        await parts.until(lambda: flow.counters.failed == 1)
        await settled()
        assert flow.backlog == 1
        assert flow.counters.dead_lettered == 0
        from ibrik_api.resources.topic import TopicSpec

        await parts.registry.put_topic("orders.billing.dlq", TopicSpec())
        await parts.until(lambda: len(flow.parked) == 1)
        await parts.advance(1_000)
        await parts.until(lambda: flow.backlog == 0)
        (dead,) = await parts.records("orders.billing.dlq")
        assert (dict(dead.headers)["dlq-status"], dict(dead.headers)["dlq-attempts"]) == (
            b"400",
            b"1",
        )
        # Only the dead letter is tried again: the endpoint has said what it has to say.
        assert [parcel.attempt for parcel in parts.sender.parcels] == [1]


async def test_attempts_are_never_more_than_allowed_over_any_number_of_crashes(
    tmp_path: Path,
) -> None:
    never = asyncio.Event()
    clock = sender = None
    for life in range(6):
        async with open_delivery(tmp_path, clock=clock, sender=sender) as parts:
            clock, sender = parts.clock, parts.sender
            if life == 0:
                await parts.topic("orders")

                async def hang(_parcel: Parcel) -> Answer:
                    await never.wait()
                    return OK

                sender.answer = hang
            flow = await parts.subscribe("billing", "orders")
            if life == 0:
                await parts.publish("orders", b"1")
            await parts.advance(10_000)
            await parts.until(lambda f=flow, s=sender: s.open_count == 1 or f.backlog == 0)  # type: ignore[misc]
            await parts.stop(0)
            sender.open_count = 0
    assert [parcel.attempt for parcel in parts.sender.parcels] == [1, 2, 3]
    async with open_delivery(tmp_path, clock=clock) as parts:
        (dead,) = await parts.records("orders.billing.dlq")
        assert dict(dead.headers)["dlq-reason"] == b"crashed"
