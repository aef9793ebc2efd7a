"""What can go wrong, by what the caller should do next.

`Unavailable`: try again later. `InvalidRequest`: correct the request (`OffsetOutOfRange` says which
offsets there are). `Forbidden`: ask for access. `DamagedRange`, `MessagesLost`: messages are gone
that were there; decide where to go on. Each carries the problem document (RFC 9457) of the broker.
"""

from collections.abc import Mapping
from typing import Any

from ibrik_api.errors import CODES

FORBIDDEN = (401, 403)


class IbrikError(Exception):
    """Base of everything this client raises on purpose; the text is for people."""

    def __init__(self, detail: str, problem: Mapping[str, Any] | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.problem: Mapping[str, Any] = problem or {}

    @property
    def code(self) -> str:
        """The stable code of the refusal; empty when no broker answered."""
        return str(self.problem.get("code", ""))

    @property
    def status(self) -> int | None:
        status = self.problem.get("status")
        return status if isinstance(status, int) else None

    @property
    def advice(self) -> str:
        """What to do next, from the table of codes; empty for a code this version does not know."""
        row = CODES.get(self.code)
        return row.advice if row else ""


class Unavailable(IbrikError):
    """Nobody answered, or the broker said "later": the same request may succeed then."""

    def __init__(
        self,
        detail: str,
        problem: Mapping[str, Any] | None = None,
        *,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(detail, problem)
        self.retry_after_s = retry_after_s


class InvalidRequest(IbrikError):
    """The request has to change; `errors` names the fields or the indexes of a batch."""

    @property
    def errors(self) -> list[Mapping[str, Any]]:
        found = self.problem.get("errors", [])
        return list(found) if isinstance(found, list) else []


class OffsetOutOfRange(InvalidRequest):
    """The offset is below the log start (deleted) or above the end (not written yet)."""

    @property
    def earliest(self) -> int | None:
        return _number(self.problem, "earliest")

    @property
    def latest(self) -> int | None:
        """The next offset that will be written."""
        return _number(self.problem, "latest")


class LeaseExpired(InvalidRequest):
    """The lease passed its deadline or the cursor was moved: someone else has the message now."""


class Forbidden(IbrikError):
    """Another attempt will not help; somebody has to grant access."""


class DamagedRange(IbrikError):
    """The disk lost what it held: from `from_offset` up to, and without, `to_offset`."""

    @property
    def from_offset(self) -> int | None:
        return _number(self.problem, "from_offset")

    @property
    def to_offset(self) -> int | None:
        return _number(self.problem, "to_offset")


class ServerFailed(IbrikError):
    """The broker failed on this request in a way that it does not expect to pass."""


class MessagesLost(IbrikError):
    """A follower reached offsets that are no longer there; `gap` says which."""

    def __init__(self, detail: str, gap: Any) -> None:
        super().__init__(detail)
        self.gap = gap


BY_CODE: Mapping[str, type[IbrikError]] = {
    "offset-below-start": OffsetOutOfRange,
    "offset-above-end": OffsetOutOfRange,
    "corrupt-range": DamagedRange,
    "lease-expired": LeaseExpired,
}


def error_of(problem: Mapping[str, Any], *, retry_after_s: float | None = None) -> IbrikError:
    """The error for a problem document; `retry_after_s` is the header, if there was one."""
    row = CODES.get(str(problem.get("code", "")))
    if row is not None:
        # One message of a batch comes with code and detail alone.
        problem = {"status": row.status, "retryable": row.retryable, "title": row.title, **problem}
    code = problem.get("code", "")
    status = problem.get("status", 0)
    detail = str(problem.get("detail") or problem.get("title") or f"HTTP {status}")
    if code in BY_CODE:
        return BY_CODE[code](detail, problem)
    if problem.get("retryable"):
        wait_ms = problem.get("retry_after_ms")
        wait_s = wait_ms / 1000 if isinstance(wait_ms, int) else retry_after_s
        return Unavailable(detail, problem, retry_after_s=wait_s)
    if status in FORBIDDEN:
        return Forbidden(detail, problem)
    if 400 <= status < 500:
        return InvalidRequest(detail, problem)
    return ServerFailed(detail, problem)


def _number(problem: Mapping[str, Any], name: str) -> int | None:
    value = problem.get(name)
    return value if isinstance(value, int) else None
