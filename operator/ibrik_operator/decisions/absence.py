"""When a resource that brokers serve counts as gone: absent in two full lists, apart. Pure.

Doubt deletes nothing, and a list can be wrong: when more than half of a pool's resources would go
at once, none goes, and somebody has to look. An annotation of the pool says how many may.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

from ibrik_api.kubernetes import DETACH_ABSENT
from ibrik_api.observed import ObservedResource
from ibrik_operator.keys import Document

APART_S = 30.0
FEW = 2
"""So many may always go at once."""

Identity = tuple[str, str, str, str | None]
"""Kind, namespace, name, uid."""


def identity(seen: ObservedResource) -> Identity:
    return seen.kind, seen.namespace, seen.name, seen.uid


def allowed_of(pool: Document) -> int:
    """How many may go at once although they are more than half."""
    text = (pool["metadata"].get("annotations") or {}).get(DETACH_ABSENT, "")
    return max(FEW, int(text)) if text.isdecimal() else FEW


@dataclass
class Absences:
    """Of one pool: since when each resource is absent."""

    since_s: dict[Identity, float] = field(default_factory=dict)
    is_stopped: bool = False
    """More than half is absent: nothing is detached."""

    def judge(
        self,
        served: Collection[ObservedResource],
        absent: Collection[ObservedResource],
        now_s: float,
        *,
        allowed: int = FEW,
    ) -> list[ObservedResource]:
        """Those to detach now, after a full list in which `absent` were not there."""
        known = {identity(one) for one in absent}
        self.since_s = {one: since for one, since in self.since_s.items() if one in known} | {
            one: now_s for one in known if one not in self.since_s
        }
        self.is_stopped = len(absent) > allowed and 2 * len(absent) > len(served)
        if self.is_stopped:
            return []
        return [one for one in absent if now_s - self.since_s[identity(one)] >= APART_S]
