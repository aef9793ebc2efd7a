"""Resources of our kinds as tests declare them, and what tests look for in their status."""

import functools
from collections.abc import Callable
from typing import Any

from tests.support.cluster import Cluster, Document, condition

VERSION = "ibrik.dev/v1beta1"
POOL, TOPIC = f"{VERSION}/BrokerPool", f"{VERSION}/Topic"
SUBSCRIPTION, CHANNEL = f"{VERSION}/Subscription", f"{VERSION}/Channel"
SET, POD, SECRET = "apps/v1/StatefulSet", "v1/Pod", "v1/Secret"
CLAIM, CONFIG = "v1/PersistentVolumeClaim", "v1/ConfigMap"


def declared(kind: str, name: str, namespace: str, **spec: Any) -> Document:
    """A resource; `kind` as `apiVersion/Kind`."""
    api_version, _, kind_name = kind.rpartition("/")
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": api_version, "kind": kind_name, "metadata": metadata, "spec": spec}


topic = functools.partial(declared, TOPIC)
pool = functools.partial(declared, POOL)
channel = functools.partial(declared, CHANNEL)


def subscription(name: str, namespace: str, topic_name: str, **spec: Any) -> Document:
    return declared(SUBSCRIPTION, name, namespace, topicRef={"name": topic_name}, **spec)


def annotated(document: Document, **annotations: str) -> Document:
    """With annotations of ours: `paused="true"` is ibrik.dev/paused."""
    named = {f"ibrik.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return document | {"metadata": document["metadata"] | {"annotations": named}}


def is_so(
    type_: str = "Ready", status: str = "True", reason: str = ""
) -> Callable[[Document], bool]:
    """Whether a condition is so, for the generation that there is."""

    def judge(document: Document) -> bool:
        found = condition(document, type_)
        return (
            found.get("status") == status
            and found.get("observedGeneration") == document["metadata"]["generation"]
            and (not reason or found["reason"] == reason)
        )

    return judge


def wait_ready(cluster: Cluster, kind: str, name: str, namespace: str) -> Document:
    return cluster.wait(kind, name, namespace, is_so())
