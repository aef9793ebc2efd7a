"""The API server of these tests is a real one, and says who wrote what."""

import pytest

from tests.support.cluster import Cluster, Refused

READ_CONFIG = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]


def test_it_serves_our_kinds(cluster: Cluster, namespace: str) -> None:
    topic = {"apiVersion": "ibrik.dev/v1beta1", "kind": "Topic"}
    made = cluster.apply(topic | {"metadata": {"name": "orders", "namespace": namespace}})
    assert made["spec"]["partitions"] == 1
    assert cluster.get("ibrik.dev/v1beta1/Topic", "orders", namespace) == made
    assert [
        t["metadata"]["name"] for t in cluster.objects("ibrik.dev/v1beta1/Topic", namespace)
    ] == ["orders"]


def test_an_account_can_do_what_its_rules_say_and_no_more(cluster: Cluster, namespace: str) -> None:
    data = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}
    cluster.apply(data | {"metadata": {"name": "settings", "namespace": namespace}})
    reader = cluster.service_account("reader", namespace, READ_CONFIG)
    assert reader.get("v1/ConfigMap", "settings", namespace)["data"] == {"a": "b"}
    with pytest.raises(Refused, match='cannot patch resource "configmaps"') as refused:
        reader.patch("v1/ConfigMap", "settings", {"data": {"a": "c"}}, namespace)
    assert refused.value.status == 403


def test_the_audit_log_tells_each_write_and_its_author(cluster: Cluster, namespace: str) -> None:
    since = cluster.audit_position()
    data = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}
    cluster.apply(data | {"metadata": {"name": "settings", "namespace": namespace}})
    cluster.get("v1/ConfigMap", "settings", namespace)
    cluster.delete("v1/ConfigMap", "settings", namespace)
    cluster.wait_gone("v1/ConfigMap", "settings", namespace)
    told = [
        (write.verb, write.resource, write.name)
        for write in cluster.writes("admin", since)
        if write.namespace == namespace
    ]
    assert told == [("patch", "configmaps", "settings"), ("delete", "configmaps", "settings")]


@pytest.mark.usefixtures("controllers")
def test_controllers_make_pods_of_a_set_and_take_them_away(
    cluster: Cluster, namespace: str
) -> None:
    labels = {"app": "sleeper"}
    container = {"name": "sleeper", "image": "none"}
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    cluster.apply(
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {"name": "sleeper", "namespace": namespace},
            "spec": {
                "serviceName": "sleeper",
                "podManagementPolicy": "Parallel",
                "replicas": 2,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
                "volumeClaimTemplates": [claim],
            },
        }
    )
    for name in ("sleeper-0", "sleeper-1"):
        cluster.wait("v1/Pod", name, namespace, lambda pod: "controller-revision-hash" in str(pod))
        assert cluster.get("v1/PersistentVolumeClaim", f"data-{name}", namespace)
    cluster.delete("v1/Namespace", namespace)
    cluster.wait_gone("v1/Namespace", namespace)
