"""What every reconcile works with, and the one way to write a status."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ibrik_api.timestamps import format_timestamp
from ibrik_operator import events, faults
from ibrik_operator.archives import Archives
from ibrik_operator.brokers import Brokers
from ibrik_operator.conditions.condition import Verdict, merged
from ibrik_operator.credentials import Credentials
from ibrik_operator.decisions.absence import Absences
from ibrik_operator.keys import Document, Key
from ibrik_operator.kube import Kube
from ibrik_operator.observations import Observations
from ibrik_operator.settings import Settings
from ibrik_operator.world import World


class Enqueue(Protocol):
    def __call__(self, key: Key, delay_s: float = 0.0) -> None: ...


@dataclass(frozen=True)
class Context:
    kube: Kube
    brokers: Brokers
    world: World
    observations: Observations
    credentials: Credentials
    settings: Settings
    enqueue: Enqueue
    now_ms: Callable[[], int]
    refresh: Callable[[], Awaitable[None]]
    """Read the world anew."""
    wrote: Callable[[Document], None]
    """Take what the API server answered to a write into the world."""
    absences: dict[Key, Absences] = field(default_factory=dict)
    archives: Archives = field(default_factory=Archives)

    async def write_status(
        self,
        document: Document,
        fields: Document,
        verdicts: Sequence[Verdict],
        *,
        kept: Sequence[Document] = (),
    ) -> None:
        """Apply the status when it says something new, and tell of what flipped.

        `fields` are those besides conditions and observedGeneration; None values stay out.
        `kept` are conditions that stay as they are.
        """
        before = document.get("status") or {}
        generation = document["metadata"].get("generation", 0)
        now = format_timestamp(self.now_ms() // 1000 * 1000).replace(".000Z", "Z")
        known = before.get("conditions") or []
        conditions = [*kept, *merged(known, verdicts, generation=generation, now=now)]
        status: dict[str, Any] = {
            "observedGeneration": generation,
            **{name: value for name, value in fields.items() if value is not None},
            "conditions": conditions,
        }
        if status == before:
            return
        key = Key.of(document)
        written = await self.kube.apply_status(
            {"kind": key.kind, "metadata": document["metadata"], "status": status}
        )
        if written is None:
            return  # It is gone.
        self.wrote(written)
        faults.reach("status-written")
        await events.publish(self.kube, document, events.transitions(known, conditions))
