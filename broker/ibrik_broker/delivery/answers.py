"""What an attempt ended with, and what follows from it.

Senders make an `Answer`, flows ask `judge`. Pure. When the next attempt is due belongs to `retry`,
whether the channel rests to `breaker`.
"""

from datetime import UTC
from email.utils import parsedate_to_datetime
from enum import Enum, auto
from typing import NamedTuple

from ibrik_api.durations import HOUR_MS

ERRORS = frozenset(
    {
        "broken-answer",  # the answer is not what the protocol says
        "connect-failed",  # refused, reset or unreachable
        "crashed",  # the broker ended while the message was on its way
        "credential-missing",  # a secret that the channel names is not there
        "deadline-passed",  # a consumer did not acknowledge in time
        "dns-failed",  # the name has no address
        "egress-denied",  # the address may not be delivered to
        "nacked",  # a consumer gave the message back
        "redirect",  # 3xx, never followed
        "refused",  # a TCP program answered ERR
        "status",  # an HTTP status that is no success
        "timeout",  # no whole answer within the time of one attempt
        "tls-failed",  # the certificate or the handshake
        "unknown-topic",  # the topic to deliver to is not there
    }
)
CONNECT_ERRORS = frozenset({"connect-failed", "dns-failed", "tls-failed"})
"""Nothing was said to the endpoint: it is not there at all."""

MAX_DETAIL_CHARACTERS = 1_024
MAX_BODY_BYTES = 4_096
MAX_RETRY_AFTER_MS = HOUR_MS
MAX_RETRY_AFTER_CHARACTERS = 64

_DEAD_STATUSES = frozenset({400, 405, 406, 411, 413, 414, 415, 422, 431, 501})
"""The endpoint will say the same of the same bytes for ever."""


class Answer(NamedTuple):
    """How one attempt ended. Without `error` the message was taken."""

    status: int | None
    """Of HTTP; None when there was no answer, or another protocol."""
    error: str | None
    """One of ERRORS."""
    detail: str
    """A sentence for people, without secrets."""
    retry_after_ms: int | None
    """How long the endpoint asks not to be called."""
    duration_ms: int
    body: bytes = b""
    """The beginning of the answer, kept for people."""

    @property
    def is_connect_error(self) -> bool:
        return self.error in CONNECT_ERRORS


class Verdict(Enum):
    DELIVERED = auto()
    RETRY = auto()
    """Another attempt, as the policy says."""
    DEAD = auto()
    """No attempt would help: to the dead letters at once."""
    GONE = auto()
    """The endpoint is gone for good (410): the channel stops and the backlog stays."""


def answered(
    status: int, *, duration_ms: int, retry_after_ms: int | None = None, body: bytes = b""
) -> Answer:
    """An HTTP answer that arrived whole."""
    error, detail = None, ""
    if 300 <= status <= 399:
        error, detail = "redirect", f"answered {status}; redirects are not followed"
    elif not is_success(status):
        error, detail = "status", f"answered {status}"
    return Answer(status, error, detail, retry_after_ms, duration_ms, body[:MAX_BODY_BYTES])


def failed(error: str, detail: str, *, duration_ms: int, status: int | None = None) -> Answer:
    """Anything but an HTTP answer that arrived whole; `detail` is shortened."""
    assert error in ERRORS, error
    return Answer(status, error, detail[:MAX_DETAIL_CHARACTERS], None, duration_ms)


def is_success(status: int) -> bool:
    return 200 <= status <= 299


def judge(answer: Answer) -> Verdict:
    """What becomes of the message. Everything that may get better by itself is tried again."""
    if answer.error is None:
        return Verdict.DELIVERED
    if answer.error != "status" or answer.status is None:
        return Verdict.RETRY
    if answer.status == 410:
        return Verdict.GONE
    return Verdict.DEAD if answer.status in _DEAD_STATUSES else Verdict.RETRY


def parse_retry_after(text: str | None, now_ms: int) -> int | None:
    """Milliseconds to wait, from 0 to an hour; None when it is neither seconds nor an HTTP date.

    A date that has passed means: now.
    """
    if text is None or len(text) > MAX_RETRY_AFTER_CHARACTERS or not text.isascii():
        return None
    text = text.strip()
    if text.isdigit():
        return min(int(text) * 1_000, MAX_RETRY_AFTER_MS)
    try:
        moment = parsedate_to_datetime(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        wait_ms = round(moment.timestamp() * 1_000) - now_ms
    except (ValueError, TypeError, IndexError, OverflowError):
        return None  # whatever the parser trips over, it is no date
    return min(max(wait_ms, 0), MAX_RETRY_AFTER_MS)
