"""One flow on its way to one destination: when it has something, how fast it may go."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from ibrik_api.resources.channel import Circuit
from ibrik_api.resources.subscription import Guarantee
from ibrik_broker.delivery.deadletters import Reason
from ibrik_broker.delivery.flow import Flow
from ibrik_broker.delivery.message import Delivery
from ibrik_broker.delivery.parts import Parts
from ibrik_broker.delivery.rate import Rate
from ibrik_broker.delivery.wishes import SubscriptionWish

if TYPE_CHECKING:
    from ibrik_broker.delivery.pusher import Pusher


class Exhausted(Protocol):
    """Where messages go that had all their attempts."""

    async def put(
        self, flow: Flow, wish: SubscriptionWish, delivery: Delivery, reason: Reason
    ) -> bool:
        """Settle the message, or leave it blocked or for later: then False."""
        ...


class Push:
    """One flow on its way to one destination."""

    __slots__ = (
        "_on_progress",
        "_parts",
        "alarm_ticks",
        "dead_letters",
        "flow",
        "is_ready",
        "joined_id",
        "pusher",
        "rate",
        "replay",
        "wish",
    )

    def __init__(
        self,
        wish: SubscriptionWish,
        flow: Flow,
        parts: Parts,
        *,
        replay: str | None = None,
        dead_letters: Exhausted | None = None,
        on_progress: Callable[[], None] | None = None,
    ) -> None:
        self.wish = wish
        self.flow = flow
        self.replay = replay
        self.dead_letters: Exhausted = dead_letters or parts.dead_letters
        self.pusher: Pusher | None = None
        self.joined_id: str | None = None
        """The channel that it belongs to, kept by `Outlets`; also one that is not there yet."""
        self.is_ready = False
        self.alarm_ticks: int | None = None
        self._parts = parts
        self._on_progress = on_progress
        self.rate = None if wish.rate is None else Rate(wish.rate, wish.rate)

    @property
    def is_once(self) -> bool:
        return self.wish.guarantee is Guarantee.FIRE_AND_FORGET

    @property
    def trouble(self) -> str | None:
        if self.pusher is None:
            return "stopped"
        match self.pusher.outlet.circuit(self._parts.ticks_ms()):
            case Circuit.GONE | Circuit.PAUSED:
                return "stopped"
            case Circuit.OPEN | Circuit.HALF_OPEN:
                return "circuit-open"
        return None

    def change(self, wish: SubscriptionWish) -> None:
        if wish.rate != self.wish.rate:
            self.rate = None if wish.rate is None else Rate(wish.rate, wish.rate)
        self.wish = wish

    def room(self, room: int, now_ticks: int) -> int:
        return room if self.rate is None else min(room, self.rate.available(now_ticks))

    def hold_ms(self, attempt: int, first_ms: int) -> int:
        """When the next attempt would be due if the broker died during this one."""
        now_ms = self._parts.clock_ms()
        retry = self.wish.retry
        next_ms = retry.next_attempt_ms(attempt, first_ms, now_ms, self._parts.random)
        return 0 if next_ms is None else next_ms - now_ms

    def on_ready(self) -> None:
        if self.pusher is not None:
            self.pusher.ready(self)

    def on_due(self, ticks: int) -> None:
        self._parts.alarms.arrange(self, ticks)

    def on_alarm(self) -> None:
        """A parked message is due, or the rate allows more."""
        self.on_ready()

    def on_gap_pause(self) -> None:
        self._parts.halt("subscription", self.wish.id, "gap")

    def rest(self) -> None:
        """Nothing could be taken: be called when the next parked message is due."""
        due = self.flow.due_ticks()
        if due is not None and self.flow.is_open:
            if due <= self._parts.ticks_ms():  # it became due in the meantime
                self.on_ready()
            else:
                self._parts.alarms.arrange(self, due)
        self.settled()

    def settled(self) -> None:
        if self._on_progress is not None:
            self._on_progress()
