"""What a job came to: one document for programs, a readable table, the last words of a pod."""

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .errors import ExitCode, JobError

TERMINATION_BYTES = 4096  # what Kubernetes keeps
GOOD_IN_PODS = (ExitCode.DONE, ExitCode.NOTHING_TO_DO, ExitCode.SUPERSEDED)
_WORDS = {
    ExitCode.DONE: "done",
    ExitCode.NOTHING_TO_DO: "nothing to do",
    ExitCode.SUPERSEDED: "superseded by another run",
    ExitCode.CONFIGURATION: "somebody has to look",
    ExitCode.RETRY: "failed; the next run tries again",
}


@dataclass(frozen=True, slots=True)
class Part:
    """What became of one topic."""

    topic: str
    code: ExitCode
    rows: int = 0
    detail: str = ""
    facts: dict[str, Any] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        document = {"topic": self.topic, "code": int(self.code), "rows": self.rows, **self.facts}
        if self.detail:
            document["detail"] = self.detail
        return document


@dataclass(frozen=True, slots=True)
class Report:
    """What became of a run."""

    job: str
    code: ExitCode
    started_at: str
    ended_at: str
    detail: str = ""
    parts: Sequence[Part] = ()

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)

    def document(self) -> dict[str, Any]:
        return self._head() | {"topics": [part.document() for part in self.parts]}

    def last_words(self) -> str:
        """At most what Kubernetes keeps: the topics that somebody has to look at come first."""
        head = self._head() | {"topics": [], "topicsLeftOut": len(self.parts)}
        text = json.dumps(head)
        topics: list[dict[str, Any]] = []
        for part in sorted(self.parts, key=lambda part: part.code, reverse=True):
            topics.append({**part.document(), "partitions": None, "gaps": None})
            left_out = len(self.parts) - len(topics)
            longer = json.dumps(head | {"topics": topics, "topicsLeftOut": left_out})
            if len(longer.encode()) > TERMINATION_BYTES:
                break
            text = longer
        return text

    def table(self) -> str:
        """For people: a line for each topic, and what is wrong in full sentences."""
        lines = [f"{part.topic}  {part.rows:,} rows  {_WORDS[part.code]}" for part in self.parts]
        if not self.parts:
            lines.append(f"{self.job}: {_WORDS[self.code]}")
        return "".join(f"{line}\n" for line in lines + self.sentences())

    def sentences(self) -> list[str]:
        """What is wrong."""
        found = [f"{part.topic}: {part.detail}" for part in self.parts if part.detail]
        return [*found, self.detail] if self.detail else found

    def _head(self) -> dict[str, Any]:
        head = {
            "job": self.job,
            "code": int(self.code),
            "startedAt": self.started_at,
            "endedAt": self.ended_at,
            "rows": self.rows,
        }
        return head | ({"detail": self.detail[:1024]} if self.detail else {})


def carried_out(kind: type[Report], job: str, find: Callable[[str], Iterable[Part]]) -> Report:
    """What `find`, given when it started, makes of each topic. What was foreseen is not raised."""
    started = timestamp(time.time())
    parts: list[Part] = []
    detail = ""
    try:
        parts += find(started)
        code = ExitCode.worst([part.code for part in parts])
    except JobError as error:
        code, detail = error.exit_code, str(error)
    return kind(job, code, started, timestamp(time.time()), detail, parts)


def exit_code(report: Report, termination_log: Path | None) -> int:
    """How the process ends. In a pod only what somebody has to look at is a failure."""
    if termination_log is None:
        return int(report.code)
    termination_log.write_text(report.last_words())
    return 0 if report.code in GOOD_IN_PODS else int(report.code)


def timestamp(time_s: float) -> str:
    """RFC 3339 in milliseconds."""
    text = datetime.fromtimestamp(time_s, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")
