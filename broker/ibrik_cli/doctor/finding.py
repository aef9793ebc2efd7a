"""What the doctor says: one finding each; and what it saw, as plain documents. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Document = dict[str, Any]
Level = Literal["fine", "warning", "problem"]
MARKS = {"fine": "✓", "warning": "!", "problem": "✗"}


@dataclass(frozen=True, slots=True)
class Finding:
    level: Level
    text: str
    """What is so, in plain words, beginning with whom it is about."""
    remedy: str = ""
    """What to do next, where there is something."""

    def document(self) -> dict[str, str]:
        return {"level": self.level, "text": self.text, "remedy": self.remedy}


@dataclass(frozen=True, slots=True)
class BrokerSeen:
    """One broker as it says of itself, over metrics that need no token."""

    name: str
    """`namespace/pod`, or its address."""
    version: str = ""
    is_ready: bool = False
    free_bytes: int | None = None
    is_storage_full: bool = False
    damaged_records: int = 0
    fault: str = ""
    """Why it could not be asked."""
    namespace: str = ""
    pool: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """A cluster as it was found; documents as the API server gives them."""

    version: str
    """Of this command."""
    now_s: float
    kubernetes: str = ""
    """Version of the API server; empty: there is no cluster."""
    namespace: str = ""
    """Where it was looked; empty: everywhere."""
    operators: Sequence[Document] = ()
    operator_pods: Sequence[Document] = ()
    leases: Sequence[Document] = ()
    definitions: Sequence[Document] = ()
    pools: Sequence[Document] = ()
    topics: Sequence[Document] = ()
    subscriptions: Sequence[Document] = ()
    channels: Sequence[Document] = ()
    pods: Sequence[Document] = ()
    claims: Sequence[Document] = ()
    events: Sequence[Document] = ()
    brokers: Sequence[BrokerSeen] = ()
    logs: dict[str, list[str]] = field(default_factory=dict)
    """Last lines of pods that are not well, by `namespace/pod`."""
    unseen: dict[str, str] = field(default_factory=dict)
    """What could not be looked at, and why."""


def name_of(document: Document) -> str:
    """`namespace/name`."""
    metadata = document["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}".removeprefix("/")


def condition_of(document: Document, type_: str) -> Document:
    conditions = (document.get("status") or {}).get("conditions") or []
    return next((c for c in conditions if c.get("type") == type_), {})


def pool_of(document: Document) -> str:
    """The name of the pool that a topic is on."""
    return str(((document.get("spec") or {}).get("pool") or {}).get("name") or "default")
