"""The maintenance thread: retention, snapshots and deletion, where nobody waits for them.

Unlinking a gigabyte takes 0.2 s and more: not on the event loop, not on the writer's thread.
"""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

import structlog

logger = structlog.get_logger("ibrik.maintenance")

Job = Callable[[], object]
T = TypeVar("T")


class Maintenance:
    """Runs jobs one after the other, and `tick` whenever `interval_seconds` pass without one."""

    def __init__(self, tick: Job, interval_seconds: float) -> None:
        self._tick = tick
        self._interval_seconds = interval_seconds
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="maintenance", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def submit(self, job: Job) -> None:
        self._jobs.put(job)

    def call(self, job: Callable[[], T]) -> Future[T]:
        """Run a job after those before it, for someone who waits for its result."""
        future: Future[T] = Future()

        def run() -> None:
            try:
                future.set_result(job())
            except BaseException as error:  # noqa: BLE001 - it belongs to who waits
                future.set_exception(error)

        self.submit(run)
        return future

    def close(self) -> None:
        """Finish what was submitted, then end. Blocks."""
        self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=self._interval_seconds)
            except queue.Empty:
                job = self._tick
            if job is None:
                return
            try:
                job()
            except Exception as error:  # noqa: BLE001 - a failed chore is tried again, not fatal
                logger.warning(
                    "maintenance failed", job=getattr(job, "__name__", "job"), error=repr(error)
                )
