"""What the chart runs before it is uninstalled, on a real API server, with its own rights."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from ibrik_operator.keys import Key
from ibrik_operator.kube import Kube, KubeForbidden
from ibrik_operator.uninstall import Installation, uninstall
from tests.support.cluster import Cluster, Document

API = "ibrik.dev/v1beta1"
PROTECT = "ibrik.dev/protect"
KINDS = ["brokerpools", "topics", "subscriptions", "channels"]
LABELS = {"app": "operator"}
RIGHTS = [
    {"apiGroups": ["ibrik.dev"], "resources": KINDS, "verbs": ["get", "list", "patch"]},
    {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "patch"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
]


async def at_once(_seconds: float) -> None:
    """Time passes in no time."""
    await asyncio.sleep(0)


@asynccontextmanager
async def door(user: Cluster, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Kube]:
    monkeypatch.setenv("KUBECONFIG", str(user.kubeconfig))
    kube = await Kube.connect()
    try:
        yield kube
    finally:
        await kube.close()


def installation(namespace: str, *served: str) -> Installation:
    return Installation(namespace, "operator", "app=operator", served)


def topic(name: str, namespace: str, *finalizers: str) -> Document:
    metadata = {"name": name, "namespace": namespace, "finalizers": list(finalizers)}
    return {"apiVersion": API, "kind": "Topic", "metadata": metadata, "spec": {}}


def pod(name: str, namespace: str) -> Document:
    spec = {"containers": [{"name": "main", "image": "none"}]}
    metadata = {"name": name, "namespace": namespace, "labels": LABELS}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def deployment(namespace: str) -> Document:
    template = {"metadata": {"labels": LABELS}, "spec": pod("", namespace)["spec"]}
    spec = {"replicas": 2, "selector": {"matchLabels": LABELS}, "template": template}
    metadata = {"name": "operator", "namespace": namespace}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


async def test_the_operator_is_stopped_and_only_our_finalizer_is_taken_away(
    cluster: Cluster, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.apply(deployment(namespace))
    cluster.apply(topic("ours", namespace, PROTECT))
    cluster.apply(topic("shared", namespace, "other.example/keep", PROTECT))
    cluster.apply(topic("free", namespace))
    user = cluster.service_account("uninstall", namespace, RIGHTS, is_cluster_wide=False)
    since = cluster.audit_position()
    async with door(user, monkeypatch) as kube:
        assert await uninstall(kube, installation(namespace, namespace), at_once) == 2
        assert await uninstall(kube, installation(namespace, namespace), at_once) == 0
    assert cluster.get("apps/v1/Deployment", "operator", namespace)["spec"]["replicas"] == 0
    left = {
        one["metadata"]["name"]: one["metadata"].get("finalizers")
        for one in cluster.objects(f"{API}/Topic", namespace)
    }
    assert left == {"ours": None, "shared": ["other.example/keep"], "free": None}
    written = [write.name for write in cluster.writes(user.user, since)]
    assert sorted(set(written)) == ["operator", "ours", "shared"]
    assert written[0] == "operator"


async def test_a_resource_that_is_being_deleted_goes(
    cluster: Cluster, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.apply(topic("orders", namespace, PROTECT))
    cluster.delete(f"{API}/Topic", "orders", namespace)
    assert cluster.find(f"{API}/Topic", "orders", namespace) is not None
    async with door(cluster, monkeypatch) as kube:
        assert await uninstall(kube, installation(namespace, namespace), at_once) == 1
    cluster.wait_gone(f"{API}/Topic", "orders", namespace)


async def test_nothing_is_released_before_the_last_pod_has_ended(
    cluster: Cluster, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = {"name": "default", "namespace": namespace}
    cluster.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
    cluster.apply(deployment(namespace))
    cluster.apply(pod("operator-1", namespace))
    cluster.apply(topic("orders", namespace, PROTECT))
    looks: list[list[str]] = []

    async def pause(_seconds: float) -> None:
        await asyncio.sleep(0)
        finalizers = cluster.get(f"{API}/Topic", "orders", namespace)["metadata"]["finalizers"]
        looks.append(finalizers)
        if len(looks) == 3:
            cluster.delete("v1/Pod", "operator-1", namespace)

    async with door(cluster, monkeypatch) as kube:
        assert await uninstall(kube, installation(namespace, namespace), pause) == 1
    assert looks == [[PROTECT]] * 3


async def test_all_namespaces_are_released_where_all_are_served(
    cluster: Cluster, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = cluster.new_namespace(f"{namespace}-other")
    for place in (namespace, other):
        cluster.apply(topic("orders", place, PROTECT))
    async with door(cluster, monkeypatch) as kube:
        assert await uninstall(kube, installation(namespace), at_once) >= 2
    for place in (namespace, other):
        assert "finalizers" not in cluster.get(f"{API}/Topic", "orders", place)["metadata"]


async def test_a_missing_right_is_said_in_the_servers_words(
    cluster: Cluster, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.apply(topic("orders", namespace, PROTECT))
    user = cluster.service_account("nobody", namespace, RIGHTS[1:], is_cluster_wide=False)
    async with door(user, monkeypatch) as kube:
        with pytest.raises(KubeForbidden, match="cannot list resource"):
            await uninstall(kube, installation(namespace, namespace), at_once)


async def test_a_resource_that_somebody_else_writes_to_is_read_again(
    cluster: Cluster, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.apply(topic("orders", namespace, PROTECT))
    async with door(cluster, monkeypatch) as kube:
        listed = kube.list

        async def list_then_write(kind: str, place: str = "", labels: str = "") -> list[Document]:
            found = await listed(kind, place, labels)
            if kind == "Topic":
                label = {"metadata": {"labels": {"seen": "late"}}}
                cluster.patch(f"{API}/Topic", "orders", label, namespace)
            return [dict(document) for document in found]

        monkeypatch.setattr(kube, "list", list_then_write)
        assert await uninstall(kube, installation(namespace, namespace), at_once) == 1
        assert await kube.get(Key("Topic", namespace, "orders")) is not None
    metadata = cluster.get(f"{API}/Topic", "orders", namespace)["metadata"]
    assert ("finalizers" in metadata, metadata["labels"]) == (False, {"seen": "late"})
