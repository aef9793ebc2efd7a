"""A door that serves replays and dead letters alone, on the real parts of delivery."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import ClientSession, web

from ibrik_api.errors import Refusal
from ibrik_broker.delivery.flow import Flow
from ibrik_broker.delivery.redrive import Redrive
from ibrik_broker.http.bodies import BodyGate, BodyReader
from ibrik_broker.http.deadletters import dead_letter_operations
from ibrik_broker.http.door import Door
from ibrik_broker.http.guard import RouteCounters, add_operations
from ibrik_broker.http.operations import Operation
from ibrik_broker.http.patience import Patience
from ibrik_broker.http.replays import replay_operations
from ibrik_broker.http.server import DoorRunner
from ibrik_broker.settings import LimitSettings
from tests.broker.delivery.replaying import ReplayParts, open_replays
from tests.broker.http.rig import TIMEOUT_S, Reply
from tests.support.delivery import DeliveryParts


@dataclass
class RecoveryRig:
    made: ReplayParts
    operations: list[Operation]
    session: ClientSession
    port: int

    @property
    def parts(self) -> DeliveryParts:
        return self.made.parts

    async def call(self, method: str, path: str, body: Any = None) -> Reply:
        content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        url = f"http://127.0.0.1:{self.port}{path}"
        async with (
            asyncio.timeout(TIMEOUT_S),
            self.session.request(method, url, data=content) as response,
        ):
            return Reply(response.status, response.headers, await response.read())

    async def publish_numbers(self, count: int) -> None:
        await self.parts.publish("orders", *(b"%d" % number for number in range(count)))

    async def subscribe(self, name: str = "billing") -> Flow:
        flow = await self.parts.subscribe(name, "orders")
        await self.parts.until(lambda: flow.backlog == 0)
        return flow


@asynccontextmanager
async def running_recovery(folder: Path) -> AsyncIterator[RecoveryRig]:
    """With the topic `orders` and the channel `ch`."""
    limits = LimitSettings()
    async with open_replays(folder) as made:
        parts = made.parts
        await parts.topic("orders")
        door = Door(
            parts.engine,
            limits,
            BodyGate(limits.in_flight_bytes),
            BodyReader(limits),
            Patience(limits.request_timeout_ms),
        )

        def find(name: str) -> str:
            for flow in parts.dispatcher.flows():
                if flow.plan.name == name:
                    return flow.id
            raise Refusal("unknown-subscription", f"There is no subscription '{name}'.")

        redrive = Redrive(
            parts.dispatcher, parts.engine, purge_topic=parts.registry.purge, ticks_ms=parts.clock
        )
        operations = [
            *replay_operations(door, made.replays),
            *dead_letter_operations(door, redrive, find),
        ]
        app = web.Application()
        add_operations(app, operations, RouteCounters())
        runner = DoorRunner(app, limits, shutdown_timeout_s=2)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        async with ClientSession() as session:
            try:
                yield RecoveryRig(made, operations, session, runner.addresses[0][1])
            finally:
                await runner.cleanup()
