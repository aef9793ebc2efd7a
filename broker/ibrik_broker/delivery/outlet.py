"""The run-time state of one destination: how much may be sent to it, and when.

Nothing here is per message, and nothing outlives the process but the halt, which the catalogue
keeps. Time is passed in as ticks (monotonic milliseconds). Decides; the pusher acts.
"""

from dataclasses import dataclass, replace

from ibrik_api.resources.channel import Circuit
from ibrik_broker.delivery.answers import Answer
from ibrik_broker.delivery.breaker import Breaker
from ibrik_broker.delivery.rate import Rate
from ibrik_broker.delivery.window import Window
from ibrik_broker.delivery.wishes import ChannelWish

CLAIM_AHEAD = 16
"""Messages that are claimed while as many as may be are on their way, so that no worker waits for
a commit; fewer where few are on their way. After a crash their attempt counts although it was never
made."""


@dataclass(slots=True)
class OutletCounters:
    delivered: int = 0
    failed: int = 0
    last_status: int | None = None
    last_error: str | None = None
    last_ms: int | None = None
    """When the last answer came (wall clock)."""
    duration_ms_sum: int = 0
    """Of all attempts; with their number it is the mean."""


class Outlet:
    def __init__(self, wish: ChannelWish) -> None:
        self.id = wish.id
        self.wish = wish
        self.counters = OutletCounters()
        self.queued = 0
        """Claimed, and on the way to a worker."""
        self.in_flight = 0
        """Being sent at this moment."""
        self.workers = 0
        self.is_closing = False
        self._breaker = Breaker()
        self._window = Window()
        self._rate: Rate | None = None
        self._paused_until_ticks = 0
        self.change(wish)

    def change(self, wish: ChannelWish) -> None:
        """Take a new wish over; what was learnt of the endpoint stays unless it was resumed."""
        if self.wish.halt is not None and wish.halt is None:
            self._breaker.reset()
            self._window.reset()
            self._paused_until_ticks = 0
        limits, known = wish.destination.limits, self.wish.destination.limits
        if limits.rate is None:
            self._rate = None
        elif self._rate is None or limits.rate != known.rate:
            self._rate = Rate(limits.rate, limits.rate)
        self.wish = wish

    def halt(self, reason: str) -> bool:
        """Send nothing more until someone resumes the channel; whether that is news."""
        if self.wish.halt is not None:
            return False
        self.wish = replace(self.wish, halt=reason)
        return True

    @property
    def concurrency(self) -> int:
        """How many may be on their way now: as many as wished, if it copes with them."""
        return self._window.size(self.wish.destination.limits.concurrency)

    # --- may ------------------------------------------------------------------------------------

    def room(self, share: int, now_ticks: int) -> int:
        """How many messages may be claimed now. `share` is what fairness leaves to each outlet.

        While some are on their way, the next ones are claimed already.
        """
        if self.is_closing or not self.is_open(now_ticks):
            return 0
        busy = self.in_flight + self.queued
        if self._breaker.state(now_ticks) is Circuit.HALF_OPEN:
            room = 1 - busy
        else:
            most = min(self.concurrency, share)
            room = most + _ahead(most) - busy
        if self._rate is not None:
            room = min(room, self._rate.available(now_ticks))
        return max(0, room)

    def is_open(self, now_ticks: int) -> bool:
        """Whether nothing but its own concurrency and rate hold messages back."""
        is_held = self.wish.halt is not None or now_ticks < self._paused_until_ticks
        return not is_held and self._breaker.state(now_ticks) is not Circuit.OPEN

    @property
    def has_enough(self) -> bool:
        """Whether enough is claimed for now: a few at a time would cost a commit each."""
        return self.queued > _ahead(self.concurrency) // 2

    def claimed(self, count: int, now_ticks: int) -> None:
        """So many were claimed: they count against the rate."""
        if self._rate is not None:
            self._rate.take(now_ticks, count)

    def may_send(self, now_ticks: int) -> bool:
        """Whether the next claimed message may really go; half open it becomes the probe."""
        return self.is_open(now_ticks) and self._breaker.allows(now_ticks)

    def next_ticks(self, now_ticks: int) -> int | None:
        """When there may be room again without any news; None: only news can help."""
        if self.wish.halt is not None:
            return None
        waits = [ticks for ticks in (self._paused_until_ticks,) if ticks > now_ticks]
        opens = self._breaker.opens_until_ms
        if opens is not None and opens > now_ticks:
            waits.append(opens)
        if self._rate is not None:
            rate_ticks = self._rate.next_ms(now_ticks)
            if rate_ticks > now_ticks:
                waits.append(rate_ticks)
        return max(waits, default=None)

    # --- learn ------------------------------------------------------------------------------------

    def learn(self, answer: Answer, is_success: bool, now_ticks: int, now_ms: int) -> None:
        """Take in how an attempt ended."""
        counters = self.counters
        counters.delivered += is_success
        counters.failed += not is_success
        counters.last_status, counters.last_error = answer.status, answer.error
        counters.last_ms = now_ms
        counters.duration_ms_sum += answer.duration_ms
        self._breaker.record(is_success, answer.is_connect_error, now_ticks)
        self._window.learn(answer, self.wish.destination.limits.concurrency)
        if answer.retry_after_ms and not is_success:
            until = now_ticks + answer.retry_after_ms
            self._paused_until_ticks = max(self._paused_until_ticks, until)

    # --- look -------------------------------------------------------------------------------------

    def circuit(self, now_ticks: int) -> Circuit:
        match self.wish.halt:
            case None:
                return self._breaker.state(now_ticks)
            case "gone":
                return Circuit.GONE
            case _:
                return Circuit.PAUSED

    def paused_until_ticks(self, now_ticks: int) -> int | None:
        """Until when Retry-After or the circuit holds messages back; None: nothing does."""
        opens = self._breaker.opens_until_ms or 0
        until = max(self._paused_until_ticks, opens)
        return until if until > now_ticks else None


def _ahead(most: int) -> int:
    return max(most, min(CLAIM_AHEAD, 4 * most))
