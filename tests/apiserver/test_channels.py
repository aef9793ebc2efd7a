"""Channels as people declare them: where they are served, their secrets, who may name them."""

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cluster import Cluster, Document, condition
from tests.support.declared import (
    CHANNEL,
    SECRET,
    SUBSCRIPTION,
    channel,
    is_so,
    subscription,
    topic,
    wait_ready,
)
from tests.support.kubelet import Kubelet
from tests.support.operator_process import install_rights, running_operator
from tests.support.shop import Shop

HTTP = {"url": "https://example.com/hook"}
CREDENTIALS = "ibrik-default-credentials"


def secret(name: str, **values: str) -> Document:
    metadata = {"name": name, "labels": {"ibrik.dev/watch": "true"}}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": values}


def guarded(name: str, secret_name: str) -> Document:
    """A channel that says who it is with the key `token` of a Secret."""
    reference = {"secretRef": {"name": secret_name, "key": "token"}}
    return channel(name, "", http=HTTP, auth={"bearer": reference})


def copied(shop: Shop, name: str) -> str | None:
    """What the brokers are given for the key `token` of that Secret."""
    data = shop.get(SECRET, CREDENTIALS).get("data") or {}
    encoded = data.get(f"{shop.namespace}_{name}_token")
    return None if encoded is None else base64.b64decode(encoded).decode()


def test_a_channel_says_where_it_delivers_to(shop: Shop) -> None:
    shop.apply(topic("orders", ""))
    shop.apply(channel("plain", "", http=HTTP))
    status = shop.ready(CHANNEL, "plain")["status"]
    assert (status["destinationHost"], status["destinationPort"]) == ("example.com", 443)
    assert status["channelId"]


def test_a_secret_that_lacks_is_named_and_its_coming_heals(shop: Shop) -> None:
    shop.apply(topic("orders", ""))
    shop.apply(guarded("waiting", "late"))
    assert f"there is no Secret 'late' in namespace '{shop.namespace}'" in shop.not_ready(
        CHANNEL, "waiting", "SecretMissing"
    )
    shop.apply(secret("late", other="x"))
    assert "no key 'token'" in shop.not_ready(CHANNEL, "waiting", "KeyMissing")
    shop.apply(secret("late", other="x", token="first-value"))
    shop.ready(CHANNEL, "waiting")
    assert copied(shop, "late") == "first-value"


def test_a_rotated_secret_reaches_the_brokers_and_shows_nowhere(shop: Shop) -> None:
    shop.apply(topic("orders", ""))
    shop.apply(secret("rotating", token="value-before-rotation"))
    shop.apply(guarded("rotated", "rotating"))
    shop.ready(CHANNEL, "rotated")
    shop.apply(secret("rotating", token="value-after-rotation"))
    key = f"{shop.namespace}_rotating_token"
    wish = base64.b64encode(b"value-after-rotation").decode()
    shop.wait(SECRET, CREDENTIALS, lambda one: (one.get("data") or {}).get(key) == wish)
    shop.kubelet.wait_for_a_look()
    shop.ready(CHANNEL, "rotated")
    told = str(shop.get(CHANNEL, "rotated")) + shop.operator.log.read_text()
    told += str(shop.cluster.objects("v1/Event", shop.namespace))
    assert "-rotation" not in told


def test_credentials_that_somebody_changed_come_back(shop: Shop) -> None:
    shop.apply(topic("orders", ""))
    shop.apply(secret("stable", token="right"))
    shop.apply(guarded("stable", "stable"))
    shop.ready(CHANNEL, "stable")
    key = f"{shop.namespace}_stable_token"
    shop.patch(SECRET, CREDENTIALS, {"data": {key: base64.b64encode(b"wrong").decode()}})
    right = base64.b64encode(b"right").decode()
    shop.wait(SECRET, CREDENTIALS, lambda one: (one.get("data") or {}).get(key) == right)
    shop.delete(SECRET, CREDENTIALS)
    shop.wait(SECRET, CREDENTIALS, lambda one: (one.get("data") or {}).get(key) == right)


def test_what_no_channel_needs_any_more_leaves_the_credentials(shop: Shop) -> None:
    shop.apply(topic("orders", ""))
    shop.apply(secret("brief", token="x"))
    shop.apply(guarded("brief", "brief"))
    shop.ready(CHANNEL, "brief")
    shop.apply(channel("brief", "", http=HTTP))
    key = f"{shop.namespace}_brief_token"
    shop.wait(SECRET, CREDENTIALS, lambda one: key not in (one.get("data") or {}))


def test_a_channel_without_a_pool_waits_for_one(own_shop: Shop) -> None:
    own_shop.apply(channel("early", "", http=HTTP))
    assert "no pool serves Channel 'early' yet" in own_shop.not_ready(CHANNEL, "early", "NotUsed")
    own_shop.apply(topic("orders", ""))
    own_shop.ready(CHANNEL, "early")


@pytest.fixture
def two(
    cluster: Cluster, kubelet: Kubelet, namespace: str, tmp_path: Path
) -> Iterator[tuple[str, str]]:
    """Two namespaces with one operator."""
    other = cluster.new_namespace(f"{namespace}-tools")
    account = install_rights(cluster, f"ibrik-{namespace}", [namespace, other])
    with running_operator(cluster, account, tmp_path, [namespace, other]) as operator:
        yield namespace, other
        assert operator.process.poll() is None, operator.log.read_text()[-4000:]


def test_a_channel_of_another_namespace_is_used_only_with_its_consent(
    cluster: Cluster, two: tuple[str, str]
) -> None:
    shop, tools = two
    cluster.apply(topic("orders", shop))
    cluster.apply(channel("mail", tools, http=HTTP))
    cluster.apply(
        subscription(
            "mailing", shop, "orders", mode="push", channelRef={"name": "mail", "namespace": tools}
        )
    )
    denied = cluster.wait(
        SUBSCRIPTION, "mailing", shop, is_so("Ready", "False", "DestinationNotAllowed")
    )
    assert "Set its allowedNamespaces to All" in condition(denied, "Ready")["message"]
    cluster.apply(channel("mail", tools, http=HTTP, allowedNamespaces="All"), force=True)
    wait_ready(cluster, SUBSCRIPTION, "mailing", shop)
    wait_ready(cluster, CHANNEL, "mail", tools)
    assert cluster.objects("ibrik.dev/v1beta1/BrokerPool", tools) == []
    cluster.apply(channel("mail", tools, http=HTTP, allowedNamespaces="Same"), force=True)
    cluster.wait(SUBSCRIPTION, "mailing", shop, is_so("Ready", "False", "DestinationNotAllowed"))
