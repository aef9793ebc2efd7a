"""What a crash between two writes leaves, at the moments that a kill seldom meets."""

import asyncio
from pathlib import Path

import pytest

from ibrik_broker.delivery.answers import Answer
from ibrik_broker.delivery.senders.parcel import Parcel
from ibrik_broker.metadata.deliveries import DeliveryStore
from ibrik_broker.partitions.messages import Message
from ibrik_log.record import Headers, Record
from tests.broker.delivery.replaying import crashed_copy
from tests.support.delivery import FakeClock, RecordingSender, open_delivery, status

LATER_MS = 5_000


EVENT: Headers = [("ce_id", b"7"), ("ce_source", b"/shop")]
KEYED: Headers = [("ibrik-id", b"order-7"), ("ibrik-publisher", b"shop")]


@pytest.mark.parametrize(("headers", "own_id"), [(EVENT, b"7"), (KEYED, b"order-7")])
async def test_a_dead_letter_that_was_written_before_a_crash_is_not_written_again(
    tmp_path: Path, headers: Headers, own_id: bytes
) -> None:
    is_written, sender, clock = asyncio.Event(), RecordingSender(), FakeClock()

    async def refuse(_parcel: Parcel) -> Answer:
        await is_written.wait()
        return status(400)

    async with open_delivery(tmp_path / "a", clock=clock, sender=sender) as parts:
        await parts.topic("orders")
        await parts.topic("orders.billing.dlq")
        sender.answer = refuse
        await parts.subscribe("billing", "orders")
        message = Message(Record(None, b"1", headers))
        await parts.engine.publish(parts.engine.topic("orders"), [message])
        await parts.until(lambda: sender.open_count == 1)

        async def crash(_store: DeliveryStore) -> None:
            """The dead letter is flushed; that the message is settled is not."""
            is_written.set()
            partition = parts.engine.topic("orders.billing.dlq").partitions[0]
            await parts.until(lambda: partition.latest == 1)
            crashed_copy(tmp_path / "a", tmp_path / "b")

        await parts.dispatcher.ledger.exclusively(crash)
    async with open_delivery(tmp_path / "b", clock=clock, sender=sender) as parts:
        clock.ms += LATER_MS
        flow = await parts.subscribe("billing", "orders")
        await parts.advance(LATER_MS)
        await parts.until(lambda: flow.backlog == 0)
        assert [parcel.attempt for parcel in sender.parcels] == [1, 2]
        (letter,) = await parts.records("orders.billing.dlq")
        assert dict(letter.headers)["dlq-id"] == own_id
