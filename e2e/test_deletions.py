"""What is deleted goes, in time; what is kept is found again."""

from dataclasses import replace

import pytest

from e2e.support.cluster import Cluster, until
from e2e.support.pods import Client
from e2e.support.resources import pool, topic


def test_a_namespace_goes_within_a_minute_whatever_its_topics_say(
    installed: Cluster, namespace: str
) -> None:
    policies = ("Retain", "Delete", "DeleteIfEmpty")
    topics = [topic(policy.lower(), deletionPolicy=policy) for policy in policies]
    installed.apply(*topics, namespace=namespace)
    for policy in policies:
        installed.wait_condition("topics.ibrik.dev", policy.lower(), namespace, "Ready=True")
    installed.delete_namespace(namespace, timeout_s=60)


def test_a_pool_that_is_made_again_finds_its_topics_on_the_kept_claims(
    installed: Cluster, namespace: str, client: Client
) -> None:
    client = replace(client, url="http://ibrik-kept:8080")
    orders = topic("orders", pool={"name": "kept"})
    installed.apply(pool("kept"), orders, namespace=namespace)
    before = installed.wait_condition("topics.ibrik.dev", "orders", namespace, "Ready=True")
    client.publish("orders", 0, 50)
    installed.kubectl("delete", "brokerpools.ibrik.dev", "kept", "--namespace", namespace)
    until(
        "the pods of the pool are gone",
        lambda: not installed.objects("pods", namespace, "ibrik.dev/pool=kept"),
    )
    assert installed.find("pvc", "data-ibrik-kept-0", namespace) is not None
    installed.apply(pool("kept"), namespace=namespace)
    installed.wait_condition("brokerpools.ibrik.dev", "kept", namespace, "Ready=True")
    after = installed.wait_condition("topics.ibrik.dev", "orders", namespace, "Ready=True")
    assert after["status"]["topicId"] == before["status"]["topicId"]
    assert client.read("orders") == list(range(50))


@pytest.mark.full
def test_a_topic_that_is_retained_is_adopted_again(
    installed: Cluster, namespace: str, client: Client
) -> None:
    installed.apply(topic("orders"), namespace=namespace)
    before = installed.wait_condition("topics.ibrik.dev", "orders", namespace, "Ready=True")
    client.publish("orders", 0, 10)
    installed.kubectl("delete", "topics.ibrik.dev", "orders", "--namespace", namespace)
    installed.apply(topic("orders"), namespace=namespace)
    after = installed.wait_condition("topics.ibrik.dev", "orders", namespace, "Ready=True")
    assert after["status"]["topicId"] == before["status"]["topicId"]
    assert client.read("orders") == list(range(10))
