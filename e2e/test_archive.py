"""Flights into tables by a real Spark operator, and by CronJobs where it does not serve.

The operator's clocks run faster here than they come: what it would do after minutes it does soon.
"""

import json
import os
from collections.abc import Iterator

import pytest

from e2e.support.cluster import OPERATOR, SYSTEM, Cluster, Document, condition, until
from e2e.support.lake import RUN_S, Lake, install_spark_operator, some_flights
from e2e.support.pods import start_client
from e2e.support.resources import pool, topic

pytestmark = pytest.mark.archive
COUNT = 4_000
KEPT_BYTES = 65_536
CLOCKS = ("IBRIK_OPERATOR_ARCHIVE__UNHEARD_MS=20000", "IBRIK_OPERATOR_ARCHIVE__START_MS=180000")
TARGET = {"target": {"claim": {"size": "1Gi"}}}
EXECUTORS = {"executors": 2, "serviceAccountName": "spark-operator-spark"}
SCHEDULES, RUNS = (
    "scheduledsparkapplications.sparkoperator.k8s.io",
    "sparkapplications.sparkoperator.k8s.io",
)


@pytest.fixture(scope="module")
def served(cluster: Cluster) -> Iterator[str]:
    """The namespace that the Spark operator serves."""
    cluster.load(f"ibrik/spark:{cluster.tag}")
    name = cluster.new_namespace(f"lake-{os.getpid()}")
    install_spark_operator(cluster, name)
    cluster.install("--set", "operator.resyncMs=5000")
    cluster.kubectl("set", "env", OPERATOR, *CLOCKS, "--namespace", SYSTEM)
    cluster.kubectl("rollout", "status", OPERATOR, "--namespace", SYSTEM)
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")
    cluster.install("--reset-values")


def archived(cluster: Cluster, namespace: str) -> Lake:
    """Flights that retention would delete at once, if nobody archived them."""
    wish = topic(
        "flights",
        partitions=2,
        partitioner="roundRobin",
        retention={"bytes": str(KEPT_BYTES)},
        segment={"bytes": str(KEPT_BYTES)},
        archive={"enabled": True, "schedule": "@every 1m", "jobs": ["traffic"]},
    )
    cluster.apply(pool(archive=TARGET), wish, namespace=namespace)
    cluster.wait_condition("topics.ibrik.dev", "flights", namespace, "Ready=True")
    lake = Lake(cluster, start_client(cluster, namespace), {})
    lake.publish(some_flights(COUNT))
    assert set(lake.earliest().values()) == {0}
    return lake


@pytest.fixture(scope="module")
def plain(cluster: Cluster, served: str) -> Iterator[Lake]:
    """Where the Spark operator is not."""
    name = cluster.new_namespace(f"plain-{os.getpid()}")
    yield archived(cluster, name)
    cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="module")
def lake(cluster: Cluster, served: str) -> Lake:
    return archived(cluster, served)


def test_every_flight_is_in_the_table_and_only_then_is_it_deleted(lake: Lake, plain: Lake) -> None:
    status = lake.wait_archived()
    assert status["completeThrough"]
    assert status["lastRun"]["code"] in {0, 2}
    assert condition(lake.topic(), "ArchiveScheduled")["reason"] == "BySpark"
    until("retention has deleted", lambda: all(lake.earliest().values()))
    for partition, earliest in lake.earliest().items():
        assert earliest <= status["archivedUpTo"][partition]
    assert lake.table() == lake.expected()


def test_a_cron_job_archives_where_the_spark_operator_does_not_serve(plain: Lake) -> None:
    plain.wait_archived()
    said = condition(plain.topic(), "ArchiveScheduled")
    assert said["reason"] == "ByCronJob"
    assert f"does not serve namespace '{plain.namespace}'" in said["message"]
    assert plain.table() == plain.expected()


def newest_run(lake: Lake) -> Document | None:
    runs = lake.cluster.objects(RUNS, lake.namespace)
    return max(runs, key=lambda run: run["metadata"]["creationTimestamp"], default=None)


def test_a_run_that_never_begins_is_deleted_so_that_the_next_one_can(lake: Lake) -> None:
    """The Spark operator alone would wait for it for ever."""
    missing = "ibrik/spark:never-built"
    lake.cluster.apply(pool(archive=TARGET | {"image": missing}), namespace=lake.namespace)

    def stuck() -> Document | None:
        run = newest_run(lake)
        return run if run is not None and run["spec"]["image"] == missing else None

    name = until("a run with an image that is not there", stuck, RUN_S)["metadata"]["name"]
    lake.cluster.apply(pool(archive=TARGET), namespace=lake.namespace)
    lake.publish(some_flights(COUNT + 50)[COUNT:])
    lake.cluster.wait_gone(RUNS, name, lake.namespace, timeout_s=RUN_S)
    lake.wait_archived()
    assert lake.table() == lake.expected()


def test_two_executors_merge_the_small_files_of_a_table(lake: Lake) -> None:
    lake.wait_archived()
    lake.publish(some_flights(COUNT + 200)[COUNT + 100 :])
    lake.wait_archived()
    lake.cluster.apply(pool(archive=TARGET | EXECUTORS), namespace=lake.namespace)
    merged = by_two_executors(lake, "optimize")
    assert merged["filesAfter"] < merged["filesBefore"]
    assert lake.table() == lake.expected()


def test_two_executors_count_the_rows_of_a_table(lake: Lake) -> None:
    lake.wait_archived()
    lake.cluster.apply(pool(archive=TARGET | EXECUTORS), namespace=lake.namespace)
    counted = by_two_executors(lake, "traffic")
    assert counted["rows"] == len(lake.sent)
    assert counted["damaged"] == 0


def by_two_executors(lake: Lake, job: str) -> Document:
    """What a daily job says of the topic when it is run now."""

    def is_it(schedule: Document) -> bool:
        application = schedule["spec"]["template"]
        return bool(
            application["arguments"][0] == job and application["executor"]["instances"] == 2
        )

    def schedule() -> Document | None:
        found = lake.cluster.objects(SCHEDULES, lake.namespace)
        return next(filter(is_it, found), None)

    daily, name = until(f"a schedule of {job}", schedule), f"{job}-now"
    run = {
        "apiVersion": daily["apiVersion"],
        "kind": "SparkApplication",
        "metadata": {"name": name},
        "spec": daily["spec"]["template"],
    }
    lake.cluster.apply(run, namespace=lake.namespace)

    def ended() -> Document | None:
        found = lake.cluster.find(RUNS, name, lake.namespace) or {}
        status: Document = found.get("status") or {}
        state = (status.get("applicationState") or {}).get("state")
        return status if state in {"COMPLETED", "FAILED", "SUBMISSION_FAILED"} else None

    status = until("the run ends", ended, RUN_S)
    assert status["applicationState"]["state"] == "COMPLETED", status
    assert len(status["executorState"]) == 2
    driver = lake.cluster.find("pod", f"{name}-driver", lake.namespace)
    assert driver is not None
    (container,) = driver["status"]["containerStatuses"]
    (part,) = json.loads(container["state"]["terminated"]["message"])["topics"]
    found: Document = part
    return found
