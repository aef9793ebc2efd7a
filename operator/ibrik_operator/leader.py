"""Which of several replicas works: the holder of a Lease (coordination.k8s.io/v1).

The election is the client library's; here it gets a timeout for each call, survives an API server
that does not answer, and lets go of the Lease at the end, so that another replica goes on at once.
Losing the Lease ends the process: nobody can say what a former leader still has under way.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import aiohttp
import structlog
from kubernetes.aio import client
from kubernetes.aio.client.exceptions import ApiException
from kubernetes.aio.leaderelection.electionconfig import Config
from kubernetes.aio.leaderelection.leaderelection import LeaderElection
from kubernetes.aio.leaderelection.resourcelock.leaselock import LeaseLock

from ibrik_operator import metrics
from ibrik_operator.settings import Settings

log = structlog.get_logger(__name__)

DURATION_S, RENEW_DEADLINE_S, RETRY_S = 15, 10, 2
CALL_TIMEOUT_S = 5.0
LOST_EXIT_CODE = 1
UNREACHABLE = (aiohttp.ClientError, TimeoutError, OSError)


class _Lock(LeaseLock):
    """A LeaseLock whose calls end in time; no answer counts as "not now"."""

    def __init__(self, name: str, namespace: str, identity: str, api: client.ApiClient) -> None:
        super().__init__(name, namespace, identity, api)
        self.answered_s: float | None = None
        """When the API server last answered, by the monotonic clock."""

    async def get(self, name: str, namespace: str) -> Any:
        try:
            return await self._in_time(super().get(name, namespace))
        except UNREACHABLE as error:
            return False, ApiException(status=0, reason=f"no answer ({error!r})")

    async def create(self, name: str, namespace: str, election_record: Any) -> bool:
        """As the library does it, but for an argument that it gets wrong."""
        lease = client.V1Lease(
            metadata=client.V1ObjectMeta(name=name), spec=self.update_lease(election_record)
        )
        try:
            self.lease_reference = await self._in_time(
                self.api_instance.create_namespaced_lease(namespace, lease)
            )
        except ApiException as error:
            log.info("lease_not_created", reason=str(error.reason))
            return False
        except UNREACHABLE:
            return False
        return True

    async def update(self, name: str, namespace: str, updated_record: Any) -> bool:
        try:
            return bool(await self._in_time(super().update(name, namespace, updated_record)))
        except UNREACHABLE:
            return False

    async def release(self) -> None:
        """Hold it no longer, so that nobody waits until it expires."""
        lease = self.lease_reference
        if lease is None or lease.spec is None or lease.spec.holder_identity != self.identity:
            return
        lease.spec.holder_identity = ""
        lease.spec.lease_duration_seconds = 1
        try:
            await self._in_time(
                self.api_instance.replace_namespaced_lease(
                    name=self.name, namespace=self.namespace, body=lease
                )
            )
        except (ApiException, *UNREACHABLE) as error:
            log.info("lease_not_released", reason=str(error))

    async def _in_time(self, call: Awaitable[Any]) -> Any:
        async with asyncio.timeout(CALL_TIMEOUT_S):
            result = await call
        self.answered_s = time.monotonic()
        return result


class Leader:
    """One candidate; `lead` runs when it holds the Lease."""

    def __init__(self, settings: Settings, api: client.ApiClient) -> None:
        self._settings = settings
        self._lock = _Lock(settings.lease.name, settings.lease.namespace, settings.identity, api)
        self.is_leading = False

    @property
    def answered_s(self) -> float | None:
        return self._lock.answered_s

    async def run(self, lead: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Wait for the Lease, then lead; ends as `lead` does, and lets go of the Lease.

        Ends the process when the Lease is lost.
        """
        # The library does not look at how its task ended.
        outcome: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def started() -> None:
            self.is_leading = True
            metrics.is_leader.set(1)
            log.info("leading", identity=self._settings.identity)
            try:
                await lead()
            except Exception as error:  # noqa: BLE001 - passed on as it is
                outcome.set_exception(error)
            else:
                outcome.set_result(None)

        async def lost() -> None:
            log.error("lease_lost", identity=self._settings.identity)
            os._exit(LOST_EXIT_CODE)

        election = LeaderElection(
            Config(
                self._lock,
                lease_duration=DURATION_S,
                renew_deadline=RENEW_DEADLINE_S,
                retry_period=RETRY_S,
                onstarted_leading=started,
                onstopped_leading=lost,
            )
        )
        try:
            async with asyncio.TaskGroup() as group:
                electing = group.create_task(election.run(), name="election")
                await outcome
                electing.cancel()
        finally:
            if self.is_leading:
                self.is_leading = False
                metrics.is_leader.set(0)
                await self._lock.release()
