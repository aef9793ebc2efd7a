"""Run by the chart before it is uninstalled: stop the operator, then release what it protects.

In this order, since a running operator puts its finalizer back. Doing it twice is doing it once.
What is released is not deleted: resources, pods and volumes stay as they are.
"""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from ibrik_api.kubernetes import FINALIZER
from ibrik_operator.keys import Document, Key
from ibrik_operator.kube import Kube, KubeConflict, KubeError, KubeInvalid

KINDS = ("Subscription", "Channel", "Topic", "BrokerPool")
PODS_END_S = 60
LOOK_S = 1
TRIES = 5
"""Of releasing one resource while somebody else writes to it."""

Pause = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Installation:
    namespace: str
    deployment: str
    selector: str
    """Labels of the operator's pods."""
    served: tuple[str, ...]
    """Namespaces; none means all."""

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "Installation":
        """As the chart says it; a missing variable is a mistake in the chart."""
        served = environment.get("IBRIK_UNINSTALL_SERVED", "")
        return cls(
            namespace=environment["IBRIK_UNINSTALL_NAMESPACE"],
            deployment=environment["IBRIK_UNINSTALL_DEPLOYMENT"],
            selector=environment["IBRIK_UNINSTALL_SELECTOR"],
            served=tuple(name for name in served.split(",") if name),
        )


async def uninstall(kube: Kube, installation: Installation, pause: Pause = asyncio.sleep) -> int:
    """How many resources were released."""
    await stop_operator(kube, installation, pause)
    released = 0
    for kind in KINDS:
        for namespace in installation.served or ("",):
            for document in await _protected(kube, kind, namespace):
                released += await _release(kube, document)
    return released


async def stop_operator(kube: Kube, installation: Installation, pause: Pause) -> None:
    """Scale it to nothing, and wait for its pods; a pod of a lost node is not waited for longer."""
    key = Key("Deployment", installation.namespace, installation.deployment)
    if await kube.patch(key, {"spec": {"replicas": 0}}) is None:
        return
    for _ in range(PODS_END_S // LOOK_S):
        if not await kube.list("Pod", installation.namespace, installation.selector):
            return
        await pause(LOOK_S)
    _say(f"A pod of {installation.deployment} still ends after {PODS_END_S} s; going on.")


async def _protected(kube: Kube, kind: str, namespace: str) -> list[Document]:
    try:
        found = await kube.list(kind, namespace)
    except KubeInvalid:  # The definition is gone, and its resources with it.
        return []
    return [document for document in found if FINALIZER in _finalizers(document)]


async def _release(kube: Kube, document: Document) -> bool:
    """Whether it was protected until now."""
    latest: Document | None = document
    for _ in range(TRIES):
        if latest is None or FINALIZER not in _finalizers(latest):
            return False
        others = [name for name in _finalizers(latest) if name != FINALIZER]
        try:
            await kube.set_finalizers(latest, others)
        except KubeConflict:
            latest = await kube.get(Key.of(document))
        else:
            return True
    raise KubeConflict(f"{Key.of(document)} changes all the time: run helm uninstall again")


def _finalizers(document: Document) -> list[str]:
    found: list[str] = document["metadata"].get("finalizers", [])
    return found


def _say(sentence: str) -> None:
    sys.stdout.write(f"{sentence}\n")
    sys.stdout.flush()


async def _main() -> int:
    kube = await Kube.connect()
    try:
        released = await uninstall(kube, Installation.of(os.environ))
    except KubeError as error:
        _say(f"Not released: {error}\nOr go on without: helm uninstall --no-hooks")
        return 1
    finally:
        await kube.close()
    _say(f"The operator has stopped; {released} resources are released and can be deleted.")
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(_main()))
