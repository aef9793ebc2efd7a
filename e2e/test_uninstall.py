"""`helm uninstall` and the deletion of namespaces, in either order: nothing hangs."""

import pytest

from e2e.support.cluster import SYSTEM, Cluster
from e2e.support.pods import start_client
from e2e.support.resources import topic

pytestmark = pytest.mark.reinstalls
PROTECTED = {"deletionPolicy": "Delete"}


def test_a_namespace_goes_after_the_operator_is_uninstalled(
    installed: Cluster, namespace: str
) -> None:
    installed.apply(topic("orders", **PROTECTED), namespace=namespace)
    ready = installed.wait_condition("topics.ibrik.dev", "orders", namespace, "Ready=True")
    assert ready["metadata"]["finalizers"] == ["ibrik.dev/protect"]
    installed.uninstall()
    released = installed.find("topics.ibrik.dev", "orders", namespace)
    assert released is not None, "the definitions and their resources stay"
    assert "finalizers" not in released["metadata"]
    assert installed.objects("pods", namespace, "ibrik.dev/pool=default") != []
    installed.delete_namespace(namespace, timeout_s=60)


def test_the_operator_is_uninstalled_after_a_namespace_went(
    installed: Cluster, namespace: str
) -> None:
    installed.apply(topic("orders", **PROTECTED), namespace=namespace)
    installed.wait_condition("topics.ibrik.dev", "orders", namespace, "Ready=True")
    installed.delete_namespace(namespace, timeout_s=60)
    installed.uninstall()
    left = installed.kubectl(
        "get", "all,serviceaccounts,roles,rolebindings,configmaps", "--namespace", SYSTEM,
        "--output=name",
    )  # fmt: skip
    ours = [line for line in left.split() if "ibrik" in line]
    assert ours == []


@pytest.mark.full
def test_what_was_there_is_served_on_when_the_chart_comes_back(
    installed: Cluster, namespace: str
) -> None:
    installed.apply(topic("orders"), namespace=namespace)
    before = installed.wait_condition("topics.ibrik.dev", "orders", namespace, "Ready=True")
    client = start_client(installed, namespace)
    client.publish("orders", 0, 10)
    installed.uninstall()
    client.publish("orders", 10, 10)  # Brokers need no operator to serve.
    installed.install()
    installed.apply(topic("orders", partitions=2), namespace=namespace)
    after = installed.wait_condition("topics.ibrik.dev", "orders", namespace, "Ready=True")
    assert after["status"]["topicId"] == before["status"]["topicId"]
    assert client.read("orders", partitions=2) == list(range(20))
