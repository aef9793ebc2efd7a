"""When a message that failed is tried again: presets, own numbers, jitter, the end of it.

Pure: attempts, times and chance in, the time of the next attempt out. Parking and waking are the
caller's.

The presets, as waits before the second attempt and on; each wait has equal jitter, so it is
between half of this and this:

* in-cluster: 0.5 s, 1 s, 2 s, 4 s, 8 s, 16 s, 32 s, then 60 s four times. 12 attempts, the last one
  at most 303.5 s after the first.
* webhook: 5 s, 5 m, 30 m, 2 h, 5 h, 10 h, 14 h, 20 h, 24 h, the list of Standard Webhooks.
  10 attempts, the last one at most 75 h 35 m 5 s after the first.
"""

from collections.abc import Callable
from dataclasses import dataclass

from ibrik_api.durations import HOUR_MS, MINUTE_MS, SECOND_MS
from ibrik_api.resources.subscription import Backoff, Jitter, OnExhausted, Retry
from ibrik_api.resources.topic import RetryPreset

IN_CLUSTER_ATTEMPTS = 12
WEBHOOK_WAITS_MS = (
    5 * SECOND_MS,
    5 * MINUTE_MS,
    30 * MINUTE_MS,
    2 * HOUR_MS,
    5 * HOUR_MS,
    10 * HOUR_MS,
    14 * HOUR_MS,
    20 * HOUR_MS,
    24 * HOUR_MS,
)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """A schedule, with everything that was left out filled in."""

    waits_ms: tuple[int, ...]
    """Wait after each attempt; the last one stands for all that follow."""
    jitter: Jitter
    max_attempts: int
    """Attempts at most, the first one included."""
    max_age_ms: int | None
    """No attempt begins later than this after the first one."""
    on_exhausted: OnExhausted

    def next_attempt_ms(
        self, attempts_made: int, first_ms: int, now_ms: int, random: Callable[[], float]
    ) -> int | None:
        """When the attempt after `attempts_made` failed ones is due; None when there is none.

        `first_ms` is when the first attempt began; `random` gives numbers from 0 to 1.
        """
        assert attempts_made >= 1
        if attempts_made >= self.max_attempts:
            return None
        wait_ms = self.waits_ms[min(attempts_made, len(self.waits_ms)) - 1]
        next_ms = now_ms + _jittered(wait_ms, self.jitter, random)
        if self.max_age_ms is not None and next_ms - first_ms > self.max_age_ms:
            return None
        return next_ms


def resolve_policy(retry: Retry, default: RetryPreset) -> RetryPolicy:
    """What `retry` says, then its preset, then `default`: that of the topic."""
    backoff = retry.backoff
    if (retry.preset or default) is RetryPreset.WEBHOOK:
        attempts = retry.max_attempts or len(WEBHOOK_WAITS_MS) + 1
        waits_ms = WEBHOOK_WAITS_MS if backoff is None else _growing(backoff, attempts)
    else:
        attempts = retry.max_attempts or IN_CLUSTER_ATTEMPTS
        waits_ms = _growing(backoff or Backoff(), attempts)
    return RetryPolicy(
        waits_ms=waits_ms,
        jitter=Jitter.EQUAL if backoff is None else backoff.jitter,
        max_attempts=attempts,
        max_age_ms=retry.max_age_ms,
        on_exhausted=retry.on_exhausted,
    )


def _growing(backoff: Backoff, attempts: int) -> tuple[int, ...]:
    """The waits initial · factor^n, at most max; capped at each step, so that none overflows."""
    waits_ms = []
    wait_ms = min(float(backoff.initial_ms), backoff.max_ms)
    for _ in range(max(attempts - 1, 1)):
        waits_ms.append(round(wait_ms))
        wait_ms = min(wait_ms * backoff.factor, backoff.max_ms)
    return tuple(waits_ms)


def _jittered(wait_ms: int, jitter: Jitter, random: Callable[[], float]) -> int:
    match jitter:
        case Jitter.NONE:
            return wait_ms
        case Jitter.EQUAL:
            return round(wait_ms / 2 * (1 + random()))
        case Jitter.FULL:
            return round(wait_ms * random())
