"""Topics are archived without the Spark operator: a CronJob for each broker and schedule."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.archived import (
    CRON_JOB,
    JOB,
    PATIENCE,
    archived_topic,
    archiving_pool,
    none,
    only,
)
from tests.support.cluster import Cluster, Document, condition
from tests.support.declared import CLAIM, SECRET, TOPIC, annotated, is_so, pool
from tests.support.kubelet import Kubelet
from tests.support.shop import Shop, opened

LAKE, DATA = "lake-ibrik-default-0", "data-ibrik-default-0"


@pytest.fixture
def hasty(cluster: Cluster, kubelet: Kubelet, namespace: str, tmp_path: Path) -> Iterator[Shop]:
    with opened(cluster, kubelet, namespace, tmp_path, **PATIENCE) as shop:
        yield shop


def arguments(job: Document) -> list[str]:
    (container,) = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    return [str(one) for one in container["args"]]


def test_a_topic_that_wishes_it_is_archived_until_it_wishes_it_no_more(hasty: Shop) -> None:
    hasty.apply(archiving_pool())
    hasty.apply(archived_topic())
    told = hasty.wait(TOPIC, "orders", is_so("ArchiveScheduled", "True", "ByCronJob"))
    assert "is not installed" in condition(told, "ArchiveScheduled")["message"]
    assert condition(told, "ArchiveHealthy")["reason"] == "NotRunYet"
    assert condition(told, "Ready")["status"] == "True"
    job = only(hasty, CRON_JOB)
    assert job["spec"]["schedule"] == "0 * * * *"
    assert "--topic" not in arguments(job)
    assert set(hasty.get(SECRET, "ibrik-default-admin")["data"]) == {"current", "archive"}
    assert "ownerReferences" not in hasty.get(CLAIM, LAKE)["metadata"]

    hasty.apply(archived_topic(schedule="@every 30m"))
    hasty.gone(CRON_JOB, job["metadata"]["name"])
    assert only(hasty, CRON_JOB)["spec"]["schedule"] == "@every 30m"

    hasty.apply(archived_topic(enabled=False))
    none(hasty, CRON_JOB)
    told = hasty.wait(TOPIC, "orders", lambda t: not condition(t, "ArchiveScheduled"))
    assert not condition(told, "ArchiveHealthy")
    assert hasty.find(CLAIM, LAKE) is not None


def test_each_schedule_of_a_broker_names_its_topics(hasty: Shop) -> None:
    hasty.apply(archiving_pool())
    hasty.apply(archived_topic("orders"))
    hasty.apply(archived_topic("clicks", schedule="@daily"))
    hasty.eventually(lambda: len(hasty.cluster.objects(CRON_JOB, hasty.namespace)) == 2)
    for job in hasty.cluster.objects(CRON_JOB, hasty.namespace):
        name = "clicks" if job["spec"]["schedule"] == "@daily" else "orders"
        hasty.wait(
            CRON_JOB,
            job["metadata"]["name"],
            lambda j, name=name: arguments(j)[-2:] == ["--topic", name],  # type: ignore[misc]
        )


def test_further_jobs_that_a_topic_names_run_beside_its_archive(hasty: Shop) -> None:
    hasty.apply(archiving_pool())
    hasty.apply(archived_topic(jobs=["quality", "traffic", "audit"]))
    hasty.eventually(lambda: len(hasty.cluster.objects(CRON_JOB, hasty.namespace)) == 3)
    found = {arguments(job)[0]: job for job in hasty.cluster.objects(CRON_JOB, hasty.namespace)}
    assert set(found) == {"archive", "audit", "quality"}, "there is no table to count yet"
    assert len({job["spec"]["schedule"] for job in found.values()}) == 3
    assert arguments(found["quality"])[-2:] == ["--topic", "orders"]
    hasty.apply(archived_topic(jobs=["quality"]))
    hasty.eventually(lambda: len(hasty.cluster.objects(CRON_JOB, hasty.namespace)) == 2)


def test_a_run_that_is_asked_for_comes_once(hasty: Shop) -> None:
    hasty.apply(archiving_pool())
    hasty.apply(archived_topic())
    only(hasty, CRON_JOB)
    assert hasty.cluster.objects(JOB, hasty.namespace) == []
    hasty.apply(annotated(archived_topic(), archive_now="today"))
    first = only(hasty, JOB)
    hasty.wait(
        CRON_JOB,
        only(hasty, CRON_JOB)["metadata"]["name"],
        lambda j: "ibrik.dev/archive-now" in j["metadata"].get("annotations", {}),
    )
    hasty.cluster.delete(JOB, first["metadata"]["name"], hasty.namespace)
    hasty.apply(annotated(archived_topic(schedule="0 * * * *"), archive_now="tomorrow"))
    second = only(hasty, JOB)
    assert second["metadata"]["name"] != first["metadata"]["name"]


def test_a_pool_without_a_target_says_where_to_put_one(hasty: Shop) -> None:
    hasty.apply(pool("default", ""))
    hasty.apply(archived_topic())
    told = hasty.wait(TOPIC, "orders", is_so("ArchiveScheduled", "False", "NoArchiveTarget"))
    assert "spec.archive.target" in condition(told, "ArchiveScheduled")["message"]
    hasty.ready(TOPIC, "orders")
    hasty.apply(archiving_pool())
    hasty.wait(TOPIC, "orders", is_so("ArchiveScheduled", "True", "ByCronJob"))


def test_a_secret_that_opens_the_target_has_to_be_there(hasty: Shop) -> None:
    target = {"url": "s3://lake/orders", "secretRef": {"name": "lake"}}
    hasty.apply(pool("default", "", archive={"target": target}))
    hasty.apply(archived_topic())
    told = hasty.wait(TOPIC, "orders", is_so("ArchiveScheduled", "False", "SecretMissing"))
    assert "'lake'" in condition(told, "ArchiveScheduled")["message"]
    assert hasty.cluster.objects(CRON_JOB, hasty.namespace) == []
    hasty.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "lake"}})
    hasty.wait(TOPIC, "orders", is_so("ArchiveScheduled", "True", "ByCronJob"))


def test_a_volume_for_one_pod_alone_is_refused(hasty: Shop) -> None:
    spec = {
        "accessModes": ["ReadWriteOncePod"],
        "resources": {"requests": {"storage": "10Gi"}},
    }
    head = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": DATA}}
    hasty.apply(head | {"spec": spec})
    hasty.apply(archiving_pool())
    hasty.apply(archived_topic())
    told = hasty.wait(TOPIC, "orders", is_so("ArchiveScheduled", "False", "VolumeNotShareable"))
    assert DATA in condition(told, "ArchiveScheduled")["message"]
    assert hasty.cluster.objects(CRON_JOB, hasty.namespace) == []


def test_a_schedule_that_somebody_edits_or_deletes_is_put_back(hasty: Shop) -> None:
    hasty.apply(archiving_pool())
    hasty.apply(archived_topic())
    name = only(hasty, CRON_JOB)["metadata"]["name"]
    hasty.patch(CRON_JOB, name, {"spec": {"concurrencyPolicy": "Allow"}})
    hasty.wait(CRON_JOB, name, lambda j: j["spec"]["concurrencyPolicy"] == "Forbid")
    hasty.delete(CRON_JOB, name)
    hasty.eventually(lambda: hasty.find(CRON_JOB, name) is not None)
