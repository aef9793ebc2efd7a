"""A blocking iterator, read by a thread of its own, as an asynchronous one.

For input that may stay silent for ever (a terminal, a pipe): the thread dies with the process, so
Ctrl-C never waits for the next line, as `asyncio.to_thread` would.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")
AHEAD = 4
"""Items that the thread may read before they are asked for."""


class _End:
    pass


async def from_thread(items: Iterator[T]) -> AsyncIterator[T]:
    """The items in order; what the iterator raises is raised here."""
    loop = asyncio.get_running_loop()
    arrived: asyncio.Queue[T | _End | Exception] = asyncio.Queue()
    room = threading.Semaphore(AHEAD)

    def hand_over(item: T | _End | Exception) -> None:
        with suppress(RuntimeError):  # The loop is closed: nobody wants the rest.
            loop.call_soon_threadsafe(arrived.put_nowait, item)

    def read() -> None:
        try:
            for item in items:
                room.acquire()
                hand_over(item)
        except Exception as error:  # noqa: BLE001 - raised again by the reader
            hand_over(error)
        else:
            hand_over(_End())

    threading.Thread(target=read, daemon=True).start()
    while True:
        item = await arrived.get()
        if isinstance(item, _End):
            return
        if isinstance(item, Exception):
            raise item
        yield item
        room.release()
