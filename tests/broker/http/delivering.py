"""Delivery behind the doors of `rig.py`: a real dispatcher, real senders, the real catalogue."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ibrik_broker.delivery.credentials import Credentials
from ibrik_broker.delivery.dispatcher import Dispatcher
from ibrik_broker.delivery.egress import Egress
from ibrik_broker.delivery.guard import Guard
from ibrik_broker.delivery.redrive import Redrive
from ibrik_broker.delivery.replays import Replays
from ibrik_broker.delivery.senders.factory import Senders
from ibrik_broker.delivery.tokens import Tokens
from ibrik_broker.http.catalogue import Delivery
from ibrik_broker.http.consuming import ConsumerPlane, Subscriptions
from ibrik_broker.metadata.attempts import AttemptHistory
from ibrik_broker.metadata.deliveries import DeliveryStore
from ibrik_broker.metadata.keys import lease_key
from ibrik_broker.metadata.replays import ReplayRows
from ibrik_broker.registrations.catalogue import Catalogue
from tests.support.registry import Parts


@dataclass(frozen=True)
class Delivering:
    delivery: Delivery
    credentials: Credentials
    consumers: Subscriptions

    @property
    def make_consumers(self) -> partial[ConsumerPlane]:
        return partial(ConsumerPlane, self.consumers)


@asynccontextmanager
async def delivering(parts: Parts, folder: Path) -> AsyncIterator[Delivering]:
    """Loopback may be delivered to; the metadata service of a cloud may not."""
    guard = Guard(Egress(allow_loopback=True))
    credentials = Credentials(folder / "credentials", {})
    senders = Senders(guard=guard, credentials=credentials, engine=parts.engine, clock_ms=clock_ms)
    async with asyncio.TaskGroup() as tasks:
        dispatcher = Dispatcher(
            parts.engine,
            DeliveryStore(parts.database),
            tasks,
            make_sender=lambda wish: senders.open(wish.destination, wish.namespace),
            ensure_topic=parts.registry.ensure_topic,
            clock_ms=clock_ms,
            ticks_ms=ticks_ms,
        )
        await dispatcher.start()
        catalogue = Catalogue(
            parts.registry,
            parts.database,
            dispatcher,
            clock_ms=clock_ms,
            ticks_ms=ticks_ms,
            credential_fault=credentials.fault,
        )
        await catalogue.load()
        running = tasks.create_task(catalogue.run())
        history = AttemptHistory(parts.database)
        replays = Replays(
            dispatcher,
            parts.engine,
            ReplayRows(parts.database),
            history,
            tasks,
            channel_id=lambda name: catalogue.channels.find(name).id,
            clock_ms=clock_ms,
            ticks_ms=ticks_ms,
        )
        redrive = Redrive(
            dispatcher, parts.engine, purge_topic=parts.registry.purge, ticks_ms=ticks_ms
        )
        try:
            yield Delivering(
                Delivery(catalogue, dispatcher, history, guard, replays, redrive),
                credentials,
                Subscriptions(
                    dispatcher,
                    lambda name: catalogue.subscriptions.find(name).id,
                    Tokens(await lease_key(parts.database)),
                ),
            )
        finally:
            running.cancel()
            replays.stop()
            await dispatcher.drain(1.0)
            await dispatcher.close()
            await replays.close()
            await senders.close()


def clock_ms() -> int:
    return time.time_ns() // 1_000_000


def ticks_ms() -> int:
    return time.monotonic_ns() // 1_000_000
