"""One limit of time for many waits: one timer for all of them, none for each.

A timer per message costs more on a hot path than most of what else is done for it. In return a
wait may last a twentieth longer than its limit.
"""

import asyncio
from collections.abc import Awaitable
from itertools import takewhile
from typing import Any, TypeVar

T = TypeVar("T")

SWEEPS_PER_LIMIT = 20
SWEPT_AT_ONCE = 8


class Deadlines:
    """Tasks that wait, the one that began first at hand."""

    def __init__(self, limit_ms: int) -> None:
        self._limit_ms = limit_ms
        self._sweep_s = max(0.001, limit_ms / 1000 / SWEEPS_PER_LIMIT)
        self._started_s: dict[asyncio.Task[Any], float] = {}
        self._given_up: set[asyncio.Task[Any]] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def wait(self, answer: Awaitable[T]) -> T:
        """Wait for an answer; TimeoutError when it does not come in time."""
        loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        assert task is not None, "whoever waits is a task"
        self._started_s[task] = loop.time()
        if self._timer is None:
            self._timer = loop.call_later(self._sweep_s, self._sweep, loop)
        try:
            return await answer
        except asyncio.CancelledError:
            if task not in self._given_up:
                raise
            self._given_up.discard(task)
            task.uncancel()
            raise TimeoutError from None
        finally:
            del self._started_s[task]

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        horizon_s = loop.time() - self._limit_ms / 1000
        overdue = [
            task
            for task, started_s in takewhile(
                lambda entry: entry[1] <= horizon_s, self._started_s.items()
            )
            if task not in self._given_up
        ]
        for task in overdue[:SWEPT_AT_ONCE]:
            self._given_up.add(task)
            task.cancel()
        self._timer = None
        if len(overdue) > SWEPT_AT_ONCE:
            # What each has to clean up takes time: others have their turn in between.
            self._timer = loop.call_later(0, self._sweep, loop)
        elif self._started_s:
            self._timer = loop.call_later(self._sweep_s, self._sweep, loop)
