"""When to try again, and for how long.

A request is repeated when nobody answered or when the problem document says that a retry helps;
after the time the broker names, else after a growing, jittered wait. `deadline_s` bounds all
attempts and waits together. Repeating is safe because every publish carries an id.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import tenacity

from ibrik_client.errors import Unavailable

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    deadline_s: float = 60.0
    """All attempts and waits of one call together; then the last error is raised."""
    first_wait_s: float = 0.1
    longest_wait_s: float = 5.0
    """Longest own wait; a Retry-After of the broker may be longer."""


NO_RETRY = RetryPolicy(deadline_s=0)


async def with_retries(
    policy: RetryPolicy, attempt: Callable[[], Awaitable[T]], *, deadline_s: float | None = None
) -> T:
    """The result of `attempt`, which raises Unavailable when another attempt may help.

    A wait that would end after the deadline is not begun: the last Unavailable is raised at once.
    """
    seconds = policy.deadline_s if deadline_s is None else deadline_s
    if seconds <= 0:
        return await attempt()
    waits = _Waits(policy)
    retrying = tenacity.AsyncRetrying(
        retry=tenacity.retry_if_exception_type(Unavailable),
        wait=waits,
        stop=tenacity.stop_before_delay(seconds),
        reraise=True,
    )
    try:
        async with asyncio.timeout(seconds):
            return await retrying(attempt)
    except TimeoutError as error:
        raise (waits.last_error or Unavailable(f"no answer within {seconds:g} s")) from error


class _Waits(tenacity.wait.wait_base):
    """What the broker asked for, else a growing and jittered time."""

    def __init__(self, policy: RetryPolicy) -> None:
        self.last_error: Unavailable | None = None
        self._own = tenacity.wait_random_exponential(
            multiplier=policy.first_wait_s, max=policy.longest_wait_s
        )

    def __call__(self, retry_state: tenacity.RetryCallState) -> float:
        outcome = retry_state.outcome
        error = outcome.exception() if outcome is not None else None
        assert isinstance(error, Unavailable), "only Unavailable is tried again"
        self.last_error = error
        return self._own(retry_state) if error.retry_after_s is None else error.retry_after_s
