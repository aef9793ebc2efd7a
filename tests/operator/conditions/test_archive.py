"""The conditions of an archive say who runs it, what holds it up, and what its last run came to."""

from typing import Any

import pytest

from ibrik_operator.archives import Archives
from ibrik_operator.conditions.archive import Scheduling, Starter, archive_verdicts
from ibrik_operator.conditions.condition import Verdict, Violation
from ibrik_operator.conditions.reasons import REASONS, Reason
from ibrik_operator.keys import Key

SPARK = Scheduling(Starter.SPARK)
OBSTACLE = Violation(Reason.NO_ARCHIVE_TARGET, "set spec.archive of the pool", is_stalled=True)
FAILED = Violation(Reason.ARCHIVE_FAILED, "run x failed")


def verdicts(
    how: Scheduling | None, seen: dict[str, Any] | None = None, before: Any = ()
) -> tuple[Verdict, Verdict]:
    scheduled, healthy = archive_verdicts("shop", how, seen, before)
    assert (scheduled.type, healthy.type) == ("ArchiveScheduled", "ArchiveHealthy")
    for one in (scheduled, healthy):
        assert one.reason in REASONS
        assert one.status == "True" or one.message
    return scheduled, healthy


@pytest.mark.parametrize(
    ("how", "status", "reason"),
    [
        (SPARK, "True", Reason.BY_SPARK),
        (Scheduling(Starter.CRON_JOB), "True", Reason.BY_CRON_JOB),
        (Scheduling(Starter.SPARK, is_suspended=True), "True", Reason.SUSPENDED),
        (Scheduling(Starter.UNDECIDED), "Unknown", Reason.SCHEDULE_PENDING),
        (Scheduling(obstacle=OBSTACLE), "False", Reason.NO_ARCHIVE_TARGET),
        (None, "Unknown", Reason.SCHEDULE_PENDING),
    ],
)
def test_who_starts_the_runs_is_said(how: Scheduling | None, status: str, reason: str) -> None:
    scheduled, _ = verdicts(how)
    assert (scheduled.status, scheduled.reason) == (status, reason)


def test_a_cron_job_says_why_it_is_one() -> None:
    absent, _ = verdicts(Scheduling(Starter.CRON_JOB, is_installed=False))
    elsewhere, _ = verdicts(Scheduling(Starter.CRON_JOB))
    assert "is not installed" in absent.message
    assert "does not serve namespace 'shop'" in elsewhere.message


def test_a_further_job_is_heard_when_the_archive_itself_has_no_trouble() -> None:
    report = Violation(Reason.JOB_FAILED, "quality run y failed")
    further = Scheduling(Starter.UNDECIDED, obstacle=OBSTACLE, run=report)
    assert SPARK.beside(further) == Scheduling(Starter.SPARK, obstacle=OBSTACLE, run=report)
    own = Scheduling(Starter.SPARK, run=FAILED)
    assert own.beside(further).run == FAILED
    _, healthy = verdicts(SPARK.beside(Scheduling(Starter.SPARK, run=report)), last(0))
    assert (healthy.status, healthy.reason) == ("False", Reason.JOB_FAILED)


def test_while_nobody_has_looked_the_former_word_stands() -> None:
    old = {"type": "ArchiveScheduled", "status": "True", "reason": "BySpark", "message": ""}
    scheduled, _ = verdicts(None, before=[old])
    assert (scheduled.status, scheduled.reason) == ("True", "BySpark")


def last(code: int) -> dict[str, Any]:
    return {"lastRun": {"code": code, "endedAt": "2026-11-28T17:00:00Z"}}


@pytest.mark.parametrize(
    ("how", "seen", "status", "reason"),
    [
        (SPARK, None, "Unknown", Reason.NOT_RUN_YET),
        (SPARK, last(0), "True", Reason.AS_WISHED),
        (SPARK, last(2), "True", Reason.AS_WISHED),
        (SPARK, last(3), "True", Reason.AS_WISHED),
        (None, last(0), "True", Reason.AS_WISHED),
        (SPARK, last(75), "False", Reason.ARCHIVE_FAILED),
        (Scheduling(Starter.SPARK, run=FAILED), last(0), "False", Reason.ARCHIVE_FAILED),
        (SPARK, last(0) | {"isOverHold": True}, "False", Reason.ARCHIVE_BEHIND),
    ],
)
def test_the_last_run_and_the_hold_tell_how_it_does(
    how: Scheduling | None, seen: dict[str, Any] | None, status: str, reason: str
) -> None:
    _, healthy = verdicts(how, seen)
    assert (healthy.status, healthy.reason) == (status, reason)


def test_only_topics_of_which_something_else_is_known_are_told() -> None:
    archives, pool = Archives(), Key("BrokerPool", "shop", "default")
    a, b = (Key("Topic", "shop", name) for name in "ab")
    assert archives.note(pool, {a: SPARK, b: SPARK}) == [a, b]
    assert archives.note(pool, {a: SPARK, b: Scheduling(Starter.CRON_JOB)}) == [b]
    assert archives.note(pool, {b: Scheduling(Starter.CRON_JOB)}) == [a]
    archives.forget(pool)
    assert archives.of(pool).scheduling == {}
