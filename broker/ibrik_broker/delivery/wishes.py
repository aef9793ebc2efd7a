"""What the catalogue asks the dispatcher for: channels and subscriptions, resolved and checked.

Values only. Defaults of the topic are filled in and references are looked up before they get here.
"""

from dataclasses import dataclass
from typing import ClassVar

from ibrik_api.resources.destination import Destination
from ibrik_api.resources.subscription import GroupType, Guarantee, Mode, OnGap, StartFrom
from ibrik_api.resources.topic import Ordering
from ibrik_broker.delivery.filters import Filter
from ibrik_broker.delivery.retry import RetryPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelWish:
    """A destination and whether it may be used. Of an inline push, `id` is the subscription's."""

    id: str
    name: str
    namespace: str
    destination: Destination
    halt: str | None = None
    """paused or gone: nothing is sent. None: it may be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartWish:
    """Where a flow that has no cursor yet begins."""

    origin: StartFrom = StartFrom.EARLIEST
    offsets: tuple[int, ...] = ()
    """With offset: one for all partitions, or one for each."""
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionWish:
    """A subscription as it is served."""

    id: str
    name: str
    namespace: str
    topic: str
    mode: Mode
    type: GroupType
    channel_id: str | None = None
    """Of push: the channel, or the subscription's own id for an inline destination. None while the
    channel that it names is not there: the backlog waits."""
    filter: Filter | None = None
    start: StartWish = StartWish()
    ack_deadline_ms: int = 30_000
    max_in_flight: int = 1_000
    guarantee: Guarantee = Guarantee.AT_LEAST_ONCE
    ordering: Ordering = Ordering.NONE
    on_gap: OnGap = OnGap.CONTINUE
    retry: RetryPolicy
    dead_letter_topic: str | None = None
    """None: `<topic>.<subscription>.dlq`, made when the first message needs it."""
    rate: int | None = None
    halt: str | None = None
    """paused, or gap (onGap: pause found one): nothing is delivered. None: it is."""
    ends: ClassVar[None] = None
    """It follows its topic for ever; a replay has ends."""
