"""The program: a Lease, kopf's watching, the queue, the comparison with the brokers, health.

Wires and holds no rule. `lead` runs on the replica that holds the Lease; the other one waits.
"""

import asyncio
import random
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import structlog

from ibrik_operator import health
from ibrik_operator.brokers import Brokers
from ibrik_operator.credentials import Credentials
from ibrik_operator.decisions.dependents import ARCHIVE, CREDENTIALS, OBSERVATION, RESOURCES
from ibrik_operator.handlers.watching import WATCHED, Watching
from ibrik_operator.keys import Key
from ibrik_operator.kube import Kube, KubeError, KubeUnavailable
from ibrik_operator.leader import RENEW_DEADLINE_S, RETRY_S, Leader
from ibrik_operator.observations import Observations
from ibrik_operator.queue import WorkQueue
from ibrik_operator.reconcile import (
    archive,
    channel,
    credentials,
    observation,
    pool,
    subscription,
    topic,
)
from ibrik_operator.reconcile.context import Context
from ibrik_operator.resync import Resync
from ibrik_operator.settings import Settings
from ibrik_operator.world import World

log = structlog.get_logger(__name__)

RECONCILES: dict[str, Callable[[Context, Key], Awaitable[float | None]]] = {
    "BrokerPool": pool.reconcile,
    "Topic": topic.reconcile,
    "Subscription": subscription.reconcile,
    "Channel": channel.reconcile,
    OBSERVATION: observation.reconcile,
    CREDENTIALS: credentials.reconcile,
    ARCHIVE: archive.reconcile,
}
PAUSE_S = 5.0
REFRESH_PASSES = 5
"""Comparisons with the brokers after which everything is read anew, too."""
UNHEARD_S = 4 * RENEW_DEADLINE_S
"""Silence about the Lease after which the process is not healthy."""


@dataclass
class Program:
    settings: Settings
    kube: Kube
    is_synced: bool = False
    leader: Leader | None = None
    started_s: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        if self.settings.lease.namespace:
            self.leader = Leader(self.settings, self.kube.api)

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop` is set, or kopf ended by a signal."""
        checks = health.Health(self.is_ready, self._is_lease_known)
        close = await health.serve(self.settings.http, checks)
        try:
            async with asyncio.TaskGroup() as group:
                watcher = group.create_task(checks.watch_loop(), name="loop")
                work = group.create_task(self._work(), name="work")
                stopped = group.create_task(stop.wait(), name="stop")
                await asyncio.wait((work, stopped), return_when=asyncio.FIRST_COMPLETED)
                for task in (watcher, work, stopped):
                    task.cancel()
        finally:
            await close()
            await self.kube.close()

    def is_ready(self) -> bool:
        """It reconciles, or another replica does."""
        return self.is_synced or (
            self.leader is not None and not self.leader.is_leading and self._is_lease_known()
        )

    async def lead(self) -> None:
        """Watch, reconcile, compare; ends when kopf ends."""
        await self._wait_for_definitions()
        world = World()
        brokers = Brokers(self.kube, world)
        queue = WorkQueue(lambda key: RECONCILES[key.kind](context, key))
        watching = Watching(world, queue.add)
        resync = Resync(
            self.kube,
            world,
            watching.seen,
            watched=WATCHED,
            namespaces=self.settings.namespaces,
        )
        context = Context(
            self.kube,
            brokers,
            world,
            Observations(),
            Credentials(),
            self.settings,
            queue.add,
            clock_ms,
            resync.refresh,
            watching.wrote,
        )
        try:
            async with asyncio.TaskGroup() as group:
                watched = group.create_task(watching.run(self.settings), name="watch")
                await self._until_done(resync.refresh)
                self.is_synced = True
                log.info("synced", objects=len(world))
                work = group.create_task(queue.run(), name="queue")
                fresh = group.create_task(self._keep_fresh(resync), name="refresh")
                await watched
                work.cancel()
                fresh.cancel()
        finally:
            self.is_synced = False
            await brokers.close()

    async def _work(self) -> None:
        await (self.lead() if self.leader is None else self.leader.run(self.lead))

    async def _wait_for_definitions(self) -> None:
        """The kinds of Ibrik must be served before anything can be watched."""

        async def list_all() -> None:
            for kind in RESOURCES:
                for namespace in self.settings.namespaces or ("",):
                    await self.kube.list(kind, namespace)

        await self._until_done(list_all)

    async def _until_done(self, read: Callable[[], Awaitable[None]]) -> None:
        """Again and again: what is missing may come, and ending would only loop."""
        while True:
            try:
                return await read()
            except KubeUnavailable as error:
                log.info("api_server_unavailable", reason=str(error))
            except KubeError as error:
                log.warning(
                    "definitions_missing",
                    reason=str(error),
                    next="kubectl apply --server-side -f crds/, and grant the rights of the chart",
                )
            await asyncio.sleep(PAUSE_S)

    async def _keep_fresh(self, resync: Resync) -> None:
        """Find what watching missed: after a broken watch no event tells of what is gone."""
        pass_s = self.settings.resync_ms / 1000
        pause_s = REFRESH_PASSES * pass_s
        while True:
            await asyncio.sleep(pause_s * (0.9 + random.random() / 5))  # noqa: S311 - no secret
            try:
                await resync.refresh()
            except KubeError as error:
                pause_s = pass_s  # What one list missed is not left for long.
                log.info("not_refreshed", reason=str(error))
            else:
                pause_s = REFRESH_PASSES * pass_s

    def _is_lease_known(self) -> bool:
        if self.leader is None:
            return True
        heard_s = self.leader.answered_s
        if heard_s is None:
            heard_s = self.started_s
        return time.monotonic() - heard_s < UNHEARD_S + RETRY_S


def clock_ms() -> int:
    """The one place where the operator asks what time it is."""
    return time.time_ns() // 1_000_000


async def run(settings: Settings) -> None:
    """The operator, until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await Program(settings, await Kube.connect()).run(stop)
