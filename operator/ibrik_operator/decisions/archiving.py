"""What is archived on which schedule, who starts it, and what a stuck schedule needs. Pure.

Spark's operator is known to leave schedules and runs as they are when something went wrong once.
What it says of them is looked at again and again, and made anew where it does not move.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum

from ibrik_api.kubernetes import ARCHIVE_NOW, ORDINAL_LABEL, claim_name, ordinal_of
from ibrik_api.resources.pool import PoolArchive
from ibrik_api.resources.topic import Archive, ReportJob
from ibrik_api.timestamps import parse_timestamp
from ibrik_operator.archives import Job, Slot
from ibrik_operator.conditions.archive import Starter
from ibrik_operator.conditions.condition import Violation
from ibrik_operator.conditions.reasons import Reason
from ibrik_operator.documents import digest, is_terminating
from ibrik_operator.keys import Document, Key
from ibrik_operator.naming import pool_of_topic, spec_of, topic_name
from ibrik_operator.observations import PoolObservation

OVERDUE_MS = 180_000
"""A run that is late by so much, while no other is under way, does not come any more."""
NOT_BEGUN = frozenset({"", "NEW", "PENDING_SUBMISSION", "SUBMITTED", "PENDING_RERUN"})
ENDED = frozenset({"COMPLETED", "FAILED", "SUBMISSION_FAILED"})
EXCLUSIVE = "ReadWriteOncePod"
OPTIMIZE_SCHEDULE = "@daily"
REPORT_SCHEDULES = {
    ReportJob.AUDIT: "0 1 * * *",
    ReportJob.QUALITY: "0 2 * * *",
    ReportJob.TRAFFIC: "0 3 * * *",
}
"""Not all at once, since each needs the memory of a pod."""


class Remedy(StrEnum):
    NONE = "None"
    REPLACE = "Replace"
    """Make the schedule anew, and leave its runs alone."""
    END_RUN = "EndRun"


def is_archived(topic: Document) -> bool:
    return bool((spec_of(topic).get("archive") or {}).get("enabled")) and not is_terminating(topic)


def known_ordinals(observation: PoolObservation) -> frozenset[int]:
    """Brokers that say which topics they have; of the others nothing is changed."""
    return frozenset(ordinal_of(one.pod) for one in observation.brokers if one.observed is not None)


def wished_slots(
    pool: Key, topics: Iterable[Document], observation: PoolObservation, *, is_suspended: bool
) -> list[Slot]:
    """One for each broker and schedule of the topics that it has."""
    served = {
        topic_name(topic): topic
        for topic in topics
        if is_archived(topic) and pool_of_topic(topic) == pool and _is_served(topic, observation)
    }
    slots = []
    for seen in observation.brokers:
        if seen.observed is None:
            continue
        grouped: dict[tuple[str, str], list[str]] = {}
        for name in sorted(seen.observed.broker.topics):
            if name in served:
                grouped.setdefault(_schedule(served[name]), []).append(name)
        for (schedule, time_zone), names in sorted(grouped.items()):
            slots.append(
                Slot(
                    ordinal_of(seen.pod),
                    schedule,
                    time_zone,
                    tuple(names) if len(grouped) > 1 else (),
                    _asked([served[name] for name in names]),
                    is_suspended,
                )
            )
    return slots


def optimize_slots(archive: PoolArchive, slots: Iterable[Slot]) -> list[Slot]:
    """Once a day for each volume of tables, or for all that lies behind a URL."""
    if not archive.executors:
        return []
    ordinals = sorted({slot.ordinal for slot in slots})
    whole = ordinals if archive.target.url is None else ordinals[:1]
    return [Slot(one, OPTIMIZE_SCHEDULE, "UTC", job=Job.OPTIMIZE) for one in whole]


def report_slots(
    topics: Sequence[Document], observation: PoolObservation, slots: Iterable[Slot]
) -> list[Slot]:
    """One for each broker of `slots`, which archive, and each further job that its topics name."""
    found = []
    for slot in {slot.ordinal: slot for slot in slots}.values():
        there = sorted(_topics_at(slot.ordinal, topics, observation), key=topic_name)
        for report, schedule in REPORT_SCHEDULES.items():
            job = Job(report)
            wishing = [one for one in there if report in _archive(one).jobs]
            names = tuple(topic_name(one) for one in wishing if job.reads_log or _has_table(one))
            if names:
                is_suspended = slot.is_suspended and job.reads_log
                found.append(
                    Slot(slot.ordinal, schedule, "UTC", names, is_suspended=is_suspended, job=job)
                )
    return found


def _has_table(topic: Document) -> bool:
    """Its first run made one, as the broker was told."""
    seen = (topic.get("status") or {}).get("archive") or {}
    return bool(seen.get("table"))


def topics_of(slot: Slot, topics: Sequence[Document], observation: PoolObservation) -> list[Key]:
    """The Topics whose status speaks of this slot."""
    there = _topics_at(slot.ordinal, topics, observation)
    if slot.job is Job.ARCHIVE:
        there = [one for one in there if _schedule(one) == (slot.schedule, slot.time_zone)]
    elif slot.job is not Job.OPTIMIZE:
        there = [one for one in there if topic_name(one) in slot.topics]
    return [Key.of(topic) for topic in there]


def _topics_at(
    ordinal: int, topics: Sequence[Document], observation: PoolObservation
) -> list[Document]:
    """Those of a broker that are archived."""
    names = {
        name
        for seen in observation.brokers
        if seen.observed is not None and ordinal_of(seen.pod) == ordinal
        for name in seen.observed.broker.topics
    }
    return [
        topic
        for topic in topics
        if is_archived(topic) and topic_name(topic) in names and _is_served(topic, observation)
    ]


def leftovers(
    found: Sequence[Document], wished: Iterable[str], known: frozenset[int]
) -> list[Document]:
    """Objects of slots that nobody wishes any more, of brokers that are known or went for good."""
    names = set(wished)
    return [
        one
        for one in found
        if one["metadata"]["name"] not in names
        and int((one["metadata"].get("labels") or {}).get(ORDINAL_LABEL, -1)) in known
    ]


def not_shareable(pool: Key, ordinal: int, claim: Document | None) -> Violation | None:
    """A volume that only one pod may mount cannot be read by a job."""
    if claim is None or EXCLUSIVE not in claim["spec"].get("accessModes", ()):
        return None
    return Violation(
        Reason.VOLUME_NOT_SHAREABLE,
        f"claim {claim_name(pool.name, ordinal)} has the access mode {EXCLUSIVE}, so no job can "
        "read it beside its broker. Create a pool with ReadWriteOnce claims and replay into it, or "
        "set spec.archive.enabled to false.",
        is_stalled=True,
    )


def starter(known: Document | None, *, is_installed: bool, is_unheard_long: bool) -> Starter:
    """`known` is the schedule of Spark's operator, which shows itself by its status."""
    if not is_installed:
        return Starter.CRON_JOB
    if known is not None and state_of(known):
        return Starter.SPARK
    return Starter.CRON_JOB if is_unheard_long else Starter.UNDECIDED


def is_unheard(known: Document | None) -> bool:
    """It could have been noticed, and was not."""
    return known is not None and not state_of(known) and not known["spec"].get("suspend")


def state_of(schedule: Document) -> str:
    return str((schedule.get("status") or {}).get("scheduleState") or "")


def remedy(schedule: Document, run: Document | None, now_ms: int, *, start_ms: int) -> Remedy:
    """`run` is its last one, if that is still there."""
    if run is not None and not is_terminating(run) and is_stuck(run, now_ms, start_ms):
        return Remedy.END_RUN
    is_under_way = run is not None and run_state(run) not in ENDED
    due = (schedule.get("status") or {}).get("nextRun")
    if schedule["spec"].get("suspend") or is_under_way or not due:
        return Remedy.NONE
    resumed = _time_ms(schedule, "creationTimestamp")
    is_late = now_ms - max(parse_timestamp(due), resumed) > OVERDUE_MS
    return Remedy.REPLACE if is_late else Remedy.NONE


def is_stuck(run: Document, now_ms: int, start_ms: int) -> bool:
    """It has not begun to work for so long that it never will: no image, no volume, no node."""
    is_old = now_ms - _time_ms(run, "creationTimestamp") > start_ms
    return run_state(run) in NOT_BEGUN and is_old


def run_state(run: Document) -> str:
    state = ((run.get("status") or {}).get("applicationState") or {}).get("state")
    return str(state or "")


def refused_schedule(schedule: Document) -> Violation | None:
    """What Spark's operator says of a line of cron that it does not take."""
    if state_of(schedule) != "FailedValidation":
        return None
    told = (schedule.get("status") or {}).get("reason") or "no reason given"
    return Violation(
        Reason.SCHEDULE_REFUSED,
        f"the Spark operator refuses schedule '{schedule['spec']['schedule']}' in time zone "
        f"'{schedule['spec'].get('timeZone')}': {told}. Correct spec.archive.schedule or timeZone.",
        is_stalled=True,
    )


def failed_run(job: Job, run: Document | None, namespace: str) -> Violation | None:
    """What the last run of Spark came to, when it did not end well."""
    if run is None or run_state(run) not in ENDED - {"COMPLETED"}:
        return None
    told = (run.get("status") or {})["applicationState"].get("errorMessage") or "no reason given"
    name = run["metadata"]["name"]
    return Violation(
        _reason(job),
        f"{job} run {name} failed: {told}. See: kubectl -n {namespace} logs {name}-driver",
    )


def failed_job(job: Job, jobs: Sequence[Document], namespace: str) -> Violation | None:
    """The same of the newest job that ended."""
    ended = [one for one in jobs if _is_job(one, "Complete") or _is_job(one, "Failed")]
    newest = max(ended, key=lambda one: _time_ms(one, "creationTimestamp"), default=None)
    if newest is None or not _is_job(newest, "Failed"):
        return None
    name = newest["metadata"]["name"]
    return Violation(
        _reason(job), f"{job} job {name} failed. See: kubectl -n {namespace} logs job/{name}"
    )


def _reason(job: Job) -> Reason:
    return Reason.ARCHIVE_FAILED if job is Job.ARCHIVE else Reason.JOB_FAILED


def _is_job(job: Document, type_: str) -> bool:
    conditions = (job.get("status") or {}).get("conditions") or []
    return any(one["type"] == type_ and one["status"] == "True" for one in conditions)


def _is_served(topic: Document, observation: PoolObservation) -> bool:
    """A younger Topic of the same name is not, and has no say."""
    seen = observation.served.get(Key.of(topic))
    return seen is not None and not seen.is_detached


def _archive(topic: Document) -> Archive:
    return Archive.model_validate(spec_of(topic)["archive"])


def _schedule(topic: Document) -> tuple[str, str]:
    archive = _archive(topic)
    return archive.schedule, archive.time_zone


def _asked(topics: Sequence[Document]) -> str:
    wishes = [
        [topic["metadata"]["name"], wish]
        for topic in topics
        if (wish := (topic["metadata"].get("annotations") or {}).get(ARCHIVE_NOW))
    ]
    return digest(wishes) if wishes else ""


def _time_ms(document: Document, field: str) -> int:
    text = document["metadata"].get(field)
    return parse_timestamp(text) if text else 0
