"""One table of everything Ibrik refuses: code → status, title, whether a retry helps, what to do next.

The HTTP door turns a `Refusal` into a problem document (RFC 9457), the TCP door into `ERR`, the
command line into one line. The reference page is generated from `CODES`. Library errors are
translated into a `Refusal` once, at the boundary of the layer that knows both.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

PROBLEM_TYPE_BASE = "https://ibrik.dev/errors/"


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """What a code means: `cause` says why it happened, `advice` is the next step."""

    code: str
    status: int
    title: str
    cause: str
    advice: str
    retryable: bool = False
    retry_after_ms: int | None = None


CODES: Mapping[str, ErrorCode] = {
    row.code: row
    for row in (
        # --- fix the request ---------------------------------------------------------------
        ErrorCode(
            "invalid-request",
            400,
            "Invalid request",
            "A header, parameter or body does not have the documented shape.",
            "Correct the field that the detail names; the request changed nothing.",
        ),
        ErrorCode(
            "invalid-name",
            400,
            "Invalid name",
            "A name has other characters than [a-z0-9._-], a bad end, or over 253 characters.",
            "Use [a-z0-9._-], and begin and end with a letter or a digit.",
        ),
        ErrorCode(
            "unknown-topic",
            404,
            "Unknown topic",
            "There is no topic of this name.",
            "Create it with: ibrik topic create NAME",
        ),
        ErrorCode(
            "unknown-partition",
            404,
            "Unknown partition",
            "The topic has fewer partitions than the number asked for.",
            "Ask for a partition that GET /v1/topics/{topic}/partitions lists.",
        ),
        ErrorCode(
            "not-found",
            404,
            "Not found",
            "Nothing answers at this path.",
            "See the list of paths at /docs or /openapi.json.",
        ),
    )
}


class Refusal(Exception):
    """A request that is refused: the code says why, the facts help to mend it."""

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        errors: Sequence[Mapping[str, Any]] = (),
        retry_after_ms: int | None = None,
        **facts: Any,
    ) -> None:
        super().__init__(detail)
        row = CODES[code]
        self.code = code
        self.detail = detail
        self.status = row.status
        self.retryable = row.retryable
        self.errors = list(errors)
        self.retry_after_ms = row.retry_after_ms if retry_after_ms is None else retry_after_ms
        self.facts = facts

    def problem(self) -> dict[str, Any]:
        """The problem document: RFC 9457 members, then ours, then the facts of this one refusal."""
        document: dict[str, Any] = {
            "type": PROBLEM_TYPE_BASE + self.code,
            "title": CODES[self.code].title,
            "status": self.status,
            "detail": self.detail,
            "code": self.code,
            "retryable": self.retryable,
        }
        if self.errors:
            document["errors"] = self.errors
        if self.retry_after_ms is not None:
            document["retry_after_ms"] = self.retry_after_ms
        return document | self.facts
