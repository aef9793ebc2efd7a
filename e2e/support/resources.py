"""Resources that the tests apply, as small as they can be."""

from typing import Any

from e2e.support.cluster import Document


def resource(kind: str, name: str, **spec: Any) -> Document:
    head = {"apiVersion": "ibrik.dev/v1beta1", "kind": kind, "metadata": {"name": name}}
    return {**head, "spec": spec}


def topic(name: str, **spec: Any) -> Document:
    return resource("Topic", name, **spec)


def pool(name: str = "default", **spec: Any) -> Document:
    """One small broker, so that many tests fit on one node."""
    small = {
        "storage": {"size": "1Gi"},
        "resources": {"requests": {"cpu": "20m", "memory": "64Mi"}},
    }
    return resource("BrokerPool", name, **{**small, **spec})
