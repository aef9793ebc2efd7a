"""One timer for everything that is due some time: retries, deadlines, circuits, rates.

A thousand waiting messages are one entry, that of the first one: whoever is called looks what is
due, and asks to be called again.
"""

import asyncio
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import Protocol


class Sleeper(Protocol):
    """Whoever wants to be called."""

    alarm_ticks: int | None
    """The earliest call that is arranged; None: none is."""

    def on_alarm(self) -> None: ...


class Alarms:
    def __init__(self, ticks_ms: Callable[[], int]) -> None:
        self._ticks_ms = ticks_ms
        self._loop = asyncio.get_running_loop()
        self._heap: list[tuple[int, int, Sleeper]] = []
        self._numbers = count()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ticks = 0

    def arrange(self, sleeper: Sleeper, ticks: int) -> None:
        """Call the sleeper at `ticks`, unless it is called earlier anyway."""
        if sleeper.alarm_ticks is not None and sleeper.alarm_ticks <= ticks:
            return
        sleeper.alarm_ticks = ticks
        heappush(self._heap, (ticks, next(self._numbers), sleeper))
        self._set()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._heap.clear()

    def _set(self) -> None:
        ticks = self._heap[0][0]
        if self._timer is not None:
            if self._timer_ticks <= ticks:
                return
            self._timer.cancel()
        self._timer_ticks = ticks
        seconds = max(0, ticks - self._ticks_ms()) / 1_000
        self._timer = self._loop.call_later(seconds, self.ring)

    def ring(self) -> None:
        """Call everyone whose time has come. The timer does; a test with a fake clock may."""
        self._timer = None
        now_ticks = self._ticks_ms()
        while self._heap and self._heap[0][0] <= now_ticks:
            ticks, _, sleeper = heappop(self._heap)
            if sleeper.alarm_ticks == ticks:  # otherwise an earlier call made this one void
                sleeper.alarm_ticks = None
                sleeper.on_alarm()
        if self._heap:
            self._set()
