"""Subscriptions as people declare them: in any order, with what they need or without it."""

import itertools

from tests.support.cluster import Document, condition
from tests.support.declared import (
    CHANNEL,
    POOL,
    SUBSCRIPTION,
    TOPIC,
    channel,
    is_so,
    subscription,
    topic,
)
from tests.support.shop import Shop

HTTP = {"url": "https://example.com/hook"}


def trio(name: str, policy: str = "Retain") -> dict[str, Document]:
    """A topic, a channel, and the subscription that joins them."""
    return {
        TOPIC: topic(name, "", deletionPolicy=policy),
        CHANNEL: channel(name, "", http=HTTP),
        SUBSCRIPTION: subscription(
            name, "", name, mode="push", channelRef={"name": name}, deletionPolicy=policy
        ),
    }


def told(shop: Shop, reason: str) -> Document:
    """The event of the pool for this reason."""
    for _, seen in shop.cluster.watch("v1/Event", shop.namespace, timeout_s=120):
        if seen["reason"] == reason and seen["involvedObject"]["kind"] == "BrokerPool":
            return seen
    raise AssertionError(f"no event says {reason}")


def test_everything_gets_ready_in_whatever_order_it_comes(shop: Shop) -> None:
    orders = list(itertools.permutations([TOPIC, CHANNEL, SUBSCRIPTION]))
    for number, order in enumerate(orders):
        parts = trio(f"ordered-{number}")
        for kind in order:
            shop.apply(parts[kind])
    for number, order in enumerate(orders):
        for kind in order:
            shop.ready(kind, f"ordered-{number}")
    seen = shop.wait(TOPIC, "ordered-0", lambda one: one["status"].get("subscriptions") == 1)
    assert condition(seen, "Ready")["status"] == "True"


def test_everything_goes_in_whatever_order_it_is_deleted(shop: Shop) -> None:
    orders = list(itertools.permutations([TOPIC, CHANNEL, SUBSCRIPTION]))
    for number, _ in enumerate(orders):
        for document in trio(f"going-{number}", "Delete").values():
            shop.apply(document)
    for number, order in enumerate(orders):
        for kind in order:
            shop.ready(kind, f"going-{number}")
    for number, order in enumerate(orders):
        for kind in order:
            shop.delete(kind, f"going-{number}")
    for number, order in enumerate(orders):
        for kind in order:
            shop.gone(kind, f"going-{number}")
        assert shop.ask("GET", f"/v1/topics/going-{number}")[0] == 404


def test_what_lacks_is_named_and_its_coming_heals(shop: Shop) -> None:
    parts = trio("lacking")
    shop.apply(parts[SUBSCRIPTION])
    assert "there is no Topic 'lacking'" in shop.not_ready(SUBSCRIPTION, "lacking", "TopicNotFound")
    shop.apply(parts[TOPIC])
    assert "there is no Channel 'lacking'" in shop.not_ready(
        SUBSCRIPTION, "lacking", "DestinationNotFound"
    )
    shop.apply(parts[CHANNEL])
    shop.ready(SUBSCRIPTION, "lacking")


def test_a_channel_that_goes_shows_and_its_return_heals(shop: Shop) -> None:
    parts = trio("returning")
    for document in parts.values():
        shop.apply(document)
    shop.ready(SUBSCRIPTION, "returning")
    shop.delete(CHANNEL, "returning")
    shop.not_ready(SUBSCRIPTION, "returning", "DestinationNotFound")
    # The brokers confirmed this generation, and that stays so.
    assert is_so("DataPlaneReady")(shop.get(SUBSCRIPTION, "returning"))
    shop.apply(parts[CHANNEL])
    shop.ready(SUBSCRIPTION, "returning")


def test_a_subscription_goes_although_its_topic_went_first(shop: Shop) -> None:
    parts = trio("orphaned", "Delete")
    for document in parts.values():
        shop.apply(document)
    shop.ready(SUBSCRIPTION, "orphaned")
    shop.patch(TOPIC, "orphaned", {"spec": {"deletionPolicy": "Retain"}})
    shop.ready(TOPIC, "orphaned")
    shop.delete(TOPIC, "orphaned")
    shop.gone(TOPIC, "orphaned")
    shop.not_ready(SUBSCRIPTION, "orphaned", "TopicNotFound")
    shop.delete(SUBSCRIPTION, "orphaned")
    shop.gone(SUBSCRIPTION, "orphaned")
    assert shop.ask("GET", "/v1/subscriptions/orphaned")[0] == 404


def test_the_backlog_shows_in_the_status(shop: Shop) -> None:
    shop.apply(topic("counted", ""))
    shop.apply(subscription("counted", "", "counted", mode="pull", start={"from": "earliest"}))
    shop.ready(SUBSCRIPTION, "counted")
    shop.publish("counted", b"1", b"2", b"3")
    shop.wait(SUBSCRIPTION, "counted", lambda one: one["status"].get("backlog") == 3)
    shop.wait(TOPIC, "counted", lambda one: one["status"].get("messages") == 3)


def test_from_creation_to_ready_takes_one_write_for_each_resource(shop: Shop) -> None:
    shop.apply(topic("first", ""))
    shop.ready(TOPIC, "first")
    since = shop.cluster.audit_position()
    for kind, document in trio("thrifty").items():
        shop.apply(document)
        shop.ready(kind, "thrifty")

    def written() -> list[tuple[str, str]]:
        writes = shop.operator.writes(since)
        return sorted((one.resource, one.verb) for one in writes if one.name == "thrifty")

    # The topic once more and the channel once more: they count the subscription.
    shop.eventually(lambda: len(written()) >= 5)
    assert written() == [
        ("channels", "patch"),
        ("channels", "patch"),
        ("subscriptions", "patch"),
        ("topics", "patch"),
        ("topics", "patch"),
    ]


def test_a_paused_subscription_is_left_as_it_is(shop: Shop) -> None:
    shop.apply(topic("held", ""))
    shop.apply(subscription("held", "", "held", mode="pull"))
    shop.ready(SUBSCRIPTION, "held")
    shop.patch(SUBSCRIPTION, "held", {"metadata": {"annotations": {"ibrik.dev/paused": "true"}}})
    shop.wait(SUBSCRIPTION, "held", is_so("Reconciling", "False", "Paused"))
    shop.patch(SUBSCRIPTION, "held", {"spec": {"ack": {"maxInFlight": 7}}})
    shop.wait(
        SUBSCRIPTION,
        "held",
        lambda one: one["status"]["observedGeneration"] == one["metadata"]["generation"],
    )
    shop.patch(SUBSCRIPTION, "held", {"metadata": {"annotations": {"ibrik.dev/paused": None}}})
    shop.ready(SUBSCRIPTION, "held")


def test_when_most_is_gone_everything_stays_until_a_person_says_so(own_shop: Shop) -> None:
    shop = own_shop
    for document in trio("doubtful").values():
        shop.apply(document)
    for kind in trio("doubtful"):
        shop.ready(kind, "doubtful")
    for kind in trio("doubtful"):
        shop.delete(kind, "doubtful")
    stopped = told(shop, "DetachStopped")
    assert "3 of 3 resources" in stopped["message"]
    assert "detach-absent=3" in stopped["message"]
    shop.publish("doubtful", b"served on")
    shop.patch(POOL, "default", {"metadata": {"annotations": {"ibrik.dev/detach-absent": "3"}}})
    told(shop, "Detached")
    shop.apply(topic("doubtful", ""))
    shop.ready(TOPIC, "doubtful")
    assert shop.messages("doubtful") == 1
