"""What the API server last told about every object that is watched.

Handlers write, reconciles read; nobody else. A status that we write is here at once. Documents are
stored as they came, without managedFields, and are never changed in place. Of Secrets only the
names of their keys are kept.
"""

from collections.abc import Iterator

from ibrik_operator.keys import Document, Key
from ibrik_operator.naming import names


class World:
    def __init__(self) -> None:
        self._kinds: dict[str, dict[tuple[str, str], Document]] = {}
        # Thousands of objects name each other: a walk over all of them for each event would add up.
        self._naming: dict[Key, dict[Key, None]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._kinds.values()))

    def get(self, key: Key) -> Document | None:
        return self._kinds.get(key.kind, {}).get((key.namespace, key.name))

    def put(self, document: Document) -> Document | None:
        """Remember it; return what was known before."""
        key = Key.of(document)
        kept = {**document, "metadata": _trimmed(document["metadata"])}
        if key.kind == "Secret":
            kept["data"] = dict.fromkeys(document.get("data") or {}, "kept elsewhere")
        objects = self._kinds.setdefault(key.kind, {})
        before = objects.get((key.namespace, key.name))
        objects[key.namespace, key.name] = kept
        self._unlist(key, before)
        for named in names(kept):
            self._naming.setdefault(named, {})[key] = None
        return before

    def remove(self, key: Key) -> Document | None:
        before = self._kinds.get(key.kind, {}).pop((key.namespace, key.name), None)
        self._unlist(key, before)
        return before

    def all(self, kind: str, namespace: str | None = None) -> Iterator[Document]:
        """Every object of a kind; a copy of the list, so that the world may change meanwhile."""
        for (place, _name), document in list(self._kinds.get(kind, {}).items()):
            if namespace in (None, place):
                yield document

    def naming(self, named: Key) -> Iterator[Document]:
        """Every object that names this one, as `names` has it; a copy of the list, too."""
        for key in list(self._naming.get(named, ())):
            document = self.get(key)
            if document is not None:
                yield document

    def _unlist(self, key: Key, document: Document | None) -> None:
        for named in () if document is None else names(document):
            naming = self._naming[named]
            del naming[key]
            if not naming:
                del self._naming[named]


def _trimmed(metadata: Document) -> Document:
    return {name: value for name, value in metadata.items() if name != "managedFields"}
