"""What became of one message: every state that it can be in."""

import asyncio
from pathlib import Path

from ibrik_api.resources.subscription import Retry
from ibrik_api.resources.topic import RetryPreset
from ibrik_broker.delivery.answers import Answer
from ibrik_broker.delivery.filters import compile_filter
from ibrik_broker.delivery.flow import Flow
from ibrik_broker.delivery.retry import resolve_policy
from ibrik_broker.delivery.senders.parcel import Parcel
from ibrik_broker.delivery.tracking import find
from ibrik_broker.metadata.attempts import AttemptHistory
from tests.support.delivery import OK, DeliveryParts, open_delivery, status


async def _state(parts: DeliveryParts, flow: Flow, offset: int) -> str:
    await parts.dispatcher.ledger.commit()
    record = (await parts.records("orders"))[offset]
    attempts = await AttemptHistory(parts.database).by_message(flow.id, 0, offset)
    return find(flow, 0, record, attempts).state


async def test_each_state_is_told_apart(tmp_path: Path) -> None:
    never = asyncio.Event()

    async def hang() -> Answer:
        await never.wait()
        return OK

    def answer(parcel: Parcel) -> object:
        match parcel.record.value:
            case b"later":
                return status(503)
            case b"never":
                return status(400)
            case b"slow":
                return hang()
        return OK

    async with open_delivery(tmp_path) as parts:
        parts.sender.answer = answer  # type: ignore[assignment]
        await parts.topic("orders")
        wanted = compile_filter('key != "other"')
        flow = await parts.subscribe("billing", "orders", filter=wanted)
        await parts.publish("orders", b"fine", b"later", b"never", b"slow")
        await parts.publish("orders", b"fine", key=b"other")
        await parts.until(lambda: flow.counters.filtered == 1 and flow.counters.dead_lettered == 1)
        await parts.until(lambda: flow.counters.failed == 2 and flow.counters.delivered == 1)
        states = [await _state(parts, flow, offset) for offset in range(5)]
        assert states == ["delivered", "retrying", "dead-lettered", "in-flight", "filtered"]
        paused = await parts.subscribe("audit", "orders", halt="paused")
        assert await _state(parts, paused, 0) == "waiting"
        await parts.stop(0)


async def test_a_blocked_message_and_one_behind_a_gap(tmp_path: Path) -> None:
    blocking = resolve_policy(
        Retry.parse({"maxAttempts": 1, "onExhausted": "block"}), RetryPreset.IN_CLUSTER
    )
    async with open_delivery(tmp_path) as parts:
        await parts.topic("orders")
        parts.sender.answer = lambda _: status(503)
        flow = await parts.subscribe("billing", "orders", retry=blocking)
        await parts.publish("orders", b"1")
        await parts.until(lambda: flow.parked.blocked_count == 1)
        assert await _state(parts, flow, 0) == "blocked"
