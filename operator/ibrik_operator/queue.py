"""Keys that wait for their reconcile: each at most once, each at its time, none twice at once.

A reconcile that raises comes again after a pause that doubles, up to five minutes; one that returns
seconds comes again after them. A key that is added while it runs runs once more afterwards.
"""

import asyncio
import contextlib
import heapq
import random
import time
from collections.abc import Awaitable, Callable

import structlog

from ibrik_operator import metrics
from ibrik_operator.brokers import BrokersUnavailable
from ibrik_operator.keys import Key
from ibrik_operator.kube import KubeConflict, KubeUnavailable

log = structlog.get_logger(__name__)

Reconcile = Callable[[Key], Awaitable[float | None]]
WORKERS = 20
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 300.0
EXPECTED = (KubeUnavailable, KubeConflict, BrokersUnavailable)
"""What means "later", and is no fault of the program."""


class WorkQueue:
    def __init__(
        self,
        reconcile: Reconcile,
        *,
        workers: int = WORKERS,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._reconcile = reconcile
        self._workers = workers
        self._jitter = jitter
        self._due: dict[Key, float] = {}
        self._heap: list[tuple[float, Key]] = []
        self._running: set[Key] = set()
        self._failures: dict[Key, int] = {}
        self._news = asyncio.Event()
        self.ended = 0
        """Reconciles that ended, also those that failed."""

    def __len__(self) -> int:
        return len(self._due)

    @property
    def is_idle(self) -> bool:
        """Nothing runs and nothing is due now; later visits may be planned."""
        now = asyncio.get_running_loop().time()
        return not self._running and all(due > now for due in self._due.values())

    def add(self, key: Key, delay_s: float = 0.0) -> None:
        """Reconcile this key; when it waits already, at the earlier of the two times."""
        due = asyncio.get_running_loop().time() + delay_s
        known = self._due.get(key)
        if known is not None and known <= due:
            return
        self._due[key] = due
        heapq.heappush(self._heap, (due, key))
        metrics.queue_depth.set(len(self._due))
        self._news.set()

    async def run(self) -> None:
        """Work until cancelled."""
        slots = asyncio.Semaphore(self._workers)
        async with asyncio.TaskGroup() as group:
            while True:
                await slots.acquire()
                key = await self._next()
                self._running.add(key)
                group.create_task(self._work(key, slots), name=str(key))

    async def _next(self) -> Key:
        while True:
            self._news.clear()
            now = asyncio.get_running_loop().time()
            waiting = []
            found = None
            while self._heap and self._heap[0][0] <= now and found is None:
                due, key = heapq.heappop(self._heap)
                if self._due.get(key) != due:
                    continue  # moved to another time since
                if key in self._running:
                    waiting.append((due, key))
                    continue
                found = key
            for entry in waiting:
                heapq.heappush(self._heap, entry)
            if found is not None:
                del self._due[found]
                metrics.queue_depth.set(len(self._due))
                return found
            later = [due for due, _key in self._heap if due > now]
            pause = min(later) - now if later else None
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), pause)

    async def _work(self, key: Key, slots: asyncio.Semaphore) -> None:
        started = time.monotonic()
        result = "done"
        try:
            delay = await self._reconcile(key)
        except EXPECTED as error:
            result = "later"
            delay = max(self._pause(key), getattr(error, "after_s", None) or 0.0)
            log.info("reconcile_later", key=str(key), pause_s=round(delay, 1), error=str(error))
        except Exception:  # One broken object must not stop the others.
            result = "failed"
            delay = self._pause(key)
            log.exception("reconcile_failed", key=str(key), pause_s=round(delay, 1))
        else:
            self._failures.pop(key, None)
            metrics.last_success_seconds.labels(key.kind).set_to_current_time()
        finally:
            self._running.discard(key)
            self.ended += 1
            metrics.reconcile_seconds.labels(key.kind).observe(time.monotonic() - started)
            slots.release()
            self._news.set()
        metrics.reconciles.labels(key.kind, result).inc()
        if delay is not None:
            self.add(key, delay)

    def _pause(self, key: Key) -> float:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        longest: float = min(FIRST_PAUSE_S * 2 ** min(failures - 1, 20), LONGEST_PAUSE_S)
        return longest * (0.5 + self._jitter() / 2)
