"""What a subscription takes that has nothing to deliver: there may be ten thousand of them."""

import gc
import tracemalloc
from pathlib import Path

from ibrik_api.resources.subscription import Mode
from ibrik_broker.metadata.deliveries import FlowState
from tests.support.delivery import OK, open_delivery, status

COUNT = 500
BYTES_EACH = 1_600
"""Of a flow and its wish; what the catalogue keeps beside them is not in here."""


async def test_an_idle_subscription_is_small(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        await parts.topic("orders")
        await parts.channel()
        for mode in (Mode.PULL, Mode.PUSH):
            wishes = [parts.wish(f"{mode}-{n}", "orders", mode=mode) for n in range(2 * COUNT)]
            for wish in wishes[:COUNT]:  # code and tables that are used for the first time
                await parts.dispatcher.open(wish, FlowState())
            gc.collect()
            tracemalloc.start()
            try:
                for wish in wishes[COUNT:]:
                    await parts.dispatcher.open(wish, FlowState())
                gc.collect()
                each = tracemalloc.get_traced_memory()[0] / COUNT
            finally:
                tracemalloc.stop()
            assert each < BYTES_EACH, mode


async def test_one_that_delivered_everything_holds_no_messages(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        await parts.topic("orders")
        flow = await parts.subscribe("billing", "orders")
        parts.sender.answer = lambda p: status(503) if p.attempt == 1 else OK
        await parts.publish("orders", b"1", b"2")
        await parts.until(lambda: len(flow.parked) == 2)
        await parts.advance(1_000)
        await parts.until(lambda: flow.counters.delivered == 2)
        (part,) = flow.parts
        assert (part.fresh, len(part.in_hand), len(flow.parked)) == (None, 0, 0)
