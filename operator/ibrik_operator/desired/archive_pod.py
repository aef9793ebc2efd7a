"""The pod of an archive job: what it mounts, where it runs, what it may. Pure.

One and the same whether Spark's operator or a CronJob starts it. It runs next to its broker, since
a volume that one node mounts is there and nowhere else.
"""

from typing import Any

from ibrik_api.kubernetes import (
    ADMIN_PORT,
    DATA_VOLUME,
    JOB_LABEL,
    admin_secret_name,
    archive_labels,
    claim_name,
    headless_service_name,
    lake_claim_name,
    pod_name,
)
from ibrik_api.quantities import MIB, format_quantity, parse_quantity
from ibrik_api.resources.pool import PoolArchive
from ibrik_operator.archives import Slot
from ibrik_operator.desired.broker_set import DATA_FOLDER
from ibrik_operator.desired.common import CONTAINER_SECURITY, POD_SECURITY
from ibrik_operator.desired.spec import pool_spec
from ibrik_operator.keys import Document

LAKE_FOLDER, TOKEN_FOLDER, TOKEN_FILE = "/var/lib/lake", "/etc/ibrik/archive", "token"
TERMINATION_LOG = "/dev/termination-log"
DEADLINE_S = 6 * 3600
"""A run that takes longer is ended; the next one goes on from what it committed."""
CPU, MEMORY_BYTES = "100m", 1434 * MIB
"""What a pod asks for when nothing is said."""
HOST_KEY = "kubernetes.io/hostname"


def broker_arguments(pool: Document, ordinal: int) -> list[str]:
    """What a job is told that asks this broker."""
    name = pool["metadata"]["name"]
    host = f"{pod_name(name, ordinal)}.{headless_service_name(name)}"
    return [
        "--admin",
        f"http://{host}.{pool['metadata']['namespace']}.svc:{ADMIN_PORT}",
        "--token-file",
        f"{TOKEN_FOLDER}/{TOKEN_FILE}",
    ]


def pod_template(
    pool: Document,
    archive: PoolArchive,
    slot: Slot,
    container: dict[str, Any],
    *,
    makes_pods: bool = False,
) -> dict[str, Any]:
    """`container` is its name and what else the starter needs of it."""
    name, own = pool["metadata"]["name"], pool_spec(pool).pod_template
    spec = {
        "automountServiceAccountToken": makes_pods,
        "enableServiceLinks": False,
        "activeDeadlineSeconds": DEADLINE_S,
        "securityContext": POD_SECURITY,
        "containers": [{**_container(archive, slot), **container}],
        "volumes": _volumes(name, archive, slot),
    }
    if slot.job.reads_log or archive.target.claim is not None:
        spec["affinity"] = {"podAffinity": _beside(name, slot.ordinal)}
    if own.tolerations:  # Where its broker may be.
        spec["tolerations"] = list(own.tolerations)
    return {"metadata": {"labels": pod_labels(name, slot)}, "spec": spec}


def pod_labels(pool: str, slot: Slot) -> dict[str, str]:
    """Without the words by which the operator knows the pods that it manages itself."""
    labels = archive_labels(pool, slot.ordinal)
    del labels["app.kubernetes.io/managed-by"]
    return labels | {JOB_LABEL: str(slot.job)}


def cpu_of(archive: PoolArchive) -> str:
    return str(archive.resources.requests.get("cpu", CPU))


def cpu_limit_of(archive: PoolArchive) -> str | None:
    limit = archive.resources.limits.get("cpu")
    return None if limit is None else str(limit)


def memory_of(archive: PoolArchive) -> int:
    """Of the whole pod: what it asks for is what it gets."""
    wish = archive.resources
    stated = wish.limits.get("memory", wish.requests.get("memory"))
    return MEMORY_BYTES if stated is None else max(parse_quantity(stated), 512 * MIB)


def resources_of(archive: PoolArchive) -> dict[str, Any]:
    """As a container has them."""
    memory, limit = format_quantity(memory_of(archive)), cpu_limit_of(archive)
    return {
        "requests": {"cpu": cpu_of(archive), "memory": memory},
        "limits": {"memory": memory, **({} if limit is None else {"cpu": limit})},
    }


def _container(archive: PoolArchive, slot: Slot) -> dict[str, Any]:
    secret = archive.target.secret_ref
    mounts: list[dict[str, Any]] = []
    if slot.job.reads_log:
        mounts.append({"name": DATA_VOLUME, "mountPath": DATA_FOLDER, "readOnly": True})
    if slot.job.asks_broker:
        mounts.append({"name": "token", "mountPath": TOKEN_FOLDER, "readOnly": True})
    mounts.append({"name": "tmp", "mountPath": "/tmp"})  # noqa: S108 - a volume of the pod's own
    if archive.target.claim is not None:
        mounts.append({"name": "lake", "mountPath": LAKE_FOLDER})
    container: dict[str, Any] = {
        "env": [
            {"name": "IBRIK_SPARK_TERMINATION_LOG", "value": TERMINATION_LOG},
            {"name": "HOME", "value": "/tmp"},  # noqa: S108
        ],
        "securityContext": CONTAINER_SECURITY,
        "terminationMessagePath": TERMINATION_LOG,
        "terminationMessagePolicy": "File",
        "volumeMounts": mounts,
    }
    if secret is not None:
        container["envFrom"] = [{"secretRef": {"name": secret.name}}]
    return container


def _volumes(pool: str, archive: PoolArchive, slot: Slot) -> list[dict[str, Any]]:
    volumes: list[dict[str, Any]] = []
    if slot.job.reads_log:
        # Read-only at the mount alone: some drivers take it on the claim for a way to attach.
        data = {"claimName": claim_name(pool, slot.ordinal)}
        volumes.append({"name": DATA_VOLUME, "persistentVolumeClaim": data})
    if slot.job.asks_broker:
        token = {"key": "archive", "path": TOKEN_FILE}
        secret = {"secretName": admin_secret_name(pool), "items": [token]}
        volumes.append({"name": "token", "secret": secret})
    volumes.append({"name": "tmp", "emptyDir": {"sizeLimit": "4Gi"}})
    if archive.target.claim is not None:
        claim = {"claimName": lake_claim_name(pool, slot.ordinal)}
        volumes.append({"name": "lake", "persistentVolumeClaim": claim})
    return volumes


def _beside(pool: str, ordinal: int) -> dict[str, Any]:
    broker = {"statefulset.kubernetes.io/pod-name": pod_name(pool, ordinal)}
    return {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": broker}, "topologyKey": HOST_KEY}
        ]
    }
