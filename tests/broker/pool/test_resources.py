"""Desired resources and registrations over a pool: real brokers, a real Postgres."""

from collections import Counter
from typing import Any

import pytest

from tests.broker.pool.test_routing import BROKERS, other
from tests.support.pool import PoolOfBrokers, resource, topic

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def results(outcomes: list[dict[str, Any]]) -> list[str]:
    return [outcome["result"] for outcome in outcomes]


def deleted(document: dict[str, Any]) -> dict[str, Any]:
    metadata = document["metadata"] | {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    return document | {"metadata": metadata}


def test_a_list_of_desired_resources_is_carried_out_where_each_belongs(
    pool: PoolOfBrokers,
) -> None:
    topics = [topic(f"desired-{n}") for n in range(6)]
    channel = resource("Channel", "sink", http={"url": "https://sink.example/in"})
    reading = [
        resource(
            "Subscription",
            f"reads-{n}",
            topicRef={"name": f"desired-{n}"},
            mode="push",
            channelRef={"name": "sink"},
        )
        for n in range(6)
    ]
    outcomes = pool.desire(0, *reading, channel, *topics)
    assert results(outcomes) == ["applied"] * 13, outcomes
    assert [outcome["name"] for outcome in outcomes[:6]] == [f"reads-{n}" for n in range(6)]
    for outcome in outcomes[:6]:
        conditions = {c["type"]: c["status"] for c in outcome["observed"]["conditions"]}
        assert conditions["DataPlaneReady"] == conditions["DestinationResolved"] == "True"
    assert set(Counter(pool.owner(f"desired-{n}") for n in range(6)).values()) == {2}
    for number in BROKERS:
        again = pool.desire(number, *topics, channel, *reading)
        assert results(again) == ["unchanged"] * 13, again
    in_use = pool.request(2, "DELETE", "/v1/channels/sink")
    assert in_use.status == 409
    gone = pool.desire(1, *map(deleted, reading), deleted(channel), *map(deleted, topics))
    assert results(gone) == ["deleted"] * 13
    for number in BROKERS:
        assert pool.request(number, "GET", "/v1/channels/sink").status == 404
        refused = pool.request(number, "GET", "/v1/topics/desired-0")
        assert refused.json["code"] == "topic-detached"


def test_a_topic_that_comes_back_is_known_to_every_broker_at_once(pool: PoolOfBrokers) -> None:
    assert results(pool.desire(0, topic("comes-back"))) == ["applied"]
    assert results(pool.desire(1, deleted(topic("comes-back")))) == ["deleted"]
    for number in BROKERS:
        refused = pool.request(number, "GET", "/v1/topics/comes-back")
        assert refused.json["code"] == "topic-detached"
    assert results(pool.desire(2, topic("comes-back"))) == ["adopted"]
    for number in BROKERS:
        assert pool.request(number, "GET", "/v1/topics/comes-back").status == 200


def test_a_subscription_begins_at_the_broker_whose_topic_comes_later(pool: PoolOfBrokers) -> None:
    early = resource("Subscription", "early", topicRef={"name": "late"}, mode="pull")
    (outcome,) = pool.desire(0, early)
    conditions = {c["type"]: c["status"] for c in outcome["observed"]["conditions"]}
    assert conditions["TopicResolved"] == "False"
    assert results(pool.desire(1, topic("late"))) == ["applied"]
    pool.publish(2, "late", b"x")
    for number in BROKERS:
        leased = pool.request(number, "POST", "/v1/subscriptions/early:lease", {"max": 1})
        if leased.status == 200 and leased.json["messages"]:
            break
    else:
        raise AssertionError(leased)
    seen = pool.request(other(pool.owner("late")), "GET", "/v1/subscriptions/early").json
    assert seen["status"]["topic"] == "late"


def test_a_changed_channel_is_known_to_every_broker_at_once(pool: PoolOfBrokers) -> None:
    for number in BROKERS:
        url = f"https://sink-{number}.example/"
        wish = resource("Channel", "moving", http={"url": url})
        assert pool.request(number, "PUT", "/v1/channels/moving", wish).status in (200, 201)
        for reader in BROKERS:
            seen = pool.request(reader, "GET", "/v1/channels/moving").json
            assert seen["spec"]["http"]["url"] == url


def test_clients_and_publishers_are_known_to_every_broker(pool: PoolOfBrokers) -> None:
    pool.topic(0, "guarded", publishers="registered")
    path = "/v1/topics/guarded/publishers"
    for number in BROKERS:
        made = pool.request(number, "POST", path, {"name": f"shop-{number}"})
        assert made.status == 201, made
        token = {"Authorization": f"Bearer {made.json['token']}"}
        for publisher in BROKERS:
            assert pool.publish(publisher, "guarded", b"x", **token).status == 201
    assert pool.publish(1, "guarded", b"x").json["code"] == "publisher-not-registered"
    client = {"name": "till", "description": "a till"}
    assert pool.request(0, "PUT", "/v1/clients/till", client).status == 201
    assert pool.request(2, "GET", "/v1/clients/till").status == 200


def test_lists_show_the_whole_pool_with_its_numbers(pool: PoolOfBrokers) -> None:
    for n in range(3):
        pool.topic(0, f"listed-{n}")
        pool.publish(n, f"listed-{n}", b"x")
        wish = resource(
            "Subscription", f"listed-{n}", topicRef={"name": f"listed-{n}"}, mode="pull"
        )
        assert pool.request(n, "POST", "/v1/subscriptions", wish).status == 201
    for number in BROKERS:
        pages = [pool.request(number, "GET", f"/v1/{kind}?page_size=500").json for kind in KINDS]
        topics, subscriptions = [
            {item["metadata"]["name"]: item["status"] for item in page["items"]} for page in pages
        ]
        for n in range(3):
            assert topics[f"listed-{n}"]["messages"] == 1
            assert topics[f"listed-{n}"]["conditions"][0]["type"] == "Ready"
            assert subscriptions[f"listed-{n}"]["backlog"] == 1


KINDS = ("topics", "subscriptions")


def test_dead_letters_and_copies_reach_topics_of_other_brokers(pool: PoolOfBrokers) -> None:
    pool.topic(0, "source")
    owner, n = pool.owner("source"), 0
    while pool.topic(0, f"target-{n}") and pool.owner(f"target-{n}") == owner:
        n += 1
    copying = resource(
        "Subscription",
        "copying",
        topicRef={"name": "source"},
        mode="push",
        push={"topic": {"name": f"target-{n}"}},
    )
    failing = resource(
        "Subscription",
        "failing",
        topicRef={"name": "source"},
        mode="push",
        push={"http": {"url": "http://169.254.169.254/denied"}},
        retry={"maxAttempts": 1},
        deadLetter={"topicRef": {"name": f"target-{n}"}},
    )
    assert results(pool.desire(other(owner), copying, failing)) == ["applied", "applied"]
    pool.publish(0, "source", b"a")
    while len(values := pool.values(1, f"target-{n}")) < 2:
        pass
    assert values == ["a", "a"]
    assert results(pool.desire(0, deleted(copying), deleted(failing))) == ["deleted"] * 2
