"""Replays on the real parts of delivery, as the broker puts them together."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from ibrik_api.errors import Refusal
from ibrik_api.resources.subscription import StartFrom
from ibrik_broker.delivery.replay_job import Job
from ibrik_broker.delivery.replays import Replays, ReplayWish
from ibrik_broker.delivery.wishes import StartWish
from ibrik_broker.metadata.attempts import AttemptHistory
from ibrik_broker.metadata.replays import ReplayRows
from tests.support.delivery import (
    PATIENCE_SECONDS,
    DeliveryParts,
    FakeClock,
    RecordingSender,
    open_delivery,
)

EARLIEST = StartWish()


def at(*offsets: int) -> StartWish:
    return StartWish(origin=StartFrom.OFFSET, offsets=offsets)


class ReplayParts:
    """Delivery, and the replays that it serves."""

    def __init__(self, parts: DeliveryParts, tasks: asyncio.TaskGroup) -> None:
        self.parts = parts
        self.channels = {"ch": "ch"}
        self.replays = Replays(
            parts.dispatcher,
            parts.engine,
            ReplayRows(parts.database),
            AttemptHistory(parts.database),
            tasks,
            channel_id=self.channel_id,
            clock_ms=parts.clock,
            ticks_ms=parts.clock,
        )
        parts.registry.on_delete.append(self.replays.forget_topic)

    def channel_id(self, name: str) -> str:
        if name not in self.channels:
            raise Refusal("unknown-channel", f"There is no channel '{name}'.")
        return self.channels[name]

    async def replay(self, topic: str = "orders", **wish: Any) -> Job:
        wish.setdefault("start", EARLIEST)
        if "target_topic" not in wish:
            wish.setdefault("channel", "ch")
        plan = await self.replays.plan(ReplayWish(topic=topic, **wish))
        return await self.replays.create(plan)

    async def ended(self, job: Job, step_ms: int = 0) -> Job:
        """Wait for the end, while time passes in steps."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while job.is_running or job.flow is not None:
                await self.parts.advance(step_ms)
                await asyncio.sleep(0.001)
        return job


@asynccontextmanager
async def open_replays(
    folder: Path, *, clock: FakeClock | None = None, sender: RecordingSender | None = None
) -> AsyncIterator[ReplayParts]:
    """With the channel `ch`."""
    async with (
        open_delivery(folder, clock=clock, sender=sender) as parts,
        asyncio.TaskGroup() as tasks,
    ):
        made = ReplayParts(parts, tasks)
        await parts.channel()
        await made.replays.load()
        yield made
        made.replays.stop()
        await parts.stop()
        await made.replays.close()


def crashed_copy(folder: Path, copy: Path) -> Path:
    """The folder as a SIGKILL would leave it now: what is not written yet is lost."""
    shutil.copytree(folder, copy)
    return copy
