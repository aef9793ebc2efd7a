"""Documents of a cluster for tests of the doctor: well, unless a test makes them otherwise."""

from typing import Any

from ibrik_api.definitions import KINDS, custom_resource_definition
from ibrik_cli.doctor.finding import Seen

NOW_S = 1_795_860_000.0
NOW = "2026-11-28T10:00:00Z"
EARLIER = "2026-11-28T09:00:30.000000Z"
Document = dict[str, Any]


def ready(status: str = "True", reason: str = "Ready", message: str = "") -> Document:
    return {
        "type": "Ready",
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": 1,
    }


def resource(name: str, condition: Document | None = None, **more: Any) -> Document:
    """Any of our kinds, in the namespace shop."""
    status = {"conditions": [condition or ready()]} | more.pop("status", {})
    metadata = {
        "name": name,
        "namespace": "shop",
        "generation": 1,
        "creationTimestamp": EARLIER,
    } | more.pop("metadata", {})
    return {"metadata": metadata, "status": status} | more


def pod(name: str, *, is_ready: bool = True, **status: Any) -> Document:
    state = "True" if is_ready else "False"
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "labels": {"ibrik.dev/pool": "default"}},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": state}]} | status,
    }


def operator(
    replicas: int = 2, ready_replicas: int = 2, image: str = "ibrik/operator:0.1.0"
) -> Any:
    containers = [{"name": "operator", "image": image}]
    return {
        "kind": "Deployment",
        "metadata": {"name": "ibrik-operator", "namespace": "ibrik-system"},
        "spec": {"replicas": replicas, "template": {"spec": {"containers": containers}}},
        "status": {"readyReplicas": ready_replicas},
    }


def lease(renewed: str = NOW) -> Document:
    return {
        "metadata": {"name": "ibrik-operator", "namespace": "ibrik-system"},
        "spec": {"holderIdentity": "ibrik-operator-7c", "renewTime": renewed},
    }


def cluster(**seen: Any) -> Seen:
    """A cluster in which all is well, but for what is given."""
    well: dict[str, Any] = {
        "version": "0.1.0",
        "now_s": NOW_S,
        "kubernetes": "v1.34.4",
        "operators": [operator()],
        "leases": [lease()],
        "definitions": [custom_resource_definition(kind) for kind in KINDS],
        "pools": [resource("default", status={"ready": "1/1"})],
        "pods": [pod("ibrik-default-0")],
    }
    return Seen(**well | seen)
