"""Watching with kopf: an event goes into the world, and the keys that it concerns into the queue.

kopf keeps nothing on the objects: no annotation, no finalizer, no events of its own.
"""

import random
from collections.abc import Callable, Iterator
from typing import Any

import kopf

from ibrik_api.kubernetes import MANAGED_BY, WATCH_LABEL
from ibrik_operator.decisions.dependents import dependents
from ibrik_operator.keys import Document, Key, version
from ibrik_operator.kube import KINDS
from ibrik_operator.settings import Settings
from ibrik_operator.world import World

OURS = f"app.kubernetes.io/managed-by={MANAGED_BY}"
WATCHED = {
    "BrokerPool": "",
    "Topic": "",
    "Subscription": "",
    "Channel": "",
    "StatefulSet": OURS,
    "Pod": OURS,
    "PersistentVolumeClaim": OURS,
    "Service": OURS,
    "ConfigMap": OURS,
    "ServiceAccount": OURS,
    "PodDisruptionBudget": OURS,
    "NetworkPolicy": OURS,
    "Secret": f"{WATCH_LABEL}=true",
}
"""Every kind that is watched, and the labels that it must have."""


class _Pauses:
    """Seconds between attempts to reach the API server: growing, jittered, without an end."""

    def __iter__(self) -> Iterator[float]:
        pause = 1.0
        while True:
            yield pause * (0.5 + random.random())  # noqa: S311 - no secret
            pause = min(pause * 2, 60.0)


class Watching:
    def __init__(self, world: World, enqueue: Callable[[Key], None]) -> None:
        self._world = world
        self._enqueue = enqueue

    async def run(self, settings: Settings) -> None:
        """Watch until the process is asked to end."""
        await kopf.operator(
            registry=self._registry(),
            settings=_kopf_settings(settings),
            standalone=True,
            # Else kopf asks for the name of the user, and in a container there is none.
            identity=settings.identity,  # type: ignore[arg-type]
            clusterwide=not settings.namespaces,
            namespaces=settings.namespaces,
        )

    def seen(self, type_: str | None, document: Document) -> None:
        """One event; the type is ADDED, MODIFIED, DELETED, or None from the first list."""
        key = Key.of(document)
        before = self._world.get(key)
        if before is not None and _is_older(document, before):
            return  # It was read anew since; what comes late must not undo that.
        if type_ == "DELETED":
            if before is None or _uid(before) != _uid(document):
                return  # Another object has this name by now.
            self._world.remove(key)
            after = None
        else:
            self._world.put(document)
            after = self._world.get(key)
        for concerned in dependents(before, after, self._world):
            self._enqueue(concerned)

    def wrote(self, document: Document) -> None:
        """What the API server answered to a write of ours, before its event comes.

        Else the next reconcile would start from what was before, and write the same again.
        """
        before = self._world.get(Key.of(document))
        if before is not None and _uid(before) == _uid(document):  # Its end may be known already.
            self.seen("MODIFIED", document)

    def _registry(self) -> kopf.OperatorRegistry:
        registry = kopf.OperatorRegistry()
        kopf.on.login(registry=registry, id="login")(_login)
        for kind in WATCHED:
            at = KINDS[kind]
            kopf.on.event(at.group, at.version, at.plural, registry=registry, id="seen")(
                self._handler(kind)
            )
        return registry

    def _handler(self, kind: str) -> Callable[..., Any]:
        said = {"apiVersion": KINDS[kind].api_version, "kind": kind}

        async def seen(event: Any, **_: Any) -> None:
            self.seen(event["type"], {**event["object"], **said})

        return seen


async def _login(**arguments: Any) -> kopf.ConnectionInfo | None:
    return kopf.login_with_service_account(**arguments) or kopf.login_with_kubeconfig(**arguments)


def _kopf_settings(settings: Settings) -> kopf.OperatorSettings:
    ours = kopf.OperatorSettings()
    ours.posting.enabled = False
    ours.watching.server_timeout = 300
    ours.watching.client_timeout = 330
    ours.watching.inactivity_timeout = 70
    ours.watching.connect_timeout = 10
    ours.watching.reconnect_backoff = 1.0
    ours.watching.chunk_size = 500
    ours.networking.request_timeout = 30
    ours.networking.connect_timeout = 10
    ours.networking.error_backoffs = _Pauses()
    ours.scanning.disabled = bool(settings.namespaces)
    for kind, labels in WATCHED.items():
        if labels:
            at = KINDS[kind]
            ours.watching.label_selectors[at.group, at.version, at.plural] = labels
    return ours


def _is_older(document: Document, known: Document) -> bool:
    """An earlier state of the same object."""
    return _uid(document) == _uid(known) and version(document) < version(known)


def _uid(document: Document) -> str:
    return str(document["metadata"].get("uid", ""))
