"""A subscription pushes through a channel of another namespace, if that allows it."""

from e2e.support.cluster import Cluster
from e2e.support.pods import Client, start_sink, wait_received
from e2e.support.resources import resource, topic


def test_a_channel_of_another_namespace_needs_its_consent(
    installed: Cluster, namespace: str, client: Client
) -> None:
    other = installed.new_namespace(f"{namespace}-other")
    try:
        start_sink(installed, other)
        service = {"name": "sink", "port": 80}
        installed.apply(resource("Channel", "billing", service=service), namespace=other)
        subscription = resource(
            "Subscription",
            "billing",
            topicRef={"name": "orders"},
            mode="push",
            channelRef={"name": "billing", "namespace": other},
            start={"from": "earliest"},
        )
        installed.apply(topic("orders"), subscription, namespace=namespace)
        refused = installed.wait_condition(
            "subscriptions.ibrik.dev", "billing", namespace, "DestinationResolved=False"
        )
        client.publish("orders", 4711, 1)
        assert any(other in one["message"] for one in refused["status"]["conditions"])
        consent = resource("Channel", "billing", service=service, allowedNamespaces="All")
        installed.apply(consent, namespace=other)
        installed.wait_condition("subscriptions.ibrik.dev", "billing", namespace, "Ready=True")
        wait_received(installed, other, "4711")
    finally:
        installed.kubectl("delete", "namespace", other, "--wait=false")
