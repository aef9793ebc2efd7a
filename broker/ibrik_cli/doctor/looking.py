"""Looks at a cluster: documents by kubectl, brokers by a forwarded port each, logs of sick pods.

What may not be looked at is noted and passed over: half of the picture is better than none.
Secrets are never asked for.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from ibrik_api import __version__
from ibrik_api.definitions import KINDS
from ibrik_api.kubernetes import ADMIN_PORT, GROUP, MANAGED_BY, POOL_LABEL
from ibrik_cli import kubectl
from ibrik_cli.cluster import Cluster
from ibrik_cli.doctor.brokers import ask
from ibrik_cli.doctor.finding import BrokerSeen, Document, Seen, name_of
from ibrik_cli.failures import Failure
from ibrik_cli.pods import containers_of, is_ended, is_ready

BROKERS_ASKED = 20
LOGS_READ = 5
LOG_LINES = 15
CALLS_AT_ONCE = 4
OPERATOR_LABEL = "app.kubernetes.io/name=ibrik-operator"
CHILDREN_LABEL = f"app.kubernetes.io/managed-by={MANAGED_BY}"


class Looker:
    """One look; gathers what it could not see."""

    def __init__(self, cluster: Cluster, *, is_everywhere: bool) -> None:
        self.cluster = cluster
        self.scope = ["--all-namespaces"] if is_everywhere else []
        self.is_everywhere = is_everywhere
        self.unseen: dict[str, str] = {}
        self._turns = asyncio.Semaphore(CALLS_AT_ONCE)

    async def look(self) -> Seen:
        """Raises Failure when the cluster does not answer at all."""
        version = json.loads(await kubectl.run(self.cluster, "get", "--raw", "/version"))
        names = [f"{kind.plural}.{GROUP}" for kind in KINDS]
        definitions, operator, resources, children, events = await asyncio.gather(
            self._get("definitions", "customresourcedefinitions", *names, "--ignore-not-found"),
            self._operator(),
            self._get("resources", ",".join(names), *self.scope),
            self._get("pods", "pods,persistentvolumeclaims", "-l", CHILDREN_LABEL, *self.scope),
            self._get("events", "events", *self.scope),
        )
        leases = await self._leases(_of_kind(operator, "Deployment"))
        pods = _of_kind(children, "Pod")
        brokers, logs = await asyncio.gather(
            self._brokers(pods), self._logs([*_of_kind(operator, "Pod"), *pods])
        )
        return Seen(
            version=__version__,
            now_s=time.time(),
            kubernetes=str(version.get("gitVersion", "")),
            namespace="" if self.is_everywhere else await self._namespace(),
            operators=_of_kind(operator, "Deployment"),
            operator_pods=_of_kind(operator, "Pod"),
            leases=leases,
            definitions=definitions,
            pools=_of_kind(resources, "BrokerPool"),
            topics=_of_kind(resources, "Topic"),
            subscriptions=_of_kind(resources, "Subscription"),
            channels=_of_kind(resources, "Channel"),
            pods=pods,
            claims=_of_kind(children, "PersistentVolumeClaim"),
            events=events,
            brokers=brokers,
            logs=logs,
            unseen=self.unseen,
        )

    async def _get(self, what: str, *arguments: str) -> list[Document]:
        return await self._noting(what, lambda: self._items(*arguments)) or []

    async def _items(self, *arguments: str) -> list[Document]:
        async with self._turns:
            text = await kubectl.run(self.cluster, "get", *arguments, "--output=json")
        return kubectl.items_of(text)

    async def _operator(self) -> list[Document]:
        """Of all namespaces; without that right, of this one."""
        wanted = ("deployments,pods", "-l", OPERATOR_LABEL)
        try:
            return await self._items(*wanted, "--all-namespaces")
        except Failure:
            found = await self._get("operator", *wanted)
            if not found:
                self.unseen.setdefault("operator", "it may be in a namespace that you may not see")
            return found

    async def _leases(self, operators: Sequence[Document]) -> list[Document]:
        found: list[Document] = []
        for deployment in operators:
            name, namespace = deployment["metadata"]["name"], deployment["metadata"]["namespace"]
            found += await self._get("leases", "lease", name, "-n", namespace, "--ignore-not-found")
        return found

    async def _namespace(self) -> str:
        if self.cluster.namespace:
            return self.cluster.namespace
        view = ("config", "view", "--minify", "--output=jsonpath={..namespace}")
        return (
            await self._noting("namespace", lambda: kubectl.run(self.cluster, *view)) or "default"
        )

    async def _brokers(self, pods: Sequence[Document]) -> list[BrokerSeen]:
        asked = [pod for pod in pods if is_running(pod)][:BROKERS_ASKED]
        return list(await asyncio.gather(*(self._broker(pod) for pod in asked)))

    async def _broker(self, pod: Document) -> BrokerSeen:
        metadata = pod["metadata"]
        seen = BrokerSeen(
            name_of(pod),
            namespace=metadata["namespace"],
            pool=(metadata.get("labels") or {}).get(POOL_LABEL, ""),
        )
        place = self.cluster.in_namespace(metadata["namespace"])
        try:
            async with (
                self._turns,
                kubectl.forwarded(place, f"pod/{metadata['name']}", ADMIN_PORT) as url,
            ):
                return await ask(seen, url)
        except Failure as error:
            self.unseen.setdefault("brokers", str(error))
            return BrokerSeen(seen.name, fault=str(error))

    async def _logs(self, pods: Sequence[Document]) -> dict[str, list[str]]:
        sick = [pod for pod in pods if not is_ended(pod) and not is_ready(pod)][:LOGS_READ]
        return {name_of(pod): await self._log(pod) for pod in sick}

    async def _log(self, pod: Document) -> list[str]:
        """Its last lines; those of the life before when it has just been restarted."""
        metadata = pod["metadata"]
        where = ("logs", metadata["name"], "-n", metadata["namespace"], f"--tail={LOG_LINES}")
        is_waiting = any("waiting" in (c.get("state") or {}) for c in containers_of(pod))
        before = any((c.get("lastState") or {}).get("terminated") for c in containers_of(pod))
        more = ["--previous"] if is_waiting and before else []
        try:
            return (await kubectl.run(self.cluster, *where, "--all-containers", *more)).splitlines()
        except Failure:
            return []  # A pod that never began has no log.

    async def _noting(self, what: str, work: Callable[[], Awaitable[Any]]) -> Any:
        try:
            return await work()
        except Failure as error:
            self.unseen[what] = str(error)
            return None


async def look_at_broker(admin: str) -> Seen:
    """A broker without a cluster."""
    broker = await ask(BrokerSeen(admin), admin)
    return Seen(version=__version__, now_s=time.time(), brokers=[broker])


def is_running(pod: Document) -> bool:
    return (pod.get("status") or {}).get("phase") == "Running" and not is_ended(pod)


def _of_kind(documents: Sequence[Document], kind: str) -> list[Document]:
    return [document for document in documents if document.get("kind") == kind]
