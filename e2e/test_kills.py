"""Pods are killed, as nodes and people do; nothing that was acknowledged is lost."""

from e2e.support.cluster import SYSTEM, Cluster, until
from e2e.support.pods import Client
from e2e.support.resources import topic


def test_every_acknowledged_message_is_found_after_the_broker_was_killed(
    installed: Cluster, namespace: str, client: Client
) -> None:
    installed.apply(topic("orders"), namespace=namespace)
    installed.wait_condition("topics.ibrik.dev", "orders", namespace, "Ready=True")
    client.publish("orders", 0, 200)
    before = installed.find("pod", "ibrik-default-0", namespace)
    assert before is not None
    installed.kubectl(
        "delete", "pod", "ibrik-default-0", "--namespace", namespace, "--grace-period=0", "--force"
    )
    client.publish("orders", 200, 50)  # By the old process, while it lives, or by the next one.
    installed.wait_replaced(before)
    assert client.read("orders") == list(range(250))


def test_the_operator_is_killed_and_the_other_replica_goes_on(
    installed: Cluster, namespace: str
) -> None:
    installed.apply(topic("first"), namespace=namespace)
    installed.wait_condition("topics.ibrik.dev", "first", namespace, "Ready=True")
    leader = holder(installed)
    installed.kubectl("delete", "pod", leader, "--namespace", SYSTEM, "--grace-period=0", "--force")
    installed.apply(topic("second"), namespace=namespace)
    installed.wait_condition("topics.ibrik.dev", "second", namespace, "Ready=True")
    assert until("another replica leads", lambda: (now := holder(installed)) != leader and now)


def holder(cluster: Cluster) -> str:
    lease = cluster.find("lease", "ibrik-operator", SYSTEM)
    assert lease is not None
    return str(lease["spec"].get("holderIdentity", ""))
