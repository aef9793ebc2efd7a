"""With the kinds of the Spark operator: schedules appear, are healed, and a CronJob stands in.

Its program does not run here; the test plays what it would write. Collected where
SPARK_OPERATOR_CHART names the folder of its chart.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.archived import (
    CRON_JOB,
    PATIENCE,
    RUN,
    SCHEDULE,
    archived_topic,
    archiving_pool,
    none,
    only,
    spark_definitions,
)
from tests.support.cluster import Cluster, Document, condition
from tests.support.declared import TOPIC, annotated, is_so, pool
from tests.support.kubelet import Kubelet
from tests.support.shop import Shop, opened

LONG = "the-pool-of-all-orders-of-the-whole-shop"
LATE, FAR = "2020-01-01T00:00:00Z", "2090-01-01T00:00:00Z"


@pytest.fixture(scope="module")
def _definitions(cluster: Cluster) -> Iterator[None]:
    with spark_definitions(cluster):
        yield


@pytest.fixture
def hasty(
    cluster: Cluster, kubelet: Kubelet, namespace: str, tmp_path: Path, _definitions: None
) -> Iterator[Shop]:
    with opened(cluster, kubelet, namespace, tmp_path, **PATIENCE) as shop:
        yield shop


def archive(shop: Shop) -> Document:
    """The schedule of a topic in a pool that archives."""
    shop.apply(archiving_pool())
    shop.apply(archived_topic())
    return only(shop, SCHEDULE)


def say(shop: Shop, kind: str, name: str, **status: object) -> None:
    """As the Spark operator would."""
    change = {"status": status}
    shop.cluster.patch(kind, name, change, shop.namespace, subresource="status")


def test_a_schedule_that_is_noticed_has_the_work_to_itself(hasty: Shop) -> None:
    name = archive(hasty)["metadata"]["name"]
    told = hasty.wait(TOPIC, "orders", is_so("ArchiveScheduled", "True", "ByCronJob"))
    assert "does not serve namespace" in condition(told, "ArchiveScheduled")["message"]
    assert only(hasty, CRON_JOB)["metadata"]["name"] == name
    say(hasty, SCHEDULE, name, scheduleState="Scheduled", nextRun=FAR)
    hasty.wait(TOPIC, "orders", is_so("ArchiveScheduled", "True", "BySpark"))
    none(hasty, CRON_JOB)
    hasty.apply(archived_topic(enabled=False))
    none(hasty, SCHEDULE)


def test_a_refused_schedule_is_told_and_a_deleted_one_comes_again(hasty: Shop) -> None:
    stuck = archive(hasty)
    name, uid = stuck["metadata"]["name"], stuck["metadata"]["uid"]
    say(hasty, SCHEDULE, name, scheduleState="FailedValidation", reason="unknown time zone")
    told = hasty.wait(TOPIC, "orders", is_so("ArchiveScheduled", "False", "ScheduleRefused"))
    assert "unknown time zone" in condition(told, "ArchiveScheduled")["message"]
    # What is refused waits for a person: making it anew would be refused again.
    deleted = [one for one in hasty.operator.writes() if one.verb == "delete"]
    assert [one for one in deleted if one.resource == "scheduledsparkapplications"] == []
    hasty.delete(SCHEDULE, name)
    hasty.eventually(lambda: (hasty.find(SCHEDULE, name) or stuck)["metadata"]["uid"] != uid)


def test_a_run_that_never_begins_is_ended_and_told(hasty: Shop) -> None:
    schedule = archive(hasty)
    name = schedule["metadata"]["name"]
    run = {
        "apiVersion": "sparkoperator.k8s.io/v1beta2",
        "kind": "SparkApplication",
        "metadata": {"name": f"{name}-1", "namespace": hasty.namespace},
        "spec": schedule["spec"]["template"],
    }
    hasty.cluster.create(run)
    say(hasty, RUN, f"{name}-1", driverInfo={}, applicationState={"state": "RUNNING"})
    say(hasty, SCHEDULE, name, scheduleState="Scheduled", nextRun=LATE, lastRunName=f"{name}-1")
    hasty.wait(TOPIC, "orders", is_so("ArchiveScheduled", "True", "BySpark"))
    failed = {"applicationState": {"state": "FAILED", "errorMessage": "exit code 64"}}
    say(hasty, RUN, f"{name}-1", **failed)
    told = hasty.wait(TOPIC, "orders", is_so("ArchiveHealthy", "False", "ArchiveFailed"))
    assert "exit code 64" in condition(told, "ArchiveHealthy")["message"]
    say(hasty, RUN, f"{name}-1", applicationState={"state": "SUBMITTED"})
    hasty.gone(RUN, f"{name}-1")


def test_a_run_that_is_asked_for_is_an_application_of_its_own(hasty: Shop) -> None:
    name = archive(hasty)["metadata"]["name"]
    say(hasty, SCHEDULE, name, scheduleState="Scheduled", nextRun=FAR)
    hasty.wait(TOPIC, "orders", is_so("ArchiveScheduled", "True", "BySpark"))
    hasty.apply(annotated(archived_topic(), archive_now="1"))
    run = only(hasty, RUN)
    assert run["spec"] == hasty.get(SCHEDULE, name)["spec"]["template"]


def test_the_longest_name_of_a_pool_leaves_room_for_that_of_a_run(hasty: Shop) -> None:
    hasty.apply(pool(LONG, "", archive={"target": {"claim": {}}}))
    topic = archived_topic()
    hasty.apply(topic | {"spec": topic["spec"] | {"pool": {"name": LONG}}})
    schedule = only(hasty, SCHEDULE)
    assert len(LONG) == 40
    assert len(schedule["metadata"]["name"]) <= 36
