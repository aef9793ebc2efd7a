"""A BrokerPool becomes brokers that serve, and stays so whatever people and machines do to it."""

import base64
from collections.abc import Callable
from typing import Any

import pytest
import urllib3

from tests.support.cluster import Cluster, Document, condition
from tests.support.kubelet import Kubelet
from tests.support.operator_process import Operator
from tests.support.shop import Shop

POOL = "ibrik.dev/v1beta1/BrokerPool"
POD, CLAIM, SECRET, SERVICE = "v1/Pod", "v1/PersistentVolumeClaim", "v1/Secret", "v1/Service"
SET = "apps/v1/StatefulSet"
NAME, FIRST_POD, FIRST_CLAIM = "ibrik-default", "ibrik-default-0", "data-ibrik-default-0"

pytestmark = pytest.mark.usefixtures("operator")


@pytest.fixture
def operator(own_shop: Shop) -> Operator:
    """In the namespace of the test."""
    return own_shop.operator


def pool(namespace: str, **spec: Any) -> Document:
    return {
        "apiVersion": "ibrik.dev/v1beta1",
        "kind": "BrokerPool",
        "metadata": {"name": "default", "namespace": namespace},
        "spec": spec,
    }


def says(type_: str, status: str, reason: str = "") -> Callable[[Document], bool]:
    """Whether a condition of the newest generation is so."""

    def is_so(document: Document) -> bool:
        found = condition(document, type_)
        return (
            found.get("status") == status
            and reason in ("", found.get("reason"))
            and found.get("observedGeneration") == document["metadata"]["generation"]
        )

    return is_so


def made(cluster: Cluster, namespace: str, **spec: Any) -> Document:
    """The pool `default` with this spec, once it is ready."""
    cluster.apply(pool(namespace, **spec), force=True)
    return cluster.wait(POOL, "default", namespace, says("Ready", "True"))


def is_other_than(pod: Document) -> Callable[[Document], bool]:
    def is_so(now: Document) -> bool:
        is_ready = condition(now, "Ready").get("status") == "True"
        return is_ready and now["metadata"]["uid"] != pod["metadata"]["uid"]

    return is_so


def token(cluster: Cluster, namespace: str, key: str = "current") -> str:
    secret = cluster.get(SECRET, "ibrik-default-admin", namespace)
    return base64.b64decode(secret["data"][key]).decode()


def test_a_pool_becomes_a_broker_that_serves(cluster: Cluster, namespace: str) -> None:
    status = made(cluster, namespace)["status"]
    assert (status["ready"], status["replicas"], status["readyReplicas"]) == ("1/1", 1, 1)
    assert (status["metadataStore"], status["topics"]) == ("sqlite", 0)
    assert status["storage"]["capacityBytes"] > status["storage"]["usedBytes"] > 0
    pod = cluster.get(POD, FIRST_POD, namespace)
    answer = urllib3.request("GET", f"http://{pod['status']['podIP']}:8080/v1/topics")
    assert answer.status == 200
    for name, ports in {NAME: {8080, 7070}, f"{NAME}-brokers": {8080, 7070, 8081}}.items():
        service = cluster.get(SERVICE, name, namespace)
        assert {port["port"] for port in service["spec"]["ports"]} == ports
    shown = cluster.kubectl("-n", namespace, "get", "brokerpools.ibrik.dev")
    assert "1/1" in shown


def test_what_is_as_wished_is_not_written_again(
    cluster: Cluster, namespace: str, operator: Operator
) -> None:
    made(cluster, namespace)
    settled = cluster.wait(POOL, "default", namespace, says("UpToDate", "True"))
    since = cluster.audit_position()
    annotation = {"metadata": {"annotations": {"note": "a change that is none"}}}
    cluster.patch(POOL, "default", annotation, namespace)
    # A pool that is made afterwards has been carried out, so the annotation was looked at.
    other = pool(namespace) | {"metadata": {"name": "other", "namespace": namespace}}
    cluster.apply(other)
    cluster.wait(POOL, "other", namespace, says("Ready", "True"))
    # What happened before may be told as an event a moment later.
    written = {write.name for write in operator.writes(since) if write.resource != "events"}
    assert not {name for name in written if "default" in name}
    assert cluster.get(POOL, "default", namespace)["status"] == settled["status"]


def test_what_somebody_changes_by_hand_is_put_back(cluster: Cluster, namespace: str) -> None:
    made(cluster, namespace)
    cluster.patch(SET, NAME, {"spec": {"replicas": 3}}, namespace)
    cluster.wait(SET, NAME, namespace, lambda one: one["spec"]["replicas"] == 1)
    cluster.patch(SERVICE, NAME, {"spec": {"selector": {"ibrik.dev/pool": "other"}}}, namespace)
    cluster.wait(
        SERVICE, NAME, namespace, lambda one: one["spec"]["selector"]["ibrik.dev/pool"] == "default"
    )
    cluster.delete("policy/v1/PodDisruptionBudget", NAME, namespace)
    cluster.wait(
        "policy/v1/PodDisruptionBudget", NAME, namespace, lambda one: one["spec"]["maxUnavailable"]
    )


def test_a_setting_restarts_the_broker_on_its_volume(
    cluster: Cluster, namespace: str, kubelet: Kubelet
) -> None:
    made(cluster, namespace)
    pod = cluster.get(POD, FIRST_POD, namespace)
    folder = kubelet.process(namespace, FIRST_POD).environment or {}
    made(cluster, namespace, config={"logLevel": "debug"})
    cluster.wait(POD, FIRST_POD, namespace, is_other_than(pod))
    cluster.wait(POOL, "default", namespace, says("UpToDate", "True"))
    again = kubelet.process(namespace, FIRST_POD).environment or {}
    assert again["IBRIK_DATA"] == folder["IBRIK_DATA"]


def test_an_image_that_is_not_there_is_healed_by_putting_it_back(
    cluster: Cluster, namespace: str, kubelet: Kubelet
) -> None:
    kubelet.missing_images.add("nowhere/broker:1")
    made(cluster, namespace)
    cluster.apply(pool(namespace, image="nowhere/broker:1"), force=True)
    told = cluster.wait(POOL, "default", namespace, says("Ready", "False", "ImageUnavailable"))
    assert "image nowhere/broker:1 cannot be pulled" in condition(told, "Ready")["message"]
    cluster.apply(pool(namespace), force=True)
    cluster.wait(POOL, "default", namespace, says("Ready", "True"))


def test_what_kubernetes_refuses_of_the_pods_is_told_and_the_pool_goes_on(
    cluster: Cluster, namespace: str
) -> None:
    made(cluster, namespace)
    pod = cluster.get(POD, FIRST_POD, namespace)
    wrong = {"tolerations": [{"key": "a", "operator": "Sometimes"}]}
    cluster.apply(pool(namespace, podTemplate=wrong), force=True)
    told = cluster.wait(POOL, "default", namespace, says("Accepted", "False", "PodTemplateInvalid"))
    assert "Sometimes" in condition(told, "Accepted")["message"]
    assert condition(told, "Stalled")["status"] == "True"
    assert cluster.get(POD, FIRST_POD, namespace)["metadata"]["uid"] == pod["metadata"]["uid"]
    made(cluster, namespace)


def storage_class(cluster: Cluster, name: str, *, grows: bool) -> str:
    head = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "none"}
    cluster.apply(head | {"metadata": {"name": name}, "allowVolumeExpansion": grows})
    return name


def test_a_volume_grows_under_a_broker_that_runs_on(cluster: Cluster, namespace: str) -> None:
    kind = storage_class(cluster, "growing", grows=True)
    made(cluster, namespace, storage={"size": "1Gi", "storageClassName": kind})
    pod, former = cluster.get(POD, FIRST_POD, namespace), cluster.get(SET, NAME, namespace)
    cluster.apply(pool(namespace, storage={"size": "2Gi", "storageClassName": kind}), force=True)
    cluster.wait(
        CLAIM, FIRST_CLAIM, namespace, lambda one: one["status"]["capacity"]["storage"] == "2Gi"
    )
    cluster.wait(
        SET, NAME, namespace, lambda one: one["metadata"]["uid"] != former["metadata"]["uid"]
    )
    told = cluster.wait(POOL, "default", namespace, says("VolumesGrown", "True"))
    assert condition(told, "UpToDate")["status"] == "True"
    now = cluster.wait(
        POD, FIRST_POD, namespace, lambda one: one["metadata"].get("ownerReferences")
    )
    assert now["metadata"]["uid"] == pod["metadata"]["uid"]


def test_a_volume_that_cannot_grow_stays_and_the_rest_is_carried_out(
    cluster: Cluster, namespace: str
) -> None:
    kind = storage_class(cluster, "rigid", grows=False)
    made(cluster, namespace, storage={"size": "1Gi", "storageClassName": kind})
    pod = cluster.get(POD, FIRST_POD, namespace)
    larger = {"size": "2Gi", "storageClassName": kind}
    cluster.apply(pool(namespace, storage=larger, config={"logLevel": "debug"}), force=True)
    told = cluster.wait(
        POOL, "default", namespace, says("VolumesGrown", "False", "ExpansionUnsupported")
    )
    assert '"size":"1Gi"' in condition(told, "VolumesGrown")["message"]
    cluster.wait(POD, FIRST_POD, namespace, is_other_than(pod))
    claim = cluster.get(CLAIM, FIRST_CLAIM, namespace)
    assert claim["spec"]["resources"]["requests"]["storage"] == "1Gi"


def test_a_volume_that_never_comes_is_told(cluster: Cluster, namespace: str) -> None:
    cluster.apply(pool(namespace, storage={"storageClassName": "missing"}))
    told = cluster.wait(POOL, "default", namespace, says("Ready", "False", "ClaimPending"))
    assert FIRST_CLAIM in condition(told, "Ready")["message"]


def test_the_admin_token_is_changed_when_the_annotation_asks_for_it(
    cluster: Cluster, namespace: str
) -> None:
    made(cluster, namespace)
    former = token(cluster, namespace)
    change = {"metadata": {"annotations": {"ibrik.dev/rotate-admin-token": "monday"}}}
    cluster.patch(POOL, "default", change, namespace)
    cluster.wait(
        SECRET, "ibrik-default-admin", namespace, lambda secret: "previous" in secret["data"]
    )
    assert token(cluster, namespace, "previous") == former
    assert token(cluster, namespace) != former
    # Operator and broker go on talking, whoever of them reads the new one first.
    made(cluster, namespace, config={"logLevel": "debug"})


def test_a_paused_pool_is_left_alone(cluster: Cluster, namespace: str) -> None:
    made(cluster, namespace)
    change: Document = {"metadata": {"annotations": {"ibrik.dev/paused": "true"}}}
    cluster.patch(POOL, "default", change, namespace)
    told = cluster.wait(
        POOL,
        "default",
        namespace,
        lambda one: condition(one, "Reconciling").get("reason") == "Paused",
    )
    assert condition(told, "Ready")["status"] == "True"
    cluster.patch(SET, NAME, {"spec": {"replicas": 0}}, namespace)
    cluster.wait_gone(POD, FIRST_POD, namespace)
    assert cluster.get(SET, NAME, namespace)["spec"]["replicas"] == 0
    change["metadata"]["annotations"]["ibrik.dev/paused"] = None
    cluster.patch(POOL, "default", change, namespace)
    cluster.wait(POOL, "default", namespace, says("Ready", "True"))


def test_a_pool_that_is_deleted_takes_its_objects_and_leaves_its_volumes(
    cluster: Cluster, namespace: str
) -> None:
    made(cluster, namespace)
    cluster.delete(POOL, "default", namespace)
    cluster.wait_gone(POD, FIRST_POD, namespace)
    cluster.wait_gone(SECRET, "ibrik-default-admin", namespace)
    assert cluster.get(CLAIM, FIRST_CLAIM, namespace)["status"]["phase"] == "Bound"
    made(cluster, namespace)


def test_a_pool_that_reclaims_takes_its_volumes_too(cluster: Cluster, namespace: str) -> None:
    made(cluster, namespace, storage={"reclaim": "Delete"})
    cluster.delete(POOL, "default", namespace)
    cluster.wait_gone(CLAIM, FIRST_CLAIM, namespace)
