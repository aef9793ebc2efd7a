"""Volumes outlive their claims and are bound again, as docs/guides/backup.md tells it."""

import json
from collections.abc import Iterator

import pytest

from e2e.support.cluster import Cluster, until
from e2e.support.pods import Client, start_client
from e2e.support.resources import pool, topic

CLAIM = "data-ibrik-default-0"
NAMES = ("orders", "payments", "returns")
COUNT = 50


@pytest.fixture
def volume(installed: Cluster, namespace: str, client: Client) -> Iterator[str]:
    """The volume, set to Retain, of a pool whose topics hold messages; it goes with the test."""
    installed.apply(pool(), *(topic(name) for name in NAMES), namespace=namespace)
    for number, name in enumerate(NAMES):
        installed.wait_condition("topics.ibrik.dev", name, namespace, "Ready=True")
        client.publish(name, number * COUNT, COUNT)
    claim = installed.find("pvc", CLAIM, namespace)
    assert claim is not None
    found: str = claim["spec"]["volumeName"]
    reclaim(installed, found, "Retain")
    yield found
    reclaim(installed, found, "Delete")
    installed.kubectl("delete", "pv", found, "--wait=false")  # When it is bound: with its claim.


def test_a_retained_volume_that_is_bound_again_gives_every_message_back(
    installed: Cluster, namespace: str, client: Client, volume: str
) -> None:
    before = topic_ids(installed, namespace)
    # Topics first: as long as one names the pool `default`, the operator makes that pool again.
    for kind in ("topics.ibrik.dev", "brokerpools.ibrik.dev"):
        installed.kubectl("delete", kind, "--all", "--namespace", namespace)
    installed.kubectl("delete", "pvc", CLAIM, "--namespace", namespace)
    bind_again(installed, volume, namespace)
    installed.apply(pool(), *(topic(name) for name in NAMES), namespace=namespace)
    assert_everything_is_back(installed, namespace, client, volume, before)


@pytest.mark.full
def test_a_retained_volume_moves_to_another_namespace_with_every_message(
    installed: Cluster, namespace: str, volume: str
) -> None:
    before = topic_ids(installed, namespace)
    installed.delete_namespace(namespace, timeout_s=180)
    other = installed.new_namespace(f"{namespace}-moved")
    try:
        bind_again(installed, volume, other)
        moved = pool()
        # The three topics of the namespace before are more than half of what the pool serves.
        moved["metadata"]["annotations"] = {"ibrik.dev/detach-absent": str(len(NAMES))}
        installed.apply(moved, *(topic(name) for name in NAMES), namespace=other)
        client = start_client(installed, other)
        assert_everything_is_back(installed, other, client, volume, before)
    finally:
        installed.kubectl("delete", "namespace", other, "--wait=false")


def reclaim(cluster: Cluster, volume: str, policy: str) -> None:
    patch = {"spec": {"persistentVolumeReclaimPolicy": policy}}
    cluster.kubectl("patch", "pv", volume, "--patch", json.dumps(patch))


def bind_again(cluster: Cluster, volume: str, namespace: str) -> None:
    """What a person does: promise the volume to another claim, and make that."""
    wait_phase(cluster, volume, "Released")
    claimed = {"kind": "PersistentVolumeClaim", "namespace": namespace, "name": CLAIM}
    promise = [{"op": "replace", "path": "/spec/claimRef", "value": claimed}]
    cluster.kubectl("patch", "pv", volume, "--type=json", "--patch", json.dumps(promise))
    found = wait_phase(cluster, volume, "Available")
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": CLAIM},
        "spec": {
            "volumeName": volume,
            "storageClassName": found["storageClassName"],
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": found["capacity"]["storage"]}},
        },
    }
    cluster.apply(claim, namespace=namespace)


def wait_phase(cluster: Cluster, volume: str, phase: str) -> dict[str, dict[str, str]]:
    """Its spec, as soon as it is so."""

    def look() -> dict[str, dict[str, str]] | None:
        found = cluster.find("pv", volume)
        assert found is not None, f"the volume {volume} is gone"
        return found["spec"] if found["status"]["phase"] == phase else None

    return until(f"the volume {volume} is {phase}", look)


def topic_ids(cluster: Cluster, namespace: str) -> dict[str, str]:
    topics = cluster.objects("topics.ibrik.dev", namespace)
    return {one["metadata"]["name"]: one["status"]["topicId"] for one in topics}


def assert_everything_is_back(
    cluster: Cluster, namespace: str, client: Client, volume: str, before: dict[str, str]
) -> None:
    for name in NAMES:
        cluster.wait_condition("topics.ibrik.dev", name, namespace, "Ready=True", timeout_s=180)
    assert topic_ids(cluster, namespace) == before
    claim = cluster.find("pvc", CLAIM, namespace)
    assert claim is not None
    assert claim["spec"]["volumeName"] == volume
    labels = claim["metadata"]["labels"]
    assert labels["ibrik.dev/pool"] == "default", "the operator looks after this claim, too"
    for number, name in enumerate(NAMES):
        first = number * COUNT
        assert client.read(name) == list(range(first, first + COUNT))
