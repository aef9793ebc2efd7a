"""The played node runs real brokers: what the operator would see of pods is seen here."""

import base64
from pathlib import Path
from typing import Any

import urllib3

from tests.support.cluster import Cluster, Document
from tests.support.kubelet import Kubelet

LABELS = {"app.kubernetes.io/component": "broker", "app.kubernetes.io/name": "ibrik"}
POD, CLAIM, SECRET = "v1/Pod", "v1/PersistentVolumeClaim", "v1/Secret"


def secret(namespace: str, token: str) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "admin", "namespace": namespace},
        "data": {"token": base64.b64encode(token.encode()).decode()},
    }


def broker_set(namespace: str, **container: Any) -> Document:
    spec = {
        "name": "broker",
        "image": "ibrik/broker:test",
        "ports": [{"name": "admin", "containerPort": 8081}],
        "env": [
            {"name": "IBRIK_DATA", "value": "/data"},
            {"name": "IBRIK_ADMIN__TOKEN_FILE", "value": "/etc/admin/token"},
            {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "GREETING", "value": "$(NAME)!"},
        ],
        "volumeMounts": [
            {"name": "data", "mountPath": "/data"},
            {"name": "admin", "mountPath": "/etc/admin"},
        ],
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "admin"}},
    }
    claim = {
        "metadata": {"name": "data", "labels": LABELS},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "brokers", "namespace": namespace},
        "spec": {
            "serviceName": "brokers",
            "selector": {"matchLabels": LABELS},
            "template": {
                "metadata": {"labels": LABELS},
                "spec": {
                    "containers": [spec | container],
                    "volumes": [{"name": "admin", "secret": {"secretName": "admin"}}],
                },
            },
            "volumeClaimTemplates": [claim],
        },
    }


def state_of(pod: Document) -> Document:
    return pod.get("status", {}).get("containerStatuses", [{}])[0]


def is_ready(pod: Document) -> bool:
    return bool(state_of(pod).get("ready"))


def waits_for(reason: str) -> Any:
    return lambda pod: state_of(pod).get("state", {}).get("waiting", {}).get("reason") == reason


def test_a_pod_is_a_broker_that_keeps_its_volume(
    cluster: Cluster, kubelet: Kubelet, namespace: str
) -> None:
    cluster.apply(broker_set(namespace))
    cluster.wait(POD, "brokers-0", namespace, waits_for("ContainerCreating"))
    cluster.apply(secret(namespace, "first"))
    pod = cluster.wait(POD, "brokers-0", namespace, is_ready)
    url = f"http://{pod['status']['podIP']}:8080/v1/topics"
    assert urllib3.request("GET", url).status == 200
    process = kubelet.process(namespace, "brokers-0")
    assert process.environment is not None
    assert process.environment["GREETING"] == "brokers-0!"
    volume = process.environment["IBRIK_DATA"]

    process.crash()
    restarted = cluster.wait(
        POD, "brokers-0", namespace, lambda p: is_ready(p) and state_of(p)["restartCount"] == 1
    )
    assert restarted["metadata"]["uid"] == pod["metadata"]["uid"]

    cluster.delete(POD, "brokers-0", namespace)
    other = cluster.wait(
        POD,
        "brokers-0",
        namespace,
        lambda p: is_ready(p) and p["metadata"]["uid"] != pod["metadata"]["uid"],
    )
    assert other["status"]["podIP"] != pod["status"]["podIP"]
    environment = kubelet.process(namespace, "brokers-0").environment
    assert environment is not None
    assert environment["IBRIK_DATA"] == volume


def test_what_does_not_work_is_told_as_a_node_tells_it(
    cluster: Cluster, kubelet: Kubelet, namespace: str
) -> None:
    kubelet.missing_images.add("nowhere/broker:1")
    cluster.apply(secret(namespace, "first"))
    cluster.apply(broker_set(namespace, image="nowhere/broker:1"))
    cluster.wait(POD, "brokers-0", namespace, waits_for("ImagePullBackOff"))
    wrong = [{"name": "IBRIK_NO_SUCH_SETTING", "value": "1"}]
    cluster.apply(broker_set(namespace, env=wrong), force=True)
    cluster.delete(POD, "brokers-0", namespace)
    cluster.wait(POD, "brokers-0", namespace, waits_for("CrashLoopBackOff"))
    assert "unknown setting" in kubelet.process(namespace, "brokers-0").log.read_text()


def test_a_secret_reaches_the_pod_while_it_runs(
    cluster: Cluster, kubelet: Kubelet, namespace: str
) -> None:
    cluster.apply(secret(namespace, "first"))
    cluster.apply(broker_set(namespace))
    cluster.wait(POD, "brokers-0", namespace, is_ready)
    environment = kubelet.process(namespace, "brokers-0").environment
    assert environment is not None
    file = environment["IBRIK_ADMIN__TOKEN_FILE"]
    assert Path(file).read_text() == "first"
    cluster.apply(secret(namespace, "second"))
    kubelet.wait_for_a_look()
    assert Path(file).read_text() == "second"


def test_a_volume_grows_when_its_class_lets_it(
    cluster: Cluster, kubelet: Kubelet, namespace: str
) -> None:
    head = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "none"}
    cluster.apply(head | {"metadata": {"name": "grows"}, "allowVolumeExpansion": True})
    claim = {"accessModes": ["ReadWriteOnce"], "storageClassName": "grows"}
    document = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data-brokers-0", "namespace": namespace, "labels": LABELS},
        "spec": claim | {"resources": {"requests": {"storage": "1Gi"}}},
    }
    cluster.apply(document)

    def has(size: str) -> Any:
        return lambda c: c.get("status", {}).get("capacity", {}).get("storage") == size

    cluster.wait(CLAIM, "data-brokers-0", namespace, has("1Gi"))
    cluster.apply(document | {"spec": claim | {"resources": {"requests": {"storage": "2Gi"}}}})
    cluster.wait(CLAIM, "data-brokers-0", namespace, has("2Gi"))
    assert kubelet.failures == []
