"""What a flow is told: what it delivers, and who carries its messages on."""

from dataclasses import dataclass
from typing import Protocol

from ibrik_api.resources.subscription import OnGap
from ibrik_api.resources.topic import Ordering
from ibrik_broker.delivery.filters import Filter
from ibrik_broker.delivery.wishes import SubscriptionWish


class Carrier(Protocol):
    """Who takes a flow's messages on: the pusher of a channel, or the leases of consumers."""

    @property
    def wish(self) -> SubscriptionWish:
        """What it is asked for now."""
        ...

    @property
    def trouble(self) -> str | None:
        """Why nothing goes out although the flow would: stopped, circuit-open. None: it does."""
        ...

    def on_ready(self) -> None:
        """There may be something to take, besides news of the topic."""

    def on_due(self, ticks: int) -> None:
        """Something will be there to take at that time."""

    def on_gap_pause(self) -> None:
        """The flow stopped at a gap, as the subscription wishes."""


class Plan(Protocol):
    """What a flow delivers, and in which order; where to is its carrier's business.

    A subscription's wish is one as it stands, so that ten thousand of them need no second object.
    """

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def topic(self) -> str: ...
    @property
    def filter(self) -> Filter | None: ...
    @property
    def ordering(self) -> Ordering: ...
    @property
    def on_gap(self) -> OnGap: ...
    @property
    def ends(self) -> tuple[int, ...] | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowPlan:
    """The plan of a flow that is no subscription's, such as a replay."""

    id: str
    name: str
    """Of the subscription; for people."""
    topic: str
    filter: Filter | None = None
    ordering: Ordering = Ordering.NONE
    on_gap: OnGap = OnGap.CONTINUE
    ends: tuple[int, ...] | None = None
    """Offset to end before, for each partition; None: it follows the topic for ever."""
