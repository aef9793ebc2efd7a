"""Reads everything anew into the world: at the start, and where a wrong world would cost data.

Also every few minutes, since no event tells of what went while a watch was broken; between those
the watches keep the world fresh.
"""

from collections.abc import Callable, Mapping

from ibrik_operator.keys import Document, Key, version
from ibrik_operator.kube import Kube, KubeError
from ibrik_operator.world import World

Seen = Callable[[str, Document], None]
"""Takes a type of event (ADDED, MODIFIED, DELETED) and the object, as watching does."""


class Resync:
    def __init__(
        self,
        kube: Kube,
        world: World,
        seen: Seen,
        *,
        watched: Mapping[str, str],
        namespaces: tuple[str, ...],
    ) -> None:
        self._kube = kube
        self._world = world
        self._seen = seen
        self._watched = watched
        self._namespaces = namespaces or ("",)

    async def refresh(self) -> None:
        """Everything that is watched, as the API server has it now.

        A list that cannot be read does not keep the others from being read.

        Raises:
            KubeError: The first one, at the end.
        """
        first: KubeError | None = None
        for kind, labels in self._watched.items():
            for namespace in self._namespaces:
                try:
                    await self._refresh(kind, namespace, labels)
                except KubeError as error:
                    first = first or error
        if first is not None:
            raise first

    async def _refresh(self, kind: str, namespace: str, labels: str) -> None:
        before = {Key.of(one): one for one in self._world.all(kind, namespace or None)}
        listed = {Key.of(one): one for one in await self._kube.list(kind, namespace, labels)}
        for key, document in listed.items():
            known = self._world.get(key)
            if known is None and key in before:
                continue  # Its deletion was seen while the list came.
            if known is None or version(known) < version(document):
                self._seen("ADDED" if known is None else "MODIFIED", document)
        for key, document in before.items():
            # What came or changed while the list was read is not in it, or newer than it.
            if key not in listed and self._world.get(key) is document:
                self._seen("DELETED", document)
