"""A token bucket: how many messages may go now, and when the next one may.

Pure: the time is passed in, so one timer of the dispatcher serves all buckets. Whole numbers only:
a thousandth of a message is the unit, and a millisecond brings as many as messages go a second.
"""

_ONE = 1_000


class Rate:
    """`per_second` messages on average, and up to `burst` at once."""

    def __init__(self, per_second: int, burst: int | None = None) -> None:
        """Full at the start. Without `burst`, a second's worth."""
        assert per_second >= 1
        assert burst is None or burst >= 1
        self._per_second = per_second
        self._limit = (per_second if burst is None else burst) * _ONE
        self._left = self._limit
        self._at_ms: int | None = None

    def take(self, now_ms: int, count: int) -> int:
        """How many of `count` may go now; they are taken."""
        self._refill(now_ms)
        taken = min(count, self._left // _ONE)
        self._left -= taken * _ONE
        return taken

    def available(self, now_ms: int) -> int:
        """How many may go now; none are taken."""
        self._refill(now_ms)
        return self._left // _ONE

    def give_back(self, count: int) -> None:
        """Return what was taken and not sent."""
        self._left = min(self._left + count * _ONE, self._limit)

    def next_ms(self, now_ms: int) -> int:
        """The first millisecond, from now on, at which `take` gives at least one."""
        self._refill(now_ms)
        missing = max(_ONE - self._left, 0)
        return now_ms + -(-missing // self._per_second)

    def _refill(self, now_ms: int) -> None:
        # A clock that was set back brings nothing, and goes on from where it is.
        elapsed_ms = 0 if self._at_ms is None else max(now_ms - self._at_ms, 0)
        self._at_ms = now_ms
        self._left = min(self._left + elapsed_ms * self._per_second, self._limit)
