"""The circuit breaker of one channel: whether it makes sense to send at all.

Closed until too much fails; then open for a while, which costs no message an attempt; then half
open: one message finds out. Pure, lives in an outlet, forgotten at a restart. Pausing by people and
by Retry-After is not here.
"""

from collections import deque
from dataclasses import dataclass

from ibrik_api.durations import MINUTE_MS, SECOND_MS
from ibrik_api.resources.channel import Circuit

WINDOW_MS = 5 * MINUTE_MS
BUCKET_MS = 30 * SECOND_MS
MIN_RESULTS = 10
FAILED_PERCENT = 70
CONNECT_ERRORS_IN_A_ROW = 5
FIRST_OPEN_MS = 30 * SECOND_MS
MAX_OPEN_MS = 10 * MINUTE_MS
PROBE_MS = 150 * SECOND_MS
"""Longer than an attempt may take: a probe whose result never came does not block for ever."""


@dataclass(slots=True)
class _Bucket:
    """The results of one stretch of BUCKET_MS."""

    number: int
    results: int = 0
    failures: int = 0


class Breaker:
    """Opens at 70 % failures of at least 10 results in 5 minutes, or 5 connect errors in a row."""

    def __init__(self) -> None:
        self._buckets: deque[_Bucket] = deque(maxlen=WINDOW_MS // BUCKET_MS)
        self._connect_errors = 0
        self._open_ms = FIRST_OPEN_MS
        self._opens_until_ms: int | None = None  # None: closed
        self._probe_until_ms: int | None = None  # None: no probe is on its way

    @property
    def opens_until_ms(self) -> int | None:
        """Until when nothing is sent, or was sent before the probe; None while closed."""
        return self._opens_until_ms

    def state(self, now_ms: int) -> Circuit:
        if self._opens_until_ms is None:
            return Circuit.CLOSED
        return Circuit.OPEN if now_ms < self._opens_until_ms else Circuit.HALF_OPEN

    def allows(self, now_ms: int) -> bool:
        """Whether a message may be sent now. Half open, the first to ask becomes the probe."""
        match self.state(now_ms):
            case Circuit.CLOSED:
                return True
            case Circuit.HALF_OPEN if self._probe_until_ms is None or (
                now_ms >= self._probe_until_ms
            ):
                self._probe_until_ms = now_ms + PROBE_MS
                return True
            case _:
                return False

    def record(self, is_success: bool, is_connect_error: bool, now_ms: int) -> None:
        """Take in how a message ended. What was sent before the circuit opened changes nothing."""
        match self.state(now_ms):
            case Circuit.CLOSED:
                self._count(is_success, is_connect_error, now_ms)
                if not is_success and self._is_failing(now_ms):
                    self._open(now_ms)
            case Circuit.HALF_OPEN if self._probe_until_ms is not None:
                if is_success:
                    self.reset()
                else:
                    self._open_ms = min(2 * self._open_ms, MAX_OPEN_MS)
                    self._open(now_ms)

    def reset(self) -> None:
        """Close, and forget what was: it works again, or someone says so."""
        self._buckets.clear()
        self._connect_errors = 0
        self._open_ms = FIRST_OPEN_MS
        self._opens_until_ms = None
        self._probe_until_ms = None

    def _open(self, now_ms: int) -> None:
        self._opens_until_ms = now_ms + self._open_ms
        self._probe_until_ms = None
        self._connect_errors = 0
        self._buckets.clear()

    def _count(self, is_success: bool, is_connect_error: bool, now_ms: int) -> None:
        number = now_ms // BUCKET_MS
        if not self._buckets or self._buckets[-1].number != number:
            self._buckets.append(_Bucket(number))
        bucket = self._buckets[-1]
        bucket.results += 1
        bucket.failures += not is_success
        if is_success:
            self._connect_errors = 0
        else:
            self._connect_errors += is_connect_error

    def _is_failing(self, now_ms: int) -> bool:
        if self._connect_errors >= CONNECT_ERRORS_IN_A_ROW:
            return True
        oldest = now_ms // BUCKET_MS - WINDOW_MS // BUCKET_MS + 1
        recent = [bucket for bucket in self._buckets if bucket.number >= oldest]
        results = sum(bucket.results for bucket in recent)
        failures = sum(bucket.failures for bucket in recent)
        return results >= MIN_RESULTS and failures * 100 >= results * FAILED_PERCENT
