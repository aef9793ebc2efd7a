"""What became of messages, told to the broker in batches.

A verdict waits a few milliseconds for company, then goes with all that came meanwhile. Verdicts are
safe to repeat, so they are repeated until the broker takes them or the client is left; one that
comes too late is reported by the broker and harms nobody.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from ibrik_client.calls import Resource
from ibrik_client.errors import IbrikError, Unavailable, error_of
from ibrik_client.leasing import Leasing

COMPANY_S = 0.005
"""How long a verdict waits for others."""
BATCH_COUNT = 1_000
RETRY_S = 0.2

logger = logging.getLogger("ibrik.client")


class Verdict(NamedTuple):
    """Done with (the default), or to be delivered again."""

    is_done: bool = True
    delay: str | None = None
    """Until the next attempt; None: as the subscription's retry policy says."""
    reason: str = ""


DONE = Verdict()


class _Waiting(NamedTuple):
    token: str
    told: "asyncio.Future[None] | None"


class Settler:
    """The verdicts on the messages of one subscription."""

    def __init__(self, leasing: Leasing, subscription: str) -> None:
        self.expired_count = 0
        """Verdicts that came too late."""
        self._leasing = leasing
        self._subscription = subscription
        self._pending: dict[Verdict, deque[_Waiting]] = {}
        self._pending_count = 0
        self._work = asyncio.Event()
        self._is_closing = False

    def settle(self, token: str, verdict: Verdict = DONE) -> None:
        """Tell the broker soon."""
        self._add(verdict, _Waiting(token, None))

    async def settled(self, token: str, verdict: Verdict = DONE) -> None:
        """Tell the broker, and return when it has noted it. Raises LeaseExpired."""
        told: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._add(verdict, _Waiting(token, told))
        await told

    def close(self) -> None:
        """Send what is pending, without waiting for company, and end."""
        self._is_closing = True
        self._work.set()

    async def run(self) -> None:
        """Until closed, and nothing is pending."""
        while self._pending_count or not self._is_closing:
            await self._work.wait()
            self._work.clear()
            if not self._is_closing and self._pending_count < BATCH_COUNT:
                await asyncio.sleep(COMPANY_S)
            for verdict in list(self._pending):
                batch = self._take(verdict)
                await self._tell(verdict, batch)

    def _add(self, verdict: Verdict, waiting: _Waiting) -> None:
        self._pending.setdefault(verdict, deque()).append(waiting)
        self._pending_count += 1
        self._work.set()

    def _take(self, verdict: Verdict) -> list[_Waiting]:
        waiting = self._pending[verdict]
        batch = [waiting.popleft() for _ in range(min(len(waiting), BATCH_COUNT))]
        if not waiting:
            del self._pending[verdict]
        else:
            self._work.set()
        return batch

    async def _tell(self, verdict: Verdict, batch: Sequence[_Waiting]) -> None:
        """Send one batch until it is taken; nothing that was asked for is forgotten."""
        tokens = [waiting.token for waiting in batch]
        while True:
            try:
                stale = await self._send(verdict, tokens)
                break
            except Unavailable as error:
                if self._is_closing:
                    self._end(batch, dict.fromkeys(range(len(batch)), error))
                    return
                await asyncio.sleep(RETRY_S)
            except IbrikError as error:
                self._end(batch, dict.fromkeys(range(len(batch)), error))
                return
        self._end(batch, {item["index"]: error_of(item) for item in stale})

    async def _send(self, verdict: Verdict, tokens: Sequence[str]) -> list[Resource]:
        if verdict.is_done:
            return await self._leasing.ack(self._subscription, tokens)
        return await self._leasing.nack(
            self._subscription, tokens, delay=verdict.delay, reason=verdict.reason
        )

    def _end(self, batch: Sequence[_Waiting], errors: dict[int, IbrikError]) -> None:
        self._pending_count -= len(batch)
        self.expired_count += len(errors)
        for index, waiting in enumerate(batch):
            if waiting.told is None or waiting.told.done():
                continue
            error = errors.get(index)
            if error is None:
                waiting.told.set_result(None)
            else:
                waiting.told.set_exception(error)
                waiting.told.exception()  # whoever waited may be gone
        unheard = [error for index, error in errors.items() if batch[index].told is None]
        if unheard:
            logger.warning(
                "%d verdicts on messages of %s did not count: %s",
                len(unheard),
                self._subscription,
                unheard[0],
            )
