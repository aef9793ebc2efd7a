"""The documents that brokers get: resources without what only Kubernetes needs. Pure."""

from typing import Any

from ibrik_api.kubernetes import GROUP, VERSION
from ibrik_api.observed import ObservedResource
from ibrik_operator.keys import Document


def document(resource: Document) -> dict[str, Any]:
    """A resource as it is; one that is being deleted is deleted by its own policy."""
    metadata = resource["metadata"]
    kept = ("namespace", "name", "uid", "generation", "deletionTimestamp")
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": resource["kind"],
        "metadata": {name: metadata[name] for name in kept if metadata.get(name) is not None},
        "spec": resource.get("spec") or {},
    }


def detaching(seen: ObservedResource, *, now: str) -> dict[str, Any]:
    """For a resource that is gone: keep everything and serve it no longer, whatever its policy was.

    Doubt deletes nothing: nobody asked the brokers to delete it.
    """
    spec: dict[str, Any] = {}
    if seen.kind != "Channel":
        spec["deletionPolicy"] = "Retain"
    if seen.kind == "Subscription":
        spec["topicRef"] = {"name": seen.status.get("topic") or "gone"}
    metadata = {
        "namespace": seen.namespace,
        "name": seen.name,
        "generation": seen.generation,
        "deletionTimestamp": now,
    }
    if seen.uid is not None:
        metadata["uid"] = seen.uid
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": seen.kind,
        "metadata": metadata,
        "spec": spec,
    }
