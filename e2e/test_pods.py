"""The pods of brokers: of the restricted profile, rolled without a loss, with a volume each."""

import json

from e2e.support.cluster import Cluster, until
from e2e.support.pods import Client
from e2e.support.resources import pool, topic

PROBE_S = 45


def test_brokers_run_where_the_restricted_profile_is_enforced(
    installed: Cluster, namespace: str
) -> None:
    installed.apply(topic("orders"), namespace=namespace)
    installed.wait_condition("topics.ibrik.dev", "orders", namespace, "Ready=True")
    labels = installed.find("namespace", namespace)
    assert labels is not None
    assert labels["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    broker = installed.find("pod", "ibrik-default-0", namespace)
    assert broker is not None
    assert broker["spec"]["automountServiceAccountToken"] is False
    events = installed.objects("events", namespace)
    assert [one["message"] for one in events if "PodSecurity" in one["message"]] == []


def test_a_roll_loses_no_message_and_fails_no_acknowledgement(
    installed: Cluster, namespace: str, client: Client
) -> None:
    installed.apply(pool(), topic("orders"), namespace=namespace)
    installed.wait_condition("topics.ibrik.dev", "orders", namespace, "Ready=True")
    before = installed.find("pod", "ibrik-default-0", namespace)
    assert before is not None
    probe = client.start_probe("orders", PROBE_S)
    installed.apply(pool(config={"logLevel": "debug"}), namespace=namespace)
    installed.wait_replaced(before)
    said, complaint = probe.communicate(timeout=PROBE_S + 120)
    assert probe.returncode == 0, complaint
    report = json.loads(said)
    assert report["acknowledged"] > 0
    assert (report["lost"], report["twice"]) == (0, 0)


def test_low_space_refuses_to_publish_and_says_so_until_there_is_room(
    installed: Cluster, namespace: str, client: Client
) -> None:
    huge = pool(storage={"size": "100Ti"}, config={"minFreeBytes": "90Ti"})
    installed.apply(huge, topic("orders"), namespace=namespace)
    installed.wait_condition(
        "brokerpools.ibrik.dev", "default", namespace, "StorageAvailable=False"
    )
    until(
        "publishing is refused",
        lambda: client.call("POST", "/v1/topics/orders/messages", "1")[0] == 503,
    )
    status, answer = client.call("POST", "/v1/topics/orders/messages", "1")
    assert (status, json.loads(answer)["code"]) == (503, "storage-full")
    low = pool(storage={"size": "100Ti"}, config={"minFreeBytes": "16Mi"})
    installed.apply(low, namespace=namespace)
    client.publish("orders", 0, 1)  # Tries until it is taken.
    installed.wait_condition("brokerpools.ibrik.dev", "default", namespace, "StorageAvailable=True")
    assert client.read("orders") == [0]
