"""What a reconcile is about: the key of an object. Pure."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

Document = Mapping[str, Any]
"""An object of the API server, as JSON has it; never changed in place."""


class Key(NamedTuple):
    """Sorts by kind, then namespace, then name."""

    kind: str
    namespace: str
    name: str

    @classmethod
    def of(cls, document: Document) -> Self:
        metadata = document["metadata"]
        return cls(document["kind"], metadata.get("namespace", ""), metadata["name"])

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


def version(document: Document) -> int:
    """Versions of the objects of one kind are numbers that rise."""
    return int(document["metadata"]["resourceVersion"])
