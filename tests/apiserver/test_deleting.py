"""Deletion in every order, with and without an operator: it always completes, and loses nothing."""

import itertools

import pytest

from tests.support.cluster import Cluster
from tests.support.declared import (
    CHANNEL,
    POD,
    POOL,
    SUBSCRIPTION,
    TOPIC,
    channel,
    pool,
    subscription,
    topic,
)
from tests.support.kubelet import Kubelet
from tests.support.shop import Shop, opened

NAMESPACE = "v1/Namespace"
KINDS = {"pool": (POOL, "main"), "topic": (TOPIC, "orders"), "reader": (SUBSCRIPTION, "reader")}
FIRST = "ibrik-main-0"
DELETE = {"deletionPolicy": "Delete"}


def fill(shop: Shop) -> None:
    # The pool `default` would come back while a topic needs it.
    shop.apply(pool("main", ""))
    shop.apply(topic("orders", "", pool={"name": "main"}, **DELETE))
    shop.apply(topic("kept", "", pool={"name": "main"}))
    shop.apply(subscription("reader", "", "orders", **DELETE))
    shop.apply(channel("hook", "", http={"url": "http://127.0.0.1:9/"}))
    shop.ready(TOPIC, "orders")
    shop.ready(SUBSCRIPTION, "reader")


@pytest.mark.parametrize("order", list(itertools.permutations(KINDS)), ids="-".join)
def test_resources_go_in_any_order(shop: Shop, order: tuple[str, ...]) -> None:
    fill(shop)
    for one in order:
        shop.delete(*KINDS[one])
    for one in order:
        shop.gone(*KINDS[one])
    shop.gone(POD, FIRST)


def test_a_namespace_goes_with_everything_in_it(own_shop: Shop) -> None:
    fill(own_shop)
    own_shop.cluster.delete(NAMESPACE, own_shop.namespace)
    own_shop.cluster.wait_gone(NAMESPACE, own_shop.namespace)


def test_a_namespace_goes_while_its_pool_never_started(own_shop: Shop) -> None:
    own_shop.kubelet.missing_images.add("nowhere/broker:7")
    head = {"apiVersion": "ibrik.dev/v1beta1", "kind": "BrokerPool"}
    own_shop.apply(head | {"metadata": {"name": "default"}, "spec": {"image": "nowhere/broker:7"}})
    own_shop.apply(topic("orders", "", **DELETE))
    own_shop.wait(TOPIC, "orders", lambda t: t["metadata"].get("finalizers"))
    own_shop.cluster.delete(NAMESPACE, own_shop.namespace)
    own_shop.cluster.wait_gone(NAMESPACE, own_shop.namespace)


def test_what_is_deleted_while_no_operator_runs_is_finished_by_the_next_one(
    cluster: Cluster, kubelet: Kubelet, namespace: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with opened(cluster, kubelet, namespace, tmp_path_factory.mktemp("first")) as shop:
        fill(shop)
        kept = shop.ready(TOPIC, "kept")["status"]["topicId"]
        shop.publish("kept", b"1", pod=FIRST)
    for kind, name in ((TOPIC, "orders"), (TOPIC, "kept"), (CHANNEL, "hook")):
        cluster.delete(kind, name, namespace)
    assert cluster.get(TOPIC, "orders", namespace)["metadata"]["deletionTimestamp"]
    cluster.wait_gone(TOPIC, "kept", namespace)
    with opened(cluster, kubelet, namespace, tmp_path_factory.mktemp("second")) as shop:
        shop.gone(TOPIC, "orders")
        status, answer = shop.ask("GET", "/v1/topics/orders/partitions", pod=FIRST)
        assert (status, answer["code"]) == (404, "unknown-topic")
        # Nobody said Delete of this one: it is there for whoever declares it again.
        shop.apply(topic("kept", "", pool={"name": "main"}))
        assert shop.ready(TOPIC, "kept")["status"]["topicId"] == kept
        assert shop.messages("kept", pod=FIRST) == 1
        told = cluster.objects("v1/Event", namespace, fields="reason=Adopted")
        assert [one["involvedObject"]["name"] for one in told] == ["kept"]


def test_forgotten_topics_are_detached_when_they_were_missed_twice(
    cluster: Cluster, kubelet: Kubelet, namespace: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with opened(cluster, kubelet, namespace, tmp_path_factory.mktemp("first")) as shop:
        for name in ("a", "b", "c"):
            shop.apply(topic(name, ""))
            shop.ready(TOPIC, name)
    cluster.delete(TOPIC, "a", namespace)
    cluster.wait_gone(TOPIC, "a", namespace)
    with opened(cluster, kubelet, namespace, tmp_path_factory.mktemp("second")) as shop:
        shop.ready(TOPIC, "b")
        status, answer = shop.ask("POST", "/v1/topics/a/messages", b"1")
        assert status == 201, answer  # One absence is no proof.
        shop.eventually(lambda: shop.ask("POST", "/v1/topics/a/messages", b"2")[0] == 404)
        _, answer = shop.ask("POST", "/v1/topics/a/messages", b"3")
        assert answer["code"] == "topic-detached"
        assert shop.ask("POST", "/v1/topics/b/messages", b"1")[0] == 201
