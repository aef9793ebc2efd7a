"""An event loop whose time passes at once: it jumps to the next timer instead of waiting for it.

For code that asks only the loop for the time. With nothing left to happen it says so, where a
real loop would wait for ever.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any


class _Selector(selectors.SelectSelector):
    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "nothing can happen any more"
        self.now += max(timeout, 0.0)
        return super().select(0)


class FastLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._clock = _Selector()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now

    def stall(self, seconds: float) -> None:
        """As if a callback took that long."""
        self._clock.now += seconds


def run_fast(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    with asyncio.Runner(loop_factory=FastLoop) as runner:
        runner.run(main())
