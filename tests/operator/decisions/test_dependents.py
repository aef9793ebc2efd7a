"""Whom a change concerns: all who could become right by it, and nobody for a status of our own."""

from typing import Any

import pytest

from ibrik_operator.decisions.dependents import dependents
from ibrik_operator.keys import Document
from tests.support.resources import channel, keys, pool, resource, subscription, topic, world_of

SECRET = {
    "http": {"url": "https://example.com"},
    "auth": {"bearer": {"secretRef": {"name": "token", "key": "value"}}},
}


def changed(document: Document, **metadata: Any) -> dict[str, Any]:
    return {**document, "metadata": {**document["metadata"], **metadata}}


def with_ready(document: Document, status: str) -> dict[str, Any]:
    return {**document, "status": {"conditions": [{"type": "Ready", "status": status}]}}


def world() -> Any:
    return world_of(
        pool(),
        pool("big"),
        topic("orders"),
        topic("orders-too", {"topicName": "orders"}),
        topic("clicks", {"pool": {"name": "big"}}),
        subscription("billing", of="orders", to="billing"),
        subscription("audit", of="clicks", to="shop/billing"),
        subscription("remote", of="orders", to="shop/billing", namespace="other"),
        channel("billing"),
        channel("guarded", spec=SECRET),
    )


@pytest.mark.parametrize(
    ("before", "after", "concerned"),
    [
        pytest.param(
            None,
            topic("orders"),
            ["Topic/orders", "BrokerPool/default", "Topic/orders-too", "Subscription/billing",
             "Channel/billing"],
            id="a topic appears: its pool, its rivals, its subscriptions and their channels",
        ),
        pytest.param(
            topic("orders", ready=False),
            topic("orders", ready=True),
            ["BrokerPool/default", "Topic/orders", "Topic/orders-too", "Subscription/billing",
             "Channel/billing"],
            id="a topic becomes ready",
        ),
        pytest.param(
            topic("orders"),
            None,
            ["Topic/orders", "Observation/default", "BrokerPool/default", "Topic/orders-too",
             "Subscription/billing", "Channel/billing"],
            id="a topic is gone: its pool is looked at too",
        ),
        pytest.param(
            topic("old", {"archive": {"enabled": True}}),
            topic("old", {"archive": {"enabled": False}}, generation=2),
            ["Topic/old", "BrokerPool/default", "Archive/default"],
            id="a topic is archived no longer: its pool's schedules are looked at",
        ),
        pytest.param(
            channel("billing", generation=1),
            channel("billing", generation=2),
            ["Channel/billing", "Subscription/billing", "Subscription/audit",
             "Subscription/other/remote"],
            id="a channel changes: all who name it, from every namespace",
        ),
        pytest.param(
            None,
            subscription("billing", of="orders", to="billing"),
            ["Subscription/billing", "Topic/orders", "Channel/billing"],
            id="a subscription appears: its topic counts it, its channel may get a pool",
        ),
        pytest.param(
            with_ready(pool("big"), "False"),
            with_ready(pool("big"), "True"),
            ["Observation/big", "Archive/big", "Topic/clicks", "Subscription/audit",
             "Channel/billing", "Channel/guarded"],
            id="a pool becomes ready: what it serves, and nothing of other pools",
        ),
    ],
)  # fmt: skip
def test_a_change_concerns(
    before: Document | None, after: Document | None, concerned: list[str]
) -> None:
    found = dependents(before, after, world())
    assert len(found) == len(set(found))
    assert set(found) == set(keys(*concerned))


@pytest.mark.parametrize("make", [topic, subscription, channel, pool])
def test_a_status_that_flips_nothing_concerns_nobody(make: Any) -> None:
    before = make(ready=True, status={"observedGeneration": 1})
    after = changed(make(ready=True, status={"observedGeneration": 2}), resourceVersion="2")
    assert dependents(before, after, world()) == []


@pytest.mark.parametrize(
    "metadata",
    [
        {"generation": 2},
        {"annotations": {"ibrik.dev/paused": "true"}},
        {"deletionTimestamp": "2026-11-28T11:00:00Z"},
        {"finalizers": []},
        {"uid": "another"},
    ],
)
def test_whatever_may_change_the_verdict_concerns_the_resource_itself(
    metadata: dict[str, Any],
) -> None:
    before = subscription("billing", of="orders", to="billing")
    assert keys("Subscription/billing")[0] in dependents(
        before, changed(before, **metadata), world()
    )


def test_a_child_concerns_its_pool() -> None:
    pod = resource("Pod", "ibrik-big-0", labels={"ibrik.dev/pool": "big"})
    assert dependents(None, pod, world()) == keys("BrokerPool/big")
    assert dependents(None, resource("Pod", "stranger"), world()) == []


def test_a_secret_concerns_the_pools_whose_channels_use_it() -> None:
    token, unused = resource("Secret", "token"), resource("Secret", "unused")
    assert dependents(token, token, world()) == keys("Credentials/default")
    assert dependents(unused, None, world()) == []
    elsewhere = resource("Secret", "token", namespace="other")
    assert dependents(None, elsewhere, world()) == []


def test_an_event_of_a_topic_walks_over_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    known = world()
    monkeypatch.setattr(type(known), "all", lambda *_: pytest.fail("a walk over everything"))
    assert dependents(None, topic("orders"), known)
    assert dependents(None, subscription("billing", of="orders", to="billing"), known)
    assert dependents(None, channel("billing"), known)
