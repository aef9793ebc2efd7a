"""One change of the catalogue at a time, after everything that topics did in between."""

import asyncio
from collections.abc import Awaitable, Callable


class Turns:
    """`async with turns:` around each change. Not to be taken twice by one caller."""

    def __init__(self, catch_up: Callable[[], Awaitable[None]]) -> None:
        self._lock = asyncio.Lock()
        self._catch_up = catch_up

    async def __aenter__(self) -> None:
        await self._lock.acquire()
        try:
            await self._catch_up()
        except BaseException:
            self._lock.release()
            raise

    async def __aexit__(self, *_error: object) -> None:
        self._lock.release()
