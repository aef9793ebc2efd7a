"""How long a publish may wait for the log: one timer for all requests, none for each.

A timer per request costs more on the hot path than the rest of the door.
"""

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

from ibrik_api.errors import Refusal

T = TypeVar("T")

SWEEPS_PER_LIMIT = 20


class Patience:
    """Requests that wait, the oldest first."""

    def __init__(self, limit_ms: int) -> None:
        self._limit_ms = limit_ms
        self._sweep_s = max(0.001, limit_ms / 1000 / SWEEPS_PER_LIMIT)
        self._started_s: dict[asyncio.Task[Any], float] = {}
        self._given_up: set[asyncio.Task[Any]] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def wait(self, answer: Awaitable[T]) -> T:
        """Wait for an answer of the log; Refusal `not-ready` when it does not come in time."""
        loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        assert task is not None, "a request is handled in a task"
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
            raise Refusal(
                "not-ready",
                f"The log did not answer within {self._limit_ms} ms. The messages may still be"
                " appended: repeating them with the same ids is safe.",
            ) from None
        finally:
            del self._started_s[task]

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        horizon_s = loop.time() - self._limit_ms / 1000
        for task, started_s in self._started_s.items():
            if started_s > horizon_s:
                break
            if task not in self._given_up:
                self._given_up.add(task)
                task.cancel()
        self._timer = None
        if self._started_s:
            self._timer = loop.call_later(self._sweep_s, self._sweep, loop)
