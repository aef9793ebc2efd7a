"""What stands below the doors, built in order and ended in order.

The volume, the database, the engine, the topics, who may publish; and on top of them delivery with
its catalogue. Holds no rule of its own.
"""

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Self

from ibrik_api.errors import Refusal
from ibrik_broker.auth.clients import Clients
from ibrik_broker.auth.publishers import Publishers
from ibrik_broker.delivery.across import PublishAcross
from ibrik_broker.delivery.credentials import Credentials
from ibrik_broker.delivery.dispatcher import Dispatcher
from ibrik_broker.delivery.egress import egress_policy
from ibrik_broker.delivery.guard import Guard
from ibrik_broker.delivery.readings import delivery_readings
from ibrik_broker.delivery.redrive import Redrive
from ibrik_broker.delivery.replays import Replays
from ibrik_broker.delivery.senders.factory import Senders
from ibrik_broker.delivery.tokens import Tokens
from ibrik_broker.delivery.upkeep import keep_history_short
from ibrik_broker.metadata.attempts import AttemptHistory
from ibrik_broker.metadata.clients import ClientRows
from ibrik_broker.metadata.database import Database
from ibrik_broker.metadata.deliveries import DeliveryStore
from ibrik_broker.metadata.keys import lease_key
from ibrik_broker.metadata.publishers import PublisherRows
from ibrik_broker.metadata.replays import ReplayRows
from ibrik_broker.metadata.topics import TopicRows
from ibrik_broker.partitions.engine import Engine, EngineConfig
from ibrik_broker.partitions.flush import FlushMode
from ibrik_broker.pool.following import Following
from ibrik_broker.pool.opening import open_pool
from ibrik_broker.pool.peers import Peers
from ibrik_broker.pool.pool import Pool
from ibrik_broker.registrations.catalogue import Catalogue
from ibrik_broker.registrations.places import Places
from ibrik_broker.settings import Settings
from ibrik_broker.telemetry.metrics import Reading
from ibrik_broker.topics.copies import Copies
from ibrik_broker.topics.registry import Registry
from ibrik_log.errors import LogError, StorageFailed, VolumeInUse
from ibrik_log.files import RealDisk
from ibrik_log.volume import Volume


class StartRefused(Exception):
    """The broker cannot start; the text is the sentence for the person who started it."""


def clock_ms() -> int:
    """The one place where the broker asks what time it is."""
    return time.time_ns() // 1_000_000


def ticks_ms() -> int:
    """Time that never jumps, for leases, deadlines and waits."""
    return time.monotonic_ns() // 1_000_000


@dataclass
class Core:
    """What serves topics: publishing and reading need nothing else."""

    volume: Volume
    database: Database
    engine: Engine
    registry: Registry
    publishers: Publishers
    clients: Clients
    peers: Peers | None
    """The other brokers of its pool; None: it is alone."""

    @classmethod
    async def open(
        cls, settings: Settings, on_storage_failed: Callable[[StorageFailed], None]
    ) -> Self:
        disk = RealDisk()
        try:
            volume = Volume.open(disk, settings.data, joins=settings.pool.is_member)
        except (LogError, OSError) as error:
            raise StartRefused(_storage_sentence(settings, error)) from error
        database, pool = await _open_database(settings, volume)
        engine = Engine(
            disk,
            volume,
            EngineConfig(
                flush=FlushMode(settings.log.flush),
                min_free_bytes=settings.log.min_free_bytes,
                segment_bytes_max=settings.log.segment_bytes,
                tail_cache_bytes=settings.cache.tail_bytes,
            ),
            clock_ms=clock_ms,
            on_failure=on_storage_failed,
        )
        engine.start()
        registry = Registry(
            engine,
            volume,
            TopicRows(database),
            clock_ms=clock_ms,
            namespace=settings.namespace,
            pool=pool,
        )
        publishers = Publishers(PublisherRows(database), clock_ms=clock_ms)
        clients = Clients(ClientRows(database), clock_ms=clock_ms)
        registry.on_delete.append(publishers.forget_topic)
        peers = None if pool is None else Peers(pool)
        core = cls(volume, database, engine, registry, publishers, clients, peers)
        try:
            await publishers.load()
            await clients.load()
            await registry.load()
        except (Refusal, LogError, OSError) as error:
            await core.close()
            raise StartRefused(_storage_sentence(settings, error)) from error
        return core

    async def close(self) -> None:
        """Answer and flush what was accepted, leave clean marks, let go of the folder."""
        await self.engine.close()
        if self.peers is not None:
            await self.peers.close()
        await self.database.close()
        self.volume.close()


@dataclass
class Delivery:
    """What serves subscriptions."""

    dispatcher: Dispatcher
    catalogue: Catalogue
    senders: Senders
    guard: Guard
    tokens: Tokens
    history: AttemptHistory
    replays: Replays
    redrive: Redrive
    places: Places | None
    """Who serves what in the pool; None: this broker is alone."""
    _background: tuple[asyncio.Task[None], ...]

    @classmethod
    async def open(cls, settings: Settings, core: Core, tasks: asyncio.TaskGroup) -> Self:
        """Load every channel and subscription, and begin to deliver. Raises StartRefused."""
        listeners = [settings.http, settings.tcp, settings.admin]
        guard = Guard(
            egress_policy(
                settings.egress,
                is_on_loopback_only=all(listener.is_loopback for listener in listeners),
                own_listeners=[(listener.host, listener.port) for listener in listeners],
            )
        )
        senders = _senders(settings, core, guard)
        store = DeliveryStore(core.database)
        dispatcher = _dispatcher(core, store, senders, tasks)
        catalogue = Catalogue(
            core.registry,
            core.database,
            dispatcher,
            clock_ms=clock_ms,
            ticks_ms=ticks_ms,
            credential_fault=senders.credentials.fault,
        )
        history = AttemptHistory(core.database)
        replays = _replays(core, dispatcher, catalogue, history, tasks)
        redrive = Redrive(
            dispatcher, core.engine, purge_topic=core.registry.purge, ticks_ms=ticks_ms
        )
        try:
            key = await lease_key(core.database)
            states = await store.load_all()
            await dispatcher.start()
            await catalogue.load(states)
            await replays.load()
        except Refusal as refusal:
            raise StartRefused(refusal.detail) from refusal
        places = _places(core, catalogue)
        background = [
            tasks.create_task(catalogue.run()),
            tasks.create_task(keep_history_short(history, clock_ms)),
        ]
        if places is not None:
            background.append(tasks.create_task(places.following.run()))
        return cls(
            dispatcher,
            catalogue,
            senders,
            guard,
            Tokens(key),
            history,
            replays,
            redrive,
            places,
            tuple(background),
        )

    def listens_on(self, addresses: Iterable[tuple[str, int]]) -> None:
        """The listeners are open: nothing is delivered to them, whatever their ports are."""
        self.guard.policy = replace(self.guard.policy, own_listeners=frozenset(addresses))

    def subscription_id(self, name: str) -> str:
        """Raises Refusal `unknown-subscription` or `subscription-detached`."""
        return self.catalogue.subscriptions.find(name).id

    def readings(self) -> Iterator[Reading]:
        yield from delivery_readings(
            self.dispatcher, self.guard, now_ms=clock_ms(), now_ticks=ticks_ms()
        )

    async def drain(self, seconds: float) -> None:
        """Deliver nothing new, let what is on its way end."""
        self.replays.stop()
        await self.dispatcher.drain(seconds)

    async def close(self) -> None:
        """Keep what is known, and end; after `drain` and after the doors."""
        for task in self._background:
            task.cancel()
        await self.dispatcher.close()
        await self.replays.close()
        await self.senders.close()


async def _open_database(settings: Settings, volume: Volume) -> tuple[Database, Pool | None]:
    """The database, whose cluster a new volume joins. Raises StartRefused, the volume closed."""
    database = None
    try:
        database = await Database.open(settings.metadata_url, volume.cluster_id or None)
        pool = await open_pool(settings, volume, database)
        if not volume.cluster_id:
            volume.join(database.cluster_id)
    except (Refusal, LogError) as error:
        if database is not None:
            await database.close()
        volume.close()
        raise StartRefused(_storage_sentence(settings, error)) from error
    return database, pool


def _senders(settings: Settings, core: Core, guard: Guard) -> Senders:
    return Senders(
        guard=guard,
        credentials=Credentials(settings.credentials_folder, os.environ),
        engine=core.engine,
        clock_ms=clock_ms,
        across=_across(core),
        namespace=settings.namespace,
    )


def _dispatcher(
    core: Core, store: DeliveryStore, senders: Senders, tasks: asyncio.TaskGroup
) -> Dispatcher:
    return Dispatcher(
        core.engine,
        store,
        tasks,
        make_sender=lambda wish: senders.open(wish.destination, wish.namespace),
        ensure_topic=core.registry.ensure_topic,
        clock_ms=clock_ms,
        ticks_ms=ticks_ms,
        across=_across(core),
    )


def _across(core: Core) -> PublishAcross | None:
    """The way to topics of other brokers; None for a broker that is alone."""
    return None if core.peers is None else Copies(core.registry, core.peers).publish


def _places(core: Core, catalogue: Catalogue) -> Places | None:
    if core.peers is None:
        return None
    following = Following(
        core.peers.pool,
        [core.registry.look, catalogue.look, core.publishers.look, core.clients.look],
        size_bytes=lambda: sum(topic.size_bytes for topic in core.engine.topics()),
    )
    return Places(
        core.peers.pool,
        core.registry,
        catalogue.subscriptions,
        ReplayRows(core.database),
        following,
    )


def _replays(
    core: Core,
    dispatcher: Dispatcher,
    catalogue: Catalogue,
    history: AttemptHistory,
    tasks: asyncio.TaskGroup,
) -> Replays:
    replays = Replays(
        dispatcher,
        core.engine,
        ReplayRows(core.database),
        history,
        tasks,
        channel_id=lambda name: catalogue.channels.find(name).id,
        clock_ms=clock_ms,
        ticks_ms=ticks_ms,
    )
    core.registry.on_delete.append(replays.forget_topic)
    return replays


def _storage_sentence(settings: Settings, error: Exception) -> str:
    match error:
        case VolumeInUse(pid=int(pid)):
            return (
                f"{settings.data} is in use by process {pid}. "
                "Choose another folder with --data, or stop that broker."
            )
        case OSError(strerror=str(reason), filename=filename):
            return (
                f"cannot use the data folder {settings.data} ({reason}: {filename}). "
                "Choose another folder with --data, or give this user the right to write there."
            )
        case Refusal():
            return error.detail
    return str(error)
