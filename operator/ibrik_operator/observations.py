"""What the brokers of each pool last said that they serve.

Observing writes, reconciles read and note what they applied since.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ibrik_api.observed import Observed, ObservedBroker, ObservedResource
from ibrik_operator.keys import Document, Key


@dataclass(frozen=True, slots=True)
class BrokerSeen:
    """One pod of a pool, and what its broker says."""

    pod: str
    observed: Observed | None
    """None: it did not answer."""
    error: str = ""
    uid: str = ""
    """Of the pod: a pod made anew has the same name."""


@dataclass
class PoolObservation:
    brokers: list[BrokerSeen] = field(default_factory=list)
    served: dict[Key, ObservedResource] = field(default_factory=dict)
    at_ms: int | None = None
    """When every broker was last asked; None: never."""
    counted_ms: int | None = None
    """When counts of this pool last went on their way into statuses."""

    @property
    def is_whole(self) -> bool:
        """Every pod answered."""
        return bool(self.brokers) and all(one.observed is not None for one in self.brokers)

    def answers(self) -> Iterator[ObservedBroker]:
        for seen in self.brokers:
            if seen.observed is not None:
                yield seen.observed.broker


class Observations:
    def __init__(self) -> None:
        self._pools: dict[Key, PoolObservation] = {}

    def of(self, pool: Key) -> PoolObservation:
        return self._pools.setdefault(pool, PoolObservation())

    def pools(self) -> list[Key]:
        return list(self._pools)

    def forget(self, pool: Key) -> None:
        self._pools.pop(pool, None)

    def note(self, pool: Key, brokers: Sequence[BrokerSeen], now_ms: int) -> PoolObservation:
        """All that the brokers said now. A resource that several serve counts as the oldest one."""
        served: dict[Key, ObservedResource] = {}
        for seen in brokers:
            for one in seen.observed.resources if seen.observed is not None else ():
                key = Key(one.kind, one.namespace, one.name)
                known = served.get(key)
                if known is None or one.generation < known.generation:
                    served[key] = one
        counted_ms = self.of(pool).counted_ms
        observation = PoolObservation(list(brokers), served, now_ms, counted_ms)
        self._pools[pool] = observation
        return observation

    def serves(self, pool: Key, document: Document) -> ObservedResource | None:
        """This very resource as the pool serves it, at whatever generation."""
        seen = self.of(pool).served.get(Key.of(document))
        if seen is None or seen.is_detached or seen.uid != document["metadata"].get("uid"):
            return None
        return seen

    def note_applied(self, pool: Key, document: Document, status: dict[str, Any] | None) -> None:
        """The brokers confirmed this generation."""
        key, metadata = Key.of(document), document["metadata"]
        self.of(pool).served[key] = ObservedResource(
            kind=key.kind,
            namespace=key.namespace,
            name=key.name,
            uid=metadata.get("uid"),
            generation=metadata.get("generation", 0),
            status=status or {},
        )

    def note_gone(self, pool: Key, key: Key) -> None:
        self.of(pool).served.pop(key, None)
