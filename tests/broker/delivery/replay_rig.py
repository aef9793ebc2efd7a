"""What tests of replays share besides `replaying.py`."""

import asyncio

from ibrik_broker.delivery.answers import Answer
from ibrik_broker.delivery.senders.parcel import Parcel
from tests.broker.delivery.replaying import (
    ReplayParts,
)
from tests.support.delivery import OK


async def numbers(made: ReplayParts, count: int, first: int = 0, topic: str = "orders") -> None:
    await made.parts.publish(topic, *(b"%d" % n for n in range(first, first + count)))


class Gate:
    """A destination that answers when the test says so."""

    def __init__(self) -> None:
        self.open = asyncio.Event()

    async def __call__(self, _parcel: Parcel) -> Answer:
        await self.open.wait()
        return OK
