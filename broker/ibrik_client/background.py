"""What a client does besides what it is asked for at the moment: tasks that end with the client.

A subscription leases, extends and settles while its user works on a message. Leaving the client's
block closes every subscription: what was acknowledged is sent, what is in hand is given back.
"""

import asyncio
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Protocol, Self


class Closing(Protocol):
    """Something that runs until it is closed."""

    async def close(self) -> None: ...


class Background:
    """The tasks of one client."""

    def __init__(self) -> None:
        self._tasks = asyncio.TaskGroup()
        self._open: dict[Closing, None] = {}

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            for closing in list(self._open):
                await closing.close()
        finally:
            # The group has to see a cancellation, which may be its own; other errors stay plain.
            is_cancelled = isinstance(error, asyncio.CancelledError)
            await self._tasks.__aexit__(*((kind, error, trace) if is_cancelled else (None,) * 3))

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return self._tasks.create_task(work)

    def open(self, closing: Closing) -> None:
        """Close it when the client is left."""
        self._open[closing] = None

    def closed(self, closing: Closing) -> None:
        self._open.pop(closing, None)
