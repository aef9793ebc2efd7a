"""Time of day and monotonic time, together: one pair for all flows."""

from collections.abc import Callable


class Clocks:
    __slots__ = ("now_ms", "ticks_ms")

    def __init__(self, now_ms: Callable[[], int], ticks_ms: Callable[[], int]) -> None:
        self.now_ms = now_ms
        self.ticks_ms = ticks_ms

    def wall_ms(self, ticks: int) -> int:
        """The time of day at `ticks`, as it is written to the database."""
        return self.now_ms() + ticks - self.ticks_ms()
