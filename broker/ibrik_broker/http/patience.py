"""How long a publish may wait for the log."""

from collections.abc import Awaitable
from typing import TypeVar

from ibrik_api.errors import Refusal
from ibrik_broker.partitions.deadlines import Deadlines

T = TypeVar("T")


class Patience:
    """Requests that wait for the log."""

    def __init__(self, limit_ms: int) -> None:
        self._limit_ms = limit_ms
        self._deadlines = Deadlines(limit_ms)

    async def wait(self, answer: Awaitable[T]) -> T:
        """Wait for an answer of the log; Refusal `not-ready` when it does not come in time."""
        try:
            return await self._deadlines.wait(answer)
        except TimeoutError:
            raise Refusal(
                "not-ready",
                f"The log did not answer within {self._limit_ms} ms. The messages may still be"
                " appended: repeating them with the same ids is safe.",
            ) from None
