"""Dead letters of a subscription `billing`, and what tests ask of them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from ibrik_api.durations import HOUR_MS
from ibrik_broker.delivery.flow import Flow
from ibrik_broker.delivery.letters import Choice
from ibrik_broker.delivery.redrive import Redrive
from tests.support.delivery import (
    OK,
    PATIENCE_SECONDS,
    DeliveryParts,
    open_delivery,
    status,
)

ALL = Choice()
DLQ = "orders.billing.dlq"


def redrive_of(parts: DeliveryParts) -> Redrive:
    return Redrive(
        parts.dispatcher, parts.engine, purge_topic=parts.registry.purge, ticks_ms=parts.clock
    )


async def publish_numbers(parts: DeliveryParts, count: int) -> None:
    await parts.publish("orders", *(b"%d" % n for n in range(count)))


async def kill(parts: DeliveryParts, count: int, **wish: Any) -> Flow:
    """Messages 0 to `count` of `orders`, dead letters of `billing` under the same offsets."""
    await parts.topic("orders")
    await parts.channel(limits={"concurrency": 1})
    parts.sender.answer = lambda _: status(400)
    await publish_numbers(parts, count)
    flow = await parts.subscribe("billing", "orders", **wish)
    await emptied(parts, flow, HOUR_MS)  # the circuit opens in between
    parts.sender.parcels.clear()
    parts.sender.answer = lambda _: OK
    await parts.advance(HOUR_MS)
    return flow


@asynccontextmanager
async def dead(
    folder: Path, count: int, **wish: Any
) -> AsyncIterator[tuple[DeliveryParts, Flow, Redrive]]:
    async with open_delivery(folder) as parts:
        flow = await kill(parts, count, **wish)
        yield parts, flow, redrive_of(parts)


async def emptied(parts: DeliveryParts, flow: Flow, step_ms: int = 1) -> None:
    """Wait until nothing is left to deliver, while time passes in steps."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while flow.backlog:
            await parts.advance(step_ms)
            await asyncio.sleep(0.001)


async def delivered(parts: DeliveryParts, flow: Flow) -> list[int]:
    await emptied(parts, flow)
    return sorted(int(value or b"") for value in parts.sender.values)


async def states(redrive: Redrive, flow: Flow) -> list[tuple[int, str]]:
    page = await redrive.browse(flow.id, ALL, most=1_000)
    return [(letter.offset, state.value) for letter, state in page.letters]
