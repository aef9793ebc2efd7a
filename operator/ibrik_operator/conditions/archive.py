"""Conditions of a Topic that is archived: ArchiveScheduled and ArchiveHealthy. Pure.

They only inform: a topic whose archive fails still publishes and reads.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from ibrik_operator.conditions.condition import Verdict, Violation, verdict
from ibrik_operator.conditions.reasons import Reason

SCHEDULED, HEALTHY = "ArchiveScheduled", "ArchiveHealthy"
FINE_CODES = frozenset({0, 2, 3})
"""Done, nothing to do, another run was faster."""
NOT_INSTALLED = (
    "a CronJob starts the runs, since the Spark operator is not installed; install it to have them "
    "as ScheduledSparkApplications"
)
NOT_SERVED = (
    "a CronJob starts the runs, since the Spark operator does not serve namespace '{}'; add it to "
    "spark.jobNamespaces of its chart"
)


class Starter(StrEnum):
    """Who starts the runs of a schedule."""

    SPARK = "Spark"
    CRON_JOB = "CronJob"
    UNDECIDED = "Undecided"
    """Spark's operator may yet say something; what there is stays."""


@dataclass(frozen=True, slots=True)
class Scheduling:
    """How the schedule that a topic is on does."""

    starter: Starter = Starter.UNDECIDED
    is_installed: bool = True
    """Whether Spark's operator is there at all."""
    obstacle: Violation | None = None
    """Why there is no schedule."""
    is_suspended: bool = False
    run: Violation | None = None
    """What the last run failed of."""

    def beside(self, other: "Scheduling") -> "Scheduling":
        """This one, with the trouble of a further job, while it has none of its own."""
        return replace(self, obstacle=self.obstacle or other.obstacle, run=self.run or other.run)


def archive_verdicts(
    namespace: str,
    scheduling: Scheduling | None,
    seen: dict[str, Any] | None,
    before: Sequence[dict[str, Any]],
) -> list[Verdict]:
    """`scheduling` is None while nobody has looked; then what was said stays.

    `seen` is what the broker says of the archive.
    """
    if scheduling is None:
        known = {one["type"]: one for one in before}
        return [_again(SCHEDULED, known), _healthy(None, seen)]
    return [_scheduled(namespace, scheduling), _healthy(scheduling, seen)]


def _again(type_: str, known: dict[str, dict[str, Any]]) -> Verdict:
    old = known.get(type_)
    if old is None:
        sentence = "the brokers have not been asked yet which of them has the topic"
        return Verdict(type_, "Unknown", Reason.SCHEDULE_PENDING, sentence)
    return Verdict(type_, old["status"], old["reason"], old.get("message", ""))


def _scheduled(namespace: str, how: Scheduling) -> Verdict:
    if how.obstacle is not None:
        return verdict(SCHEDULED, how.obstacle)
    if how.is_suspended:
        sentence = "runs begin again when all brokers are replaced"
        return Verdict(SCHEDULED, "True", Reason.SUSPENDED, sentence)
    match how.starter:
        case Starter.SPARK:
            return Verdict(SCHEDULED, "True", Reason.BY_SPARK)
        case Starter.CRON_JOB:
            sentence = NOT_SERVED.format(namespace) if how.is_installed else NOT_INSTALLED
            return Verdict(SCHEDULED, "True", Reason.BY_CRON_JOB, sentence)
    waits = "the Spark operator has not taken the schedule yet; after a minute a CronJob runs it"
    return Verdict(SCHEDULED, "Unknown", Reason.SCHEDULE_PENDING, waits)


def _healthy(how: Scheduling | None, seen: dict[str, Any] | None) -> Verdict:
    status = seen or {}
    if status.get("isOverHold"):
        sentence = (
            f"{status.get('heldBytes', 0)} bytes are held back for the archive, more than "
            "spec.archive.holdMax allows: see why runs fail or take long"
        )
        return verdict(HEALTHY, Violation(Reason.ARCHIVE_BEHIND, sentence))
    if how is not None and how.run is not None:
        return verdict(HEALTHY, how.run)
    last = status.get("lastRun")
    if last is None:
        sentence = "wait for the schedule, or set the annotation ibrik.dev/archive-now"
        return Verdict(HEALTHY, "Unknown", Reason.NOT_RUN_YET, sentence)
    if last["code"] not in FINE_CODES:
        sentence = f"the run that ended at {last['endedAt']} failed with code {last['code']}"
        return verdict(HEALTHY, Violation(Reason.ARCHIVE_FAILED, sentence))
    return verdict(HEALTHY, None)
