"""What archives one broker's topics on one schedule: an application of Spark, or a CronJob. Pure.

A schedule is in the name of its object: another one is another object, and no starter has to notice
that its line of cron was edited. Every optional field that matters is said, since their defaults
differ between the releases of Spark's operator.
"""

from typing import Any

from ibrik_api.durations import format_duration
from ibrik_api.kubernetes import (
    ARCHIVE_NOW,
    archive_labels,
    lake_claim_name,
    object_name,
)
from ibrik_api.quantities import MIB, format_quantity
from ibrik_api.resources.pool import Claim, PoolArchive
from ibrik_operator.archives import Job, Slot
from ibrik_operator.desired.archive_pod import (
    DEADLINE_S,
    LAKE_FOLDER,
    broker_arguments,
    cpu_limit_of,
    cpu_of,
    memory_of,
    pod_labels,
    pod_template,
    resources_of,
)
from ibrik_operator.desired.broker_set import DATA_FOLDER, Defaults
from ibrik_operator.desired.common import child
from ibrik_operator.desired.periods import period_ms
from ibrik_operator.desired.spec import pool_spec
from ibrik_operator.documents import digest
from ibrik_operator.keys import Document

SPARK_API = "sparkoperator.k8s.io/v1beta2"
SPARK_VERSION = "4.3.0"
"""What the applications say that they are; Spark's operator only asks whether it is 3 or later."""
MAIN_FILE = "local:///opt/ibrik/jobs.py"
"""A name by which the entrypoint of the image finds the arguments of the job."""
DRIVER, EXECUTOR = "spark-kubernetes-driver", "spark-kubernetes-executor"
"""The names by which Spark finds its container in a template."""
MASTER = "local[2,4]"
KEPT_S = 24 * 3600
"""How long what has ended can be looked at."""
START_S = 600
"""A run that could not be started for so long is left out; the next one does its work."""
SHOWN_OF_POOL = 14


def slot_name(pool: Document, slot: Slot) -> str:
    """At most 36 characters: Spark adds 20 for each run, and the whole is a label."""
    name = pool["metadata"]["name"]
    further = [] if slot.job is Job.ARCHIVE else [slot.job]
    key = digest([name, slot.ordinal, slot.schedule, slot.time_zone, *further])[:10]
    return f"{object_name(name[:SHOWN_OF_POOL].rstrip('-'))}-{slot.ordinal}-{key}"


def run_name(pool: Document, slot: Slot) -> str:
    """Of the run that was asked for: the same wish is the same run."""
    return f"{slot_name(pool, slot)}-{slot.asked[:8]}"


def spark_schedule(pool: Document, slot: Slot, defaults: Defaults) -> dict[str, Any]:
    return {
        **_child(pool, slot, SPARK_API, "ScheduledSparkApplication", slot_name(pool, slot)),
        "spec": {
            **_timing(slot),
            "successfulRunHistoryLimit": 1,
            "failedRunHistoryLimit": 3,
            "template": _application(pool, slot, defaults),
        },
    }


def spark_run(pool: Document, slot: Slot, defaults: Defaults) -> dict[str, Any]:
    """Once, now."""
    return {
        **_child(pool, slot, SPARK_API, "SparkApplication", run_name(pool, slot)),
        "spec": _application(pool, slot, defaults),
    }


def cron_job(pool: Document, slot: Slot, defaults: Defaults) -> dict[str, Any]:
    labels = archive_labels(pool["metadata"]["name"], slot.ordinal)
    return {
        **_child(pool, slot, "batch/v1", "CronJob", slot_name(pool, slot)),
        "spec": {
            **_timing(slot),
            "startingDeadlineSeconds": START_S,
            "successfulJobsHistoryLimit": 1,
            "failedJobsHistoryLimit": 3,
            "jobTemplate": {"metadata": {"labels": labels}, "spec": _job(pool, slot, defaults)},
        },
    }


def single_job(pool: Document, slot: Slot, defaults: Defaults) -> dict[str, Any]:
    """Once, now."""
    return {
        **_child(pool, slot, "batch/v1", "Job", run_name(pool, slot)),
        "spec": _job(pool, slot, defaults),
    }


def lake_claim(pool: Document, ordinal: int, claim: Claim) -> dict[str, Any]:
    """The tables of one broker. It has no owner: tables outlive the pool that wrote them."""
    name, metadata = pool["metadata"]["name"], pool["metadata"]
    named = (
        {} if claim.storage_class_name is None else {"storageClassName": claim.storage_class_name}
    )
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": lake_claim_name(name, ordinal),
            "namespace": metadata["namespace"],
            "labels": archive_labels(name, ordinal),
        },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": format_quantity(claim.size)}},
            **named,
        },
    }


def _timing(slot: Slot) -> dict[str, Any]:
    """The words that both kinds of schedules have for it."""
    return {
        "schedule": slot.schedule,
        "timeZone": slot.time_zone,
        "concurrencyPolicy": "Forbid",
        "suspend": slot.is_suspended,
    }


def _child(pool: Document, slot: Slot, api: str, kind: str, name: str) -> dict[str, Any]:
    document = child(pool, api, kind, name)
    document["metadata"]["labels"] = archive_labels(pool["metadata"]["name"], slot.ordinal)
    if slot.asked:
        document["metadata"]["annotations"][ARCHIVE_NOW] = slot.asked
    return document


def _arguments(pool: Document, archive: PoolArchive, slot: Slot) -> list[str]:
    named = [part for topic in slot.topics for part in ("--topic", topic)]
    told: list[str] = []
    if slot.job.reads_log:
        told += ["--data", DATA_FOLDER]
    if slot.job.asks_broker:
        told += broker_arguments(pool, slot.ordinal)
    if slot.job is not Job.QUALITY:
        told += ["--target", archive.target.url or LAKE_FOLDER]
    if slot.job is Job.ARCHIVE:
        told += ["--period", format_duration(period_ms(slot.schedule))]
    # A report is read in the lines of its pod; what programs ask for are the last words.
    output = "json" if slot.job in {Job.ARCHIVE, Job.OPTIMIZE} else "table"
    return [str(slot.job), *told, "--output", output, *named]


def _is_spread(archive: PoolArchive, slot: Slot) -> bool:
    """Whether several pods share the work."""
    return archive.executors > 0 and not slot.job.reads_log


def _application(pool: Document, slot: Slot, defaults: Defaults) -> dict[str, Any]:
    archive = archive_of(pool)
    name, labels = pool["metadata"]["name"], pod_labels(pool["metadata"]["name"], slot)
    pull = _pull_secrets(pool, defaults)
    return {
        "type": "Python",
        "pythonVersion": "3",
        "mode": "cluster",
        "sparkVersion": SPARK_VERSION,
        "image": archive.image or defaults.spark_image,
        "imagePullPolicy": "IfNotPresent",
        **({"imagePullSecrets": pull} if pull else {}),
        "mainApplicationFile": MAIN_FILE,
        "arguments": _arguments(pool, archive, slot),
        "restartPolicy": {"type": "Never"},
        "timeToLiveSeconds": KEPT_S,
        "sparkConf": {"spark.ui.enabled": "false"},
        "driver": {
            **_size(archive),
            "labels": labels,
            "template": pod_template(
                pool, archive, slot, {"name": DRIVER}, makes_pods=_is_spread(archive, slot)
            ),
            **_master(name, archive, slot),
        },
        "executor": _executor(pool, archive, slot),
    }


def _size(archive: PoolArchive) -> dict[str, Any]:
    """Of a pod, in the words of Spark."""
    memory, limit = memory_of(archive) // MIB, cpu_limit_of(archive)
    heap = memory * 5 // 7  # The rest is Python's, which holds the records.
    return {
        "cores": 1,
        "coreRequest": cpu_of(archive),
        **({} if limit is None else {"coreLimit": limit}),
        "memory": f"{heap}m",
        "memoryOverhead": f"{memory - heap}m",
    }


def _master(pool: str, archive: PoolArchive, slot: Slot) -> dict[str, Any]:
    """A driver is its own master, or makes pods, with the rights of who may do that."""
    if not _is_spread(archive, slot):
        return {"kubernetesMaster": MASTER, "serviceAccount": object_name(pool)}
    return {"serviceAccount": archive.service_account_name}


def _executor(pool: Document, archive: PoolArchive, slot: Slot) -> dict[str, Any]:
    if not _is_spread(archive, slot):
        # The definition asks for it; a driver that is its own master starts none.
        return {"instances": 1, "cores": 1, "memory": "512m", "deleteOnTermination": True}
    return {
        **_size(archive),
        "instances": archive.executors,
        "deleteOnTermination": True,
        "labels": pod_labels(pool["metadata"]["name"], slot),
        "template": pod_template(pool, archive, slot, {"name": EXECUTOR}),
    }


def _job(pool: Document, slot: Slot, defaults: Defaults) -> dict[str, Any]:
    archive = archive_of(pool)
    container = {
        "name": str(slot.job),
        "image": archive.image or defaults.spark_image,
        "imagePullPolicy": "IfNotPresent",
        "args": _arguments(pool, archive, slot),
        "resources": resources_of(archive),
    }
    template = pod_template(pool, archive, slot, container)
    pull = [{"name": one} for one in _pull_secrets(pool, defaults)]
    template["spec"] |= {
        "serviceAccountName": object_name(pool["metadata"]["name"]),
        "restartPolicy": "Never",
        **({"imagePullSecrets": pull} if pull else {}),
    }
    return {
        "parallelism": 1,
        "completions": 1,
        "backoffLimit": 0,
        "activeDeadlineSeconds": DEADLINE_S,
        "ttlSecondsAfterFinished": KEPT_S,
        "template": template,
    }


def archive_of(pool: Document) -> PoolArchive:
    """That of a pool which has one."""
    archive = pool_spec(pool).archive
    assert archive is not None
    return archive


def _pull_secrets(pool: Document, defaults: Defaults) -> list[str]:
    own = [one.name for one in pool_spec(pool).image_pull_secrets]
    return own or list(defaults.image_pull_secrets)
