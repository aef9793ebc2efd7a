"""BrokerPools, their pods, claims and brokers as documents, for tests without an API server."""

from typing import Any

from ibrik_api.kubernetes import CONFIG_HASH, claim_name, object_name, pod_name, pool_labels
from ibrik_api.observed import Observed, ObservedBroker
from ibrik_operator.observations import BrokerSeen, PoolObservation

GIB = 2**30


def pool(name: str = "default", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "ibrik.dev/v1beta1",
        "kind": "BrokerPool",
        "metadata": {"name": name, "namespace": "shop", "uid": f"uid-{name}", "generation": 1},
        "spec": spec,
    }


def pod(
    ordinal: int,
    *,
    ready: bool = True,
    digest: str = "new",
    waiting: tuple[str, str] | None = None,
    restarts: int = 0,
    deleted: bool = False,
    unscheduled: str = "",
) -> dict[str, Any]:
    """A pod of the pool `default`. `waiting` is reason and message of its container."""
    state = (
        {"running": {}}
        if waiting is None
        else {"waiting": dict(zip(("reason", "message"), waiting, strict=True))}
    )
    conditions = [
        {
            "type": "PodScheduled",
            "status": "False" if unscheduled else "True",
            "message": unscheduled,
        },
        {"type": "Ready", "status": "True" if ready else "False"},
    ]
    container = {
        "name": "broker",
        "image": "ibrik/broker:1",
        "state": state,
        "restartCount": restarts,
    }
    metadata = {
        "name": pod_name("default", ordinal),
        "namespace": "shop",
        "uid": f"uid-{ordinal}",
        "labels": pool_labels("default"),
        "annotations": {CONFIG_HASH: digest},
        "ownerReferences": [
            {"kind": "StatefulSet", "name": object_name("default"), "controller": True}
        ],
    }
    if deleted:
        metadata["deletionTimestamp"] = "2026-11-28T10:00:00Z"
    status = {
        "podIP": f"127.0.0.{ordinal + 2}",
        "conditions": conditions,
        "containerStatuses": [] if unscheduled else [container],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {}, "status": status}


def claim(ordinal: int, *, size: str, capacity: str | None, **status: Any) -> dict[str, Any]:
    """A claim of the pool `default`; without a capacity it is not bound."""
    bound = (
        {"phase": "Pending"}
        if capacity is None
        else {"phase": "Bound", "capacity": {"storage": capacity}}
    )
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": claim_name("default", ordinal), "namespace": "shop"},
        "spec": {"storageClassName": "disks", "resources": {"requests": {"storage": size}}},
        "status": bound | status,
    }


def broker(ordinal: int, **facts: Any) -> BrokerSeen:
    """What the broker of a pod says; `facts` are those that are not as usual."""
    name = pod_name("default", ordinal)
    usual = {
        "id": f"volume-{ordinal}",
        "name": name,
        "cluster_id": "cluster",
        "version": "1.0",
        "metadata_store": "postgres",
        "is_metadata_ready": True,
        "is_storage_low": False,
        "free_bytes": 9 * GIB,
        "capacity_bytes": 10 * GIB,
        "min_free_bytes": GIB // 4,
    }
    return BrokerSeen(
        name, Observed(broker=ObservedBroker(**usual | facts), resources=[]), uid=f"uid-{ordinal}"
    )


def silent(ordinal: int) -> BrokerSeen:
    return BrokerSeen(pod_name("default", ordinal), None, "no answer within 20 s", f"uid-{ordinal}")


def observation(*brokers: BrokerSeen) -> PoolObservation:
    return PoolObservation(list(brokers), {}, 1)
