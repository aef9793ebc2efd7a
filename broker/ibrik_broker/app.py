"""The composition root: builds every object of the broker, opens its doors, ends it in order.

Holds no rule of its own. `run` is what `ibrik serve` and `python -m ibrik_broker` call. What stops
a start is one sentence on standard error and exit code 1; a disk that fails is exit code 74.
"""

import asyncio
import errno
import gc
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from functools import partial

from aiohttp import web

from ibrik_api import __version__
from ibrik_api.errors import Refusal
from ibrik_broker.auth.gatekeeper import gatekeeper_of
from ibrik_broker.core import Core, Delivery, StartRefused
from ibrik_broker.http.access import access_of
from ibrik_broker.http.admin import Apply, build_admin_plane
from ibrik_broker.http.catalogue import Delivery as Registered
from ibrik_broker.http.consuming import ConsumerPlane, Subscriptions
from ibrik_broker.http.data import build_data_plane
from ibrik_broker.http.door import Door
from ibrik_broker.http.observed import Observer
from ibrik_broker.http.operations import Operation
from ibrik_broker.http.pool import pool_operations
from ibrik_broker.http.routing import Routing
from ibrik_broker.http.server import DoorRunner
from ibrik_broker.partitions.readings import engine_readings
from ibrik_broker.registrations.spreading import Spreading
from ibrik_broker.settings import Listener, Settings
from ibrik_broker.tcp.door import TcpDoor
from ibrik_broker.telemetry.collector import BrokerCollector
from ibrik_broker.telemetry.logs import configure_logging, get_logger
from ibrik_broker.telemetry.metrics import BUILD, READY, Reading
from ibrik_log.errors import StorageFailed

EXIT_DONE = 0
EXIT_FAILED = 1
EXIT_STORAGE_FAILED = 74
"""EX_IOERR of sysexits.h: a supervisor restarts the broker, which recovers from the disk."""
COLLECTION_THRESHOLDS = (50_000, 20, 100)
"""Requests make no cycles, and each full collection walks over all that is buffered and cached:
with Python's own thresholds it adds 8 ms to the p99 of 256 busy partitions."""
SWITCH_SECONDS = 0.0005
"""A thread that comes back from the disk waits so long at most for the event loop to give way; with
Python's own 5 ms the few threads that write add a millisecond to each claim and each flush."""
LAST_ANSWERS_SECONDS = 1.0
"""After a failure of the disk: time for refusals to leave. Nothing is acknowledged any more."""
LAST_RESORT_SECONDS = 10.0
"""After a failure of the disk: a thread that hangs in a system call is not waited for longer."""

log = get_logger("ibrik")


def run(settings: Settings) -> int:
    """Serve until a signal or a failure; returns the exit code of the process."""
    configure_logging(level=settings.logging.level, form=settings.logging.form)
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.set_threshold(*COLLECTION_THRESHOLDS)
    gc.enable()
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        try:
            return runner.run(serve(settings))
        except StartRefused as refusal:
            sys.stderr.write(f"error: {refusal}\n")
        except Exception:
            log.critical("broker broke", exc_info=True)
    return EXIT_FAILED


async def serve(settings: Settings) -> int:
    """Start, serve, end. Raises StartRefused with everything closed again."""
    ending = Ending()
    core = await Core.open(settings, ending.on_storage_failed)
    refusal: StartRefused | None = None
    try:
        async with asyncio.TaskGroup() as tasks:
            try:
                await _serve_doors(settings, core, tasks, ending)
            except StartRefused as refused:  # raised after the group: it would wrap it
                refusal = refused
    finally:
        await core.close()
    if refusal is not None:
        raise refusal
    log.info("broker stopped", exit_code=ending.exit_code)
    return ending.exit_code


async def _serve_doors(
    settings: Settings, core: Core, tasks: asyncio.TaskGroup, ending: "Ending"
) -> None:
    """Deliver and answer until the end; closed again in any case."""
    delivery = await Delivery.open(settings, core, tasks)
    try:
        doors = Doors(settings, core, delivery, tasks)
        try:
            await _serve_until(ending, doors, await _opened(doors))
        finally:
            seconds = _drain_seconds(settings, ending)
            async with asyncio.TaskGroup() as closing:
                closing.create_task(doors.close(seconds))
                closing.create_task(delivery.drain(seconds))
    finally:
        await delivery.close()


async def _opened(doors: "Doors") -> str:
    try:
        return await doors.open()
    except Refusal as refusal:
        raise StartRefused(refusal.detail) from refusal


async def _serve_until(ending: "Ending", doors: "Doors", banner: str) -> None:
    # What was built up to here lives until the end: the collector need not look at it again, and
    # its pauses shrink from tens of milliseconds to under one.
    gc.collect()
    gc.freeze()
    doors.is_ready = True
    sys.stdout.write(banner + "\n")
    sys.stdout.flush()
    log.info("broker ready", version=__version__, pid=os.getpid())
    reason = await ending.wait()
    doors.is_ready = False
    log.info("broker stopping", reason=reason)


def _drain_seconds(settings: Settings, ending: "Ending") -> float:
    if ending.exit_code == EXIT_STORAGE_FAILED:
        return LAST_ANSWERS_SECONDS
    return settings.shutdown.drain_ms / 1_000


class Ending:
    """Why and how the process ends: a signal, or a disk that failed."""

    def __init__(self) -> None:
        self.exit_code = EXIT_DONE
        self._loop = asyncio.get_running_loop()
        self._reason: asyncio.Future[str] = self._loop.create_future()
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self._on_signal, number)

    async def wait(self) -> str:
        return await self._reason

    def _on_signal(self, number: signal.Signals) -> None:
        if self._reason.done():
            # The second signal: whoever sends it does not want to wait. Recovery will.
            os._exit(128 + number)
        self._reason.set_result(number.name)

    def on_storage_failed(self, error: StorageFailed) -> None:
        log.critical("storage failed", error=str(error), exit_code=EXIT_STORAGE_FAILED)
        self.exit_code = EXIT_STORAGE_FAILED
        self._loop.call_later(LAST_RESORT_SECONDS, os._exit, EXIT_STORAGE_FAILED)
        if not self._reason.done():
            self._reason.set_result("storage failed")


class Doors:
    """HTTP, TCP and administration; the only way in."""

    def __init__(
        self, settings: Settings, core: Core, delivery: Delivery, tasks: asyncio.TaskGroup
    ) -> None:
        self.is_ready = False
        self._settings = settings
        self._peers = core.peers
        self._delivery = delivery
        self._collector = BrokerCollector([partial(engine_readings, core.engine), self._readings])
        limits, drain_seconds = settings.limits, settings.shutdown.drain_ms / 1_000
        create_topic = core.registry.ensure_topic if settings.dev else None
        data = build_data_plane(
            core.engine,
            core.registry,
            limits,
            allocate_producer_id=core.database.allocate_producer_id,
            publishers=core.publishers,
            clients=core.clients,
            gatekeeper=gatekeeper_of(settings.auth),
            access=access_of(settings),
            delivery=_registered(delivery),
            make_consumers=partial(
                ConsumerPlane,
                Subscriptions(delivery.dispatcher, delivery.subscription_id, delivery.tokens),
            ),
            create_topic=create_topic,
            make_routing=_make_routing(core, delivery),
        )
        admin = build_admin_plane(
            core.engine,
            core.registry,
            limits,
            apply=_apply(core, delivery),
            is_ready=lambda: self.is_ready,
            collector=self._collector,
            observer=_observer(settings, core, delivery),
            token_file=settings.admin.token_file,
            pool=_pool_operations(core, delivery),
        )
        self._collector.add(data.readings)
        self._collector.add(delivery.readings)
        self._collector.add(admin.counters.readings)
        self._http = DoorRunner(data.app, limits, shutdown_timeout_s=drain_seconds)
        self._admin = DoorRunner(admin.app, limits, shutdown_timeout_s=LAST_ANSWERS_SECONDS)
        self._tcp = TcpDoor(core.engine, limits, tasks, create_topic=create_topic)
        self._collector.add(self._tcp.readings)

    async def open(self) -> str:
        """Listen on all doors; returns the line that says where."""
        settings = self._settings
        bound = [await _open(settings.http, partial(_listen, self._http, settings.http))]
        http, tcp = _shown(bound[0]), "off"
        if settings.tcp.enabled:
            bound.append(await _open(settings.tcp, partial(self._tcp.open, settings.tcp)))
            tcp = _shown(bound[-1])
        bound.append(await _open(settings.admin, partial(_listen, self._admin, settings.admin)))
        self._delivery.listens_on(bound)
        if self._peers is not None:
            await self._peers.pool.announce(http_port=bound[0][1], admin_port=bound[-1][1])
            await self._peers.notify()
        return (
            f"ibrik {__version__}  data {settings.data}  http {http}  tcp {tcp}  "
            f"admin {_shown(bound[-1])}  docs http://{_reachable(http)}/docs"
        )

    async def close(self, seconds: float) -> None:
        """Take nothing new, answer what is in flight, say goodbye to streams; bounded in time.

        The admin door closes last: it tells probes that the broker is not ready.
        """
        async with asyncio.TaskGroup() as closing:
            closing.create_task(self._http.cleanup())
            closing.create_task(self._tcp.drain(seconds))
        await self._admin.cleanup()

    def _readings(self) -> Iterator[Reading]:
        yield Reading(READY, (), int(self.is_ready))
        yield Reading(BUILD, (__version__,), 1)


def _registered(delivery: Delivery) -> Registered:
    return Registered(
        delivery.catalogue,
        delivery.dispatcher,
        delivery.history,
        delivery.guard,
        delivery.replays,
        delivery.redrive,
    )


def _observer(settings: Settings, core: Core, delivery: Delivery) -> Observer:
    return Observer(
        settings.broker_name,
        core.volume,
        core.database,
        core.engine,
        core.registry,
        delivery.catalogue,
        delivery.senders.credentials,
    )


def _apply(core: Core, delivery: Delivery) -> Apply:
    """What makes desired resources so, at the broker that each belongs to."""
    desired = delivery.catalogue.desired
    if core.peers is None or delivery.places is None:
        return desired.outcomes
    return Spreading(desired, delivery.places, core.peers).outcomes


def _make_routing(core: Core, delivery: Delivery) -> Callable[[Door], Routing] | None:
    """What brings requests to the broker of their topic; None for one that is alone."""
    if core.peers is None or delivery.places is None:
        return None
    return partial(Routing, delivery.places, core.peers)


def _pool_operations(core: Core, delivery: Delivery) -> Callable[[Door], list[Operation]] | None:
    places = delivery.places
    if places is None:
        return None
    return partial(
        pool_operations,
        pool=places.pool,
        following=places.following,
        apply=delivery.catalogue.desired.outcomes,
    )


async def _open(
    listener: Listener, listen: Callable[[], Awaitable[tuple[str, int]]]
) -> tuple[str, int]:
    """The address that it is. Raises StartRefused when it cannot be bound."""
    try:
        return await listen()
    except OSError as error:
        where = f"{listener.host}:{listener.port}"
        hint = (
            "Another program listens there: choose another port, or 0 for a free one."
            if error.errno == errno.EADDRINUSE
            else "Choose an address of this machine, and a port above 1023."
        )
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise StartRefused(f"cannot listen on {where} ({reason}). {hint}") from error


def _shown(address: tuple[str, int]) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _reachable(address: str) -> str:
    """An address that a browser on this machine can open."""
    return address.replace("0.0.0.0:", "127.0.0.1:", 1).replace("[::]:", "[::1]:", 1)


async def _listen(runner: web.AppRunner, listener: Listener) -> tuple[str, int]:
    await runner.setup()
    await web.TCPSite(runner, listener.host, listener.port).start()
    host, port, *_ = runner.addresses[0]
    return host, port


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """The loop of uvloop where there is one: its reads and writes are compiled."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop
