"""When to try again, and for how long.

A request is repeated when nobody answered or when the problem document says that a retry helps;
after the time the broker names, else after a growing, jittered wait. `deadline_s` bounds all
attempts and waits together. Repeating is safe because every publish carries an id.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import stamina

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

    When the time is over the last Unavailable is raised, never a bare timeout.
    """
    seconds = policy.deadline_s if deadline_s is None else deadline_s
    if seconds <= 0:
        return await attempt()
    ends = time.monotonic() + seconds
    last: Unavailable | None = None

    def next_wait(error: Exception) -> bool | float:
        nonlocal last
        if not isinstance(error, Unavailable):
            return False
        last = error
        if error.retry_after_s is None:
            return True
        # A wait that ends after the deadline would only delay the bad news.
        return error.retry_after_s if time.monotonic() + error.retry_after_s < ends else False

    try:
        async with asyncio.timeout(seconds):
            async for again in stamina.retry_context(
                on=next_wait,
                attempts=None,
                timeout=seconds,
                wait_initial=policy.first_wait_s,
                wait_max=policy.longest_wait_s,
                wait_jitter=policy.first_wait_s,
            ):
                with again:
                    return await attempt()
    except TimeoutError as error:
        late = Unavailable(f"no answer within {seconds:g} s")
        raise (last or late) from error
    raise AssertionError("a retry loop ends by a result or an error")
