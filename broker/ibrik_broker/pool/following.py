"""Keeps this broker and the pool in step: says that it is there, and learns what the others did.

A broker that changed something tells the others, which look at once. Whoever was not told, or was
away, finds it at its next look: no notice has to arrive.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import structlog

from ibrik_api.errors import Refusal
from ibrik_broker.pool.pool import Pool

logger = structlog.get_logger("pool")

LOOK_SECONDS = 2.0
UNKNOWN_SECONDS = 0.25
"""For an unknown name the database is asked at most this often."""

Look = Callable[[], Awaitable[None]]


class Following:
    def __init__(self, pool: Pool, looks: Sequence[Look], size_bytes: Callable[[], int]) -> None:
        """`looks` are taken in order: topics before what names them."""
        self.is_in_step = True
        """Whether the last look reached the database."""
        self._pool = pool
        self._looks = looks
        self._size_bytes = size_bytes
        self._lock = asyncio.Lock()
        self._begun = 0
        self._looked_s = 0.0

    async def look(self) -> None:
        """Learn all that was written before this call. Raises Refusal `metadata-unavailable`."""
        called_after = self._begun
        async with self._lock:
            if self._begun > called_after:
                return  # one began after this call, and has ended
            self._begun += 1
            self._looked_s = asyncio.get_running_loop().time()
            await self._pool.refresh()
            for look in self._looks:
                await look()

    async def look_for_unknown(self) -> None:
        """Look once more before a name counts as unknown; not for each of many such requests."""
        if asyncio.get_running_loop().time() - self._looked_s >= UNKNOWN_SECONDS:
            with suppress(Refusal):
                await self.look()

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await self._pool.beat(self._size_bytes())
                await self.look()
                self._note(None)
            except Refusal as refusal:
                self._note(refusal)
            except Exception:
                logger.exception("not in step with the pool")

    def _note(self, refusal: Refusal | None) -> None:
        if self.is_in_step != (refusal is None):
            self.is_in_step = refusal is None
            if refusal is None:
                logger.info("in step with the pool again")
            else:
                logger.warning("not in step with the pool", reason=refusal.detail)
