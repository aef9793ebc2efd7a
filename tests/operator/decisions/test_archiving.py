"""Topics become slots, and what Spark's operator leaves behind is noticed."""

from typing import Any

import pytest

from ibrik_api.kubernetes import ARCHIVE_NOW, archive_labels, pod_name
from ibrik_api.observed import ObservedResource
from ibrik_api.timestamps import parse_timestamp
from ibrik_operator.archives import Job, Slot
from ibrik_operator.conditions.archive import Starter
from ibrik_operator.conditions.reasons import Reason
from ibrik_operator.decisions.archiving import (
    Remedy,
    failed_job,
    failed_run,
    is_unheard,
    known_ordinals,
    leftovers,
    not_shareable,
    optimize_slots,
    refused_schedule,
    remedy,
    report_slots,
    starter,
    topics_of,
    wished_slots,
)
from ibrik_operator.desired.archive import archive_of, run_name, slot_name
from ibrik_operator.keys import Key
from ibrik_operator.observations import PoolObservation
from tests.support.pool_documents import broker, pool, silent

POOL = Key("BrokerPool", "shop", "default")
NOW = "2026-11-28T17:00:00Z"
NOW_MS = parse_timestamp(NOW)
MINUTE_MS = 60_000
START_MS = 10 * MINUTE_MS
Document = dict[str, Any]


def topic(name: str, asked: str | None = None, **archive: Any) -> Document:
    annotations = {} if asked is None else {ARCHIVE_NOW: asked}
    return {
        "kind": "Topic",
        "metadata": {"namespace": "shop", "name": name, "annotations": annotations},
        "spec": {"archive": {"enabled": True, **archive}},
    }


def seen(topics: list[Document], *owners: list[str]) -> PoolObservation:
    """Brokers that have these topics, and serve all of them."""
    served = {}
    for one in topics:
        key = Key.of(one)
        served[key] = ObservedResource(kind=key.kind, namespace=key.namespace, name=key.name)
    brokers = [broker(ordinal, topics=names) for ordinal, names in enumerate(owners)]
    return PoolObservation(brokers, served, 1)


def slots(topics: list[Document], *owners: list[str]) -> list[Slot]:
    return wished_slots(POOL, topics, seen(topics, *owners), is_suspended=False)


def test_a_broker_with_one_schedule_archives_whatever_wishes_it() -> None:
    found = slots([topic("a"), topic("b")], ["a", "b", "over-http"], [])
    assert found == [Slot(0, "0 * * * *", "UTC")]


def test_each_further_schedule_of_a_broker_names_its_topics() -> None:
    topics = [
        topic("a"),
        topic("b", schedule="@daily"),
        topic("c"),
        topic("d", timeZone="Asia/Tokyo"),
    ]
    assert slots(topics, ["a", "b", "d"], ["c"]) == [
        Slot(0, "0 * * * *", "Asia/Tokyo", ("d",)),
        Slot(0, "0 * * * *", "UTC", ("a",)),
        Slot(0, "@daily", "UTC", ("b",)),
        Slot(1, "0 * * * *", "UTC"),
    ]


def test_what_is_not_wished_not_served_or_going_has_no_slot() -> None:
    going = topic("going")
    going["metadata"]["deletionTimestamp"] = NOW
    elsewhere = topic("elsewhere")
    elsewhere["spec"]["pool"] = {"name": "big"}
    topics = [topic("off", enabled=False), going, elsewhere]
    assert slots(topics, ["off", "going", "elsewhere"]) == []
    rival = topic("rival")
    assert wished_slots(POOL, [rival], seen([], ["rival"]), is_suspended=False) == []


def test_another_wish_for_a_run_is_another_run_of_the_same_slot() -> None:
    one, other = (slots([topic("a", asked=wish)], ["a"])[0] for wish in ("1", "2"))
    assert slots([topic("a")], ["a"])[0].asked == ""
    assert slot_name(pool(), one) == slot_name(pool(), other)
    assert run_name(pool(), one) != run_name(pool(), other)


def test_a_slot_tells_whose_status_it_is() -> None:
    topics = [topic("a"), topic("b"), topic("c", schedule="@daily"), topic("off", enabled=False)]
    observation = seen(topics, ["a", "c", "off"], ["b"])
    assert topics_of(Slot(0, "0 * * * *", "UTC"), topics, observation) == [
        Key("Topic", "shop", "a")
    ]


@pytest.mark.parametrize("length", [1, 13, 14, 15, 40])
def test_the_name_of_a_run_fits_into_a_label(length: int) -> None:
    name = "a" * (length - 1) + "b"
    found = {slot_name(pool(name), Slot(n, "0 * * * *", "UTC")) for n in range(9)}
    assert len(found) == 9
    for one in found:
        assert len(one) <= 36
        assert len(f"{one}-{2**63}-driver"[:63]) <= 63
        assert len(one + "-01234567-driver") <= 63


def test_pools_and_schedules_that_look_alike_have_names_of_their_own() -> None:
    hourly = Slot(0, "0 * * * *", "UTC")
    names = {
        slot_name(pool(name), slot)
        for name in ("orders-of-the-shop", "orders-of-the-shed")
        for slot in (hourly, Slot(0, "0 * * * *", "Asia/Tokyo"), Slot(0, "@daily", "UTC"))
    }
    assert len(names) == 6
    assert slot_name(pool("orders-of-the-"), hourly).startswith("ibrik-orders-of-the-0-")


def test_of_a_silent_broker_nothing_is_taken_away() -> None:
    found = [made("old-0", 0), made("old-1", 1), made("new-0", 0)]
    known = known_ordinals(PoolObservation([broker(0), silent(1)], {}, 1))
    assert [one["metadata"]["name"] for one in leftovers(found, ["new-0"], known)] == ["old-0"]


def made(name: str, ordinal: int) -> Document:
    return {"metadata": {"name": name, "labels": archive_labels("default", ordinal)}}


def test_a_claim_of_one_pod_alone_is_refused_with_its_name() -> None:
    claim = {"spec": {"accessModes": ["ReadWriteOncePod"]}}
    violation = not_shareable(POOL, 0, claim)
    assert violation is not None
    assert violation.reason == Reason.VOLUME_NOT_SHAREABLE
    assert f"data-{pod_name('default', 0)}" in violation.message
    assert not_shareable(POOL, 0, {"spec": {"accessModes": ["ReadWriteOnce"]}}) is None
    assert not_shareable(POOL, 0, None) is None


def schedule(
    state: str = "", *, suspend: bool = False, made_at: str = NOW, **status: str
) -> Document:
    return {
        "metadata": {"name": "s", "creationTimestamp": made_at},
        "spec": {"schedule": "0 * * * *", "timeZone": "Mars/Here", "suspend": suspend},
        "status": {"scheduleState": state, **status},
    }


def run(state: str, minutes_ago: int, message: str = "") -> Document:
    created = f"2026-11-28T16:{60 - minutes_ago:02}:00Z" if minutes_ago else NOW
    application = {"state": state, "errorMessage": message}
    return {
        "metadata": {"name": "s-1", "creationTimestamp": created},
        "status": {"applicationState": application},
    }


@pytest.mark.parametrize(
    ("known", "is_installed", "is_long", "who"),
    [
        (None, False, False, Starter.CRON_JOB),
        (schedule("Scheduled"), False, False, Starter.CRON_JOB),
        (None, True, False, Starter.UNDECIDED),
        (schedule(), True, False, Starter.UNDECIDED),
        (schedule(), True, True, Starter.CRON_JOB),
        (schedule("Scheduled"), True, True, Starter.SPARK),
        (schedule("FailedValidation"), True, False, Starter.SPARK),
    ],
)
def test_spark_starts_runs_where_it_has_shown_itself(
    known: Document | None, is_installed: bool, is_long: bool, who: Starter
) -> None:
    assert starter(known, is_installed=is_installed, is_unheard_long=is_long) is who


def test_a_suspended_schedule_is_not_expected_to_be_noticed() -> None:
    assert is_unheard(schedule())
    assert not is_unheard(schedule(suspend=True))
    assert not is_unheard(schedule("Scheduled"))
    assert not is_unheard(None)


LATE, SOON = "2026-11-28T16:50:00Z", "2026-11-28T16:58:00Z"
OLD = "2026-11-28T10:00:00Z"


@pytest.mark.parametrize(
    ("known", "last", "needed"),
    [
        (schedule("Scheduled", nextRun=SOON, made_at=OLD), None, Remedy.NONE),
        (schedule("Scheduled", nextRun=LATE, made_at=OLD), None, Remedy.REPLACE),
        (schedule("Scheduled", nextRun=LATE, made_at=NOW), None, Remedy.NONE),
        (schedule("Scheduled", nextRun=LATE, made_at=OLD, suspend=True), None, Remedy.NONE),
        (schedule("Scheduled", nextRun=LATE, made_at=OLD), run("RUNNING", 50), Remedy.NONE),
        (schedule("Scheduled", nextRun=LATE, made_at=OLD), run("FAILED", 50), Remedy.REPLACE),
        (schedule("Scheduled", nextRun=SOON, made_at=OLD), run("SUBMITTED", 5), Remedy.NONE),
        (schedule("Scheduled", nextRun=SOON, made_at=OLD), run("SUBMITTED", 11), Remedy.END_RUN),
        (schedule("Scheduled", nextRun=SOON, made_at=OLD), run("", 11), Remedy.END_RUN),
        (schedule("FailedValidation"), None, Remedy.NONE),
    ],
)
def test_a_schedule_that_stands_still_is_helped(
    known: Document, last: Document | None, needed: Remedy
) -> None:
    assert remedy(known, last, NOW_MS, start_ms=START_MS) is needed


def test_a_run_that_is_going_is_not_deleted_twice() -> None:
    last = run("SUBMITTED", 11)
    last["metadata"]["deletionTimestamp"] = NOW
    assert remedy(schedule("Scheduled"), last, NOW_MS, start_ms=START_MS) is Remedy.NONE


def test_a_refused_schedule_is_told_in_the_words_of_sparks_operator() -> None:
    violation = refused_schedule(schedule("FailedValidation", reason="unknown time zone Mars/Here"))
    assert violation is not None
    assert violation.is_stalled
    assert "unknown time zone Mars/Here" in violation.message
    assert refused_schedule(schedule("Scheduled")) is None


def test_a_failed_run_says_where_to_look() -> None:
    violation = failed_run(Job.ARCHIVE, run("FAILED", 5, "exit code 64"), "shop")
    assert violation is not None
    assert violation.reason == Reason.ARCHIVE_FAILED
    assert "exit code 64" in violation.message
    assert violation.message.endswith("kubectl -n shop logs s-1-driver")
    assert failed_run(Job.ARCHIVE, run("COMPLETED", 5), "shop") is None
    assert failed_run(Job.ARCHIVE, run("RUNNING", 5), "shop") is None
    assert failed_run(Job.ARCHIVE, None, "shop") is None


def job(name: str, at: str, ended: str | None) -> Document:
    conditions = [] if ended is None else [{"type": ended, "status": "True"}]
    return {
        "metadata": {"name": name, "creationTimestamp": at},
        "status": {"conditions": conditions},
    }


def test_the_newest_job_that_ended_counts() -> None:
    old, new = job("old", LATE, "Failed"), job("new", SOON, "Complete")
    going = job("going", NOW, None)
    assert failed_job(Job.ARCHIVE, [], "shop") is None
    assert failed_job(Job.ARCHIVE, [new, old, going], "shop") is None
    violation = failed_job(Job.ARCHIVE, [old, going], "shop")
    assert violation is not None
    assert "logs job/old" in violation.message


def test_what_a_further_job_failed_of_is_no_failure_of_the_archive() -> None:
    by_spark = failed_run(Job.QUALITY, run("FAILED", 5, "exit code 64"), "shop")
    by_cron = failed_job(Job.OPTIMIZE, [job("old", LATE, "Failed")], "shop")
    assert by_spark is not None
    assert by_cron is not None
    assert by_spark.reason == by_cron.reason == Reason.JOB_FAILED
    assert by_spark.message.startswith("quality run s-1 failed")
    assert by_cron.message.startswith("optimize job old failed")


@pytest.mark.parametrize(
    ("target", "executors", "ordinals"),
    [
        ({"claim": {}}, 2, [0, 3]),
        ({"url": "s3://lake/orders"}, 2, [0]),
        ({"claim": {}}, 0, []),
    ],
)
def test_tables_are_optimized_once_for_each_place_where_they_lie(
    target: Document, executors: int, ordinals: list[int]
) -> None:
    wish = {"target": target, "executors": executors, "serviceAccountName": "spark"}
    found = optimize_slots(
        archive_of(pool(archive=wish)), [Slot(3, "@hourly", "UTC"), Slot(0, "@hourly", "UTC")]
    )
    assert [slot.ordinal for slot in found] == ordinals
    assert all(slot.job is Job.OPTIMIZE for slot in found)
    for slot in found:
        same = Slot(slot.ordinal, slot.schedule, slot.time_zone)
        assert slot_name(pool(), slot) != slot_name(pool(), same)


def tabled(topic: Document) -> Document:
    """One whose first run has made a table."""
    return topic | {"status": {"archive": {"table": {"id": "t", "url": "lake", "version": 1}}}}


def test_further_jobs_run_once_a_day_for_the_topics_that_name_them() -> None:
    topics = [
        tabled(topic("a", jobs=["traffic", "quality"])),
        topic("young", jobs=["traffic"]),
        topic("b", jobs=["quality", "quality"], schedule="@daily"),
        topic("c"),
        topic("off", enabled=False, jobs=["audit"]),
        topic("far", jobs=["audit"]),
    ]
    observation = seen(topics, ["a", "b", "c", "off", "young"], ["far"])
    archiving = wished_slots(POOL, topics, observation, is_suspended=True)
    found = report_slots(topics, observation, archiving)
    assert [(s.ordinal, s.job, s.topics, s.is_suspended) for s in found] == [
        (0, Job.QUALITY, ("a", "b"), True),
        (0, Job.TRAFFIC, ("a",), False),
        (1, Job.AUDIT, ("far",), True),
    ]
    assert len({(slot.schedule, slot.job) for slot in found}) == 3
    assert topics_of(found[0], topics, observation) == [
        Key("Topic", "shop", "a"),
        Key("Topic", "shop", "b"),
    ]


def test_every_topic_of_a_broker_is_told_of_its_merges() -> None:
    topics = [topic("a"), topic("b", schedule="@hourly"), topic("c")]
    observation = seen(topics, ["a", "b"], ["c"])
    slot = Slot(0, "@daily", "UTC", job=Job.OPTIMIZE)
    found = topics_of(slot, topics, observation)
    assert [key.name for key in found] == ["a", "b"]
