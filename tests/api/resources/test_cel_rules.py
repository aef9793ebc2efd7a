"""The API server and the broker refuse the same resources: each table is judged by both.

Rules of one field alone (names of headers, hosts, whole URLs) and what is not served yet are the
broker's; the tables hold what crosses fields, and what changes.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from ibrik_api.definitions import KINDS
from ibrik_api.errors import Refusal
from ibrik_api.model import FieldError
from ibrik_api.resources.channel import Channel
from ibrik_api.resources.destination_rules import check_destination
from ibrik_api.resources.pool import BrokerPool
from ibrik_api.resources.pool_rules import check_pool, plan_pool_update
from ibrik_api.resources.subscription import Subscription
from ibrik_api.resources.subscription_rules import check_subscription, plan_subscription_update
from ibrik_api.resources.topic import Topic
from ibrik_api.resources.topic_rules import plan_update, refuse_unfitting
from tests.support.admission import NOTHING, admit, broken_rules, defaulted, holds, schema_of

URL = "https://billing.example.com/hooks"
HTTP: dict[str, Any] = {"http": {"url": URL}}
SERVICE: dict[str, Any] = {"service": {"name": "billing"}}
TCP: dict[str, Any] = {"tcp": {"host": "sink", "port": 7000}}
TOPIC: dict[str, Any] = {"topic": {"name": "copies"}}
FILE = {"secretRef": {"file": "token"}}
BEARER, BASIC = {"bearer": FILE}, {"basic": FILE | {"username": "me"}}
CA = {"tls": {"caSecretRef": {"file": "ca.pem"}}}

CHANNELS: list[tuple[dict[str, Any], bool]] = [
    (HTTP, True),
    (SERVICE, True),
    (TCP, True),
    (TOPIC, True),
    ({}, False),
    (HTTP | TOPIC, False),
    (HTTP | SERVICE | TCP | TOPIC, False),
    (HTTP | {"auth": BEARER}, True),
    (SERVICE | {"auth": BASIC}, True),
    (HTTP | {"auth": BEARER | BASIC}, False),
    (TCP | {"auth": BEARER}, False),
    (TOPIC | {"auth": BASIC}, False),
    (TOPIC | {"auth": {}}, True),
    (HTTP | {"signing": FILE}, True),
    (SERVICE | {"signing": FILE}, True),
    (TCP | {"signing": FILE}, False),
    (TOPIC | {"signing": FILE}, False),
    (HTTP | CA, True),
    ({"http": {"url": "HTTPS://billing/"}} | CA, True),
    ({"http": {"url": "http://billing/"}} | CA, False),
    (TCP | CA, False),
    ({"tcp": {"host": "sink", "port": 1, "tls": True}} | CA, True),
    (SERVICE | CA, False),
    (TOPIC | CA, False),
    (HTTP | {"signing": {"secretRef": {"env": "IBRIK_SECRET_X"}}}, True),
    (HTTP | {"signing": {"secretRef": {"name": "keys", "key": "billing"}}}, True),
    (HTTP | {"signing": {"secretRef": {}}}, False),
    (HTTP | {"signing": {"secretRef": {"name": "keys"}}}, False),
    (HTTP | {"signing": {"secretRef": {"key": "billing"}}}, False),
    (HTTP | {"signing": {"secretRef": {"file": "a", "env": "IBRIK_SECRET_X"}}}, False),
    (HTTP | {"signing": {"secretRef": {"file": "a", "name": "keys", "key": "b"}}}, False),
    (HTTP | {"signing": {"secretRef": {"file": "a", "key": "b"}}}, False),
    *(
        (HTTP | {part: {member: {"secretRef": reference} | more}}, is_fine)
        for part, member, more in (("auth", "bearer", {}), ("auth", "basic", {"username": "me"}))
        for reference, is_fine in (
            ({"name": "keys", "key": "billing"}, True),
            ({}, False),
            ({"file": "a", "key": "b"}, False),
        )
    ),
    (HTTP | {"tls": {"caSecretRef": {"name": "keys", "key": "ca"}}}, True),
    (HTTP | {"tls": {"caSecretRef": {}}}, False),
    (HTTP | {"tls": {"caSecretRef": {"file": "a", "key": "b"}}}, False),
    ({"http": {"url": "HTTP://billing/a@b"}}, True),
    ({"http": {"url": "ftp://billing/"}}, False),
    ({"http": {"url": "http:/billing/"}}, False),
    ({"http": {"url": "http://me@billing/"}}, False),
    ({"http": {"url": "http://me:word@billing/"}}, False),
    ({"http": {"url": "http://billing/#part"}}, False),
]

PUSH = {"mode": "push", "channelRef": {"name": "billing"}}
INLINE: dict[str, Any] = {"mode": "push", "push": HTTP}
FORGET = PUSH | {"delivery": "fireAndForget"}
DEAD = {"deadLetter": {"topicRef": {"name": "orders-dead"}}}

SUBSCRIPTIONS: list[tuple[dict[str, Any], bool]] = [
    ({}, True),
    ({"mode": "stream", "type": "shared"}, True),
    (PUSH, True),
    (INLINE, True),
    ({"mode": "push"}, False),
    (PUSH | INLINE, False),
    (PUSH | {"mode": "pull"}, False),
    (INLINE | {"mode": "stream"}, False),
    ({"mode": "push", "push": {}}, False),
    ({"mode": "push", "push": TCP | {"auth": BEARER}}, False),
    ({"start": {"from": "latest"}}, True),
    ({"start": {}}, True),
    ({"start": {"value": "3"}}, False),
    ({"start": {"from": "latest", "value": "3"}}, False),
    ({"start": {"from": "offset"}}, False),
    ({"start": {"from": "offset", "value": "0"}}, True),
    ({"start": {"from": "offset", "value": "17,0,9223372036854775807"}}, True),
    ({"start": {"from": "offset", "value": ""}}, False),
    ({"start": {"from": "offset", "value": "1,"}}, False),
    ({"start": {"from": "offset", "value": "-1"}}, False),
    ({"start": {"from": "offset", "value": "1\n"}}, False),
    ({"start": {"from": "timestamp"}}, False),
    ({"start": {"from": "timestamp", "value": "2026-11-27T10:00:00Z"}}, True),
    ({"retry": {"backoff": {}}}, True),
    ({"retry": {"backoff": {"initial": "1m", "max": "60s"}}}, True),
    ({"retry": {"backoff": {"initial": "1d", "max": "24h"}}}, True),
    ({"retry": {"backoff": {"initial": "1d", "max": "23h"}}}, False),
    ({"retry": {"backoff": {"initial": "1d", "max": "7d"}}}, True),
    ({"retry": {"backoff": {"initial": "2m"}}}, False),
    ({"retry": {"backoff": {"max": "400ms"}}}, False),
    (DEAD, True),
    ({"deadLetter": {}}, True),
    ({"deadLetter": DEAD["deadLetter"] | {"channelRef": {"name": "c"}}}, False),
    ({"retry": {"onExhausted": "block"}}, True),
    (DEAD | {"retry": {"onExhausted": "block"}}, False),
    (FORGET, True),
    (FORGET | {"ordering": "none"}, True),
    (FORGET | {"retry": {}, "deadLetter": {}}, True),
    ({"delivery": "fireAndForget"}, False),
    (FORGET | {"retry": {"maxAttempts": 3}}, False),
    (FORGET | {"retry": {"preset": "webhook"}}, False),
    (FORGET | {"retry": {"backoff": {}}}, False),
    (FORGET | {"retry": {"maxAge": "1h"}}, False),
    (FORGET | {"retry": {"onExhausted": "block"}}, False),
    (FORGET | DEAD, False),
    (FORGET | {"ordering": "key"}, False),
    *(({"mode": "push", "push": channel}, is_fine) for channel, is_fine in CHANNELS),
]

TOPICS: list[tuple[dict[str, Any], bool]] = [
    ({}, True),
    ({"buffer": {"bytes": "1Mi"}}, True),
    ({"buffer": {"bytes": 1048576}, "maxMessageBytes": "1Mi"}, True),
    ({"buffer": {"bytes": "64Ki"}}, False),
    ({"maxMessageBytes": "64Mi"}, False),
    ({"buffer": {"bytes": "1M"}, "maxMessageBytes": 1000001}, False),
]

POSTGRES: dict[str, Any] = {"metadata": {"postgres": {"secretRef": {"name": "database"}}}}
POOLS: list[tuple[dict[str, Any], bool]] = [
    ({}, True),
    ({"metadata": {"sqlite": {}}}, True),
    ({"metadata": {}}, False),
    ({"metadata": {"sqlite": {}} | POSTGRES["metadata"]}, False),
    ({"replicas": 3}, False),
    ({"replicas": 3} | POSTGRES, True),
    ({"storage": {"size": "2Gi"}, "config": {"minFreeBytes": "2Gi"}}, False),
    ({"storage": {"size": "2Gi"}, "config": {"minFreeBytes": 2147483647}}, True),
    ({"archive": {"target": {"claim": {"size": "50Gi"}}}}, True),
    ({"archive": {"target": {"url": "s3a://archive", "secretRef": {"name": "s3"}}}}, True),
    ({"archive": {"target": {"url": "s3a://archive"}}}, True),
    ({"archive": {"target": {}}}, False),
    ({"archive": {"target": {"url": "s3a://archive", "claim": {}}}}, False),
    ({"archive": {"target": {"claim": {}, "secretRef": {"name": "s3"}}}}, False),
]

ARCHIVE: dict[str, Any] = {"archive": {"target": {"claim": {"size": "5Gi"}}}}
CHANGES: list[tuple[str, dict[str, Any], dict[str, Any], bool]] = [
    ("Topic", {"partitions": 4}, {"partitions": 8}, True),
    ("Topic", {"partitions": 4}, {"partitions": 4}, True),
    ("Topic", {"partitions": 4}, {"partitions": 2}, False),
    ("Topic", {"partitions": 4}, {}, False),
    ("Topic", {"topicName": "a"}, {"topicName": "a"}, True),
    ("Topic", {"topicName": "a"}, {"topicName": "b"}, False),
    ("Topic", {"topicName": "a"}, {}, False),
    ("Topic", {}, {"topicName": "a"}, False),
    ("Subscription", PUSH, INLINE, True),
    ("Subscription", {}, PUSH | {"paused": True}, True),
    ("Subscription", {}, {"topicRef": {"name": "bills"}}, False),
    ("BrokerPool", {"storage": {"size": "10Gi"}}, {"storage": {"size": "20Gi"}}, True),
    ("BrokerPool", {"storage": {"size": "10Gi"}}, {"storage": {"size": "10240Mi"}}, True),
    ("BrokerPool", {"storage": {"size": "10Gi"}}, {"storage": {"size": "10G"}}, False),
    ("BrokerPool", {"storage": {"size": 10737418241}}, {}, False),
    (
        "BrokerPool",
        {"storage": {"storageClassName": "fast"}},
        {"storage": {"storageClassName": "slow"}},
        False,
    ),
    ("BrokerPool", {"storage": {"storageClassName": "fast"}}, {}, False),
    ("BrokerPool", {}, {"storage": {"storageClassName": "fast"}}, False),
    ("BrokerPool", {}, {"storage": {"reclaim": "Delete"}}, True),
    ("BrokerPool", {}, POSTGRES, False),
    ("BrokerPool", POSTGRES, {}, False),
    (
        "BrokerPool",
        POSTGRES,
        {"metadata": {"postgres": {"secretRef": {"name": "database-2"}}}, "replicas": 3},
        True,
    ),
    ("BrokerPool", ARCHIVE, {"archive": {"target": {"claim": {"size": "6Gi"}}}}, True),
    ("BrokerPool", ARCHIVE, {"archive": {"target": {"claim": {"size": "4Gi"}}}}, False),
    ("BrokerPool", ARCHIVE, {"archive": {"target": {"url": "s3a://archive"}}}, True),
    (
        "BrokerPool",
        ARCHIVE,
        {"archive": {"target": {"claim": {"size": "5Gi", "storageClassName": "slow"}}}},
        False,
    ),
]


def resource(kind: str, spec: dict[str, Any], name: str = "orders") -> dict[str, Any]:
    if kind == "Subscription":
        spec = {"topicRef": {"name": "orders"}} | spec
    head = {"apiVersion": "ibrik.dev/v1beta1", "kind": kind, "metadata": {"name": name}}
    return head | {"spec": spec}


def python_findings(document: dict[str, Any]) -> list[FieldError]:
    """What the broker's rules say, without what is only not served yet."""
    match document["kind"]:
        case "Channel":
            return check_destination(Channel.parse(document).spec)
        case "Topic":
            return refuse_unfitting(Topic.parse(document).spec)
        case "BrokerPool":
            return check_pool(BrokerPool.parse(document))
    try:
        check_subscription(Subscription.parse(document).spec)
    except Refusal as refused:
        return [error for error in refused.errors if error["code"] != "unsupported-field"]
    return []


def python_plan(old: dict[str, Any], new: dict[str, Any]) -> list[FieldError]:
    match new["kind"]:
        case "Topic":
            return plan_update(Topic.parse(old).spec, Topic.parse(new).spec)
        case "Subscription":
            parse = Subscription.parse
            return plan_subscription_update(parse(old).spec, parse(new).spec)
    return plan_pool_update(BrokerPool.parse(old).spec, BrokerPool.parse(new).spec)


MODELS = {kind.name: kind.model for kind in KINDS}
CASES = [
    *(("Channel", *case) for case in CHANNELS),
    *(("Subscription", *case) for case in SUBSCRIPTIONS),
    *(("Topic", *case) for case in TOPICS),
    *(("BrokerPool", *case) for case in POOLS),
]


@pytest.mark.parametrize(("kind", "spec", "is_fine"), CASES)
def test_both_judge_a_resource_alike(kind: str, spec: dict[str, Any], is_fine: bool) -> None:
    document = resource(kind, spec)
    assert (admit(document) == []) is is_fine
    assert (python_findings(document) == []) is is_fine


@pytest.mark.parametrize(("kind", "old", "new", "is_fine"), CHANGES)
def test_both_judge_a_change_alike(
    kind: str, old: dict[str, Any], new: dict[str, Any], is_fine: bool
) -> None:
    before, after = resource(kind, old), resource(kind, new)
    assert admit(before) == []
    assert (admit(after, before) == []) is is_fine
    assert (python_plan(before, after) == []) is is_fine


@pytest.mark.parametrize(
    ("name", "is_fine"), [("a" * 40, True), ("a" * 41, False), ("a.b", False), ("team-a", True)]
)
def test_both_judge_the_name_of_a_pool_alike(name: str, is_fine: bool) -> None:
    document = resource("BrokerPool", {}, name)
    assert (admit(document) == []) is is_fine
    assert (python_findings(document) == []) is is_fine


BOUNDS: list[tuple[str, dict[str, Any], bool]] = [
    ("Topic", {"retention": {"time": "1s", "bytes": 1}}, True),
    ("Topic", {"retention": {"time": "999ms"}}, False),
    ("Topic", {"retention": {"time": "36500d"}}, True),
    ("Topic", {"retention": {"bytes": 0}}, False),
    ("Topic", {"segment": {"bytes": "2147483647"}}, True),
    ("Topic", {"segment": {"bytes": "2Gi"}}, False),
    ("Topic", {"segment": {"bytes": "16383"}}, False),
    ("Topic", {"deduplicationWindow": "0s"}, True),
    ("Topic", {"deduplicationWindow": "24h1ms"}, False),
    ("Channel", HTTP | {"timeout": "2m"}, True),
    ("Channel", HTTP | {"timeout": "121s"}, False),
    ("Subscription", {"ack": {"deadline": "12h"}}, True),
    ("Subscription", {"ack": {"deadline": "13h"}}, False),
    ("Subscription", {"retry": {"maxAge": "30d1s"}}, False),
    ("Subscription", {"retry": {"backoff": {"initial": "0s"}}}, False),
    ("BrokerPool", {"storage": {"size": "1Gi"}}, True),
    ("BrokerPool", {"storage": {"size": "1G"}}, False),
    ("BrokerPool", {"config": {"minFreeBytes": "1Mi"}}, False),
]


@pytest.mark.parametrize(("kind", "spec", "is_fine"), BOUNDS)
def test_both_have_the_same_bounds(kind: str, spec: dict[str, Any], is_fine: bool) -> None:
    document = resource(kind, spec)
    admitted = admit(document)
    assert (admitted == []) is is_fine
    assert all("out of bounds: write " in message for message in admitted)
    if is_fine:
        assert python_findings(document) == []
    else:
        with pytest.raises(Refusal, match="out of bounds: write "):
            MODELS[kind].parse(document)


def rules_of(schema: dict[str, Any]) -> Iterator[dict[str, str]]:
    """Those across fields; bounds of one field have a table of their own."""
    if "properties" in schema:
        yield from schema.get("x-kubernetes-validations", ())
    for child in schema.get("properties", {}).values():
        yield from rules_of(child)
    if "items" in schema:
        yield from rules_of(schema["items"])


def test_every_rule_is_broken_by_a_line_of_the_tables() -> None:
    broken = [message for kind, spec, _ in CASES for message in admit(resource(kind, spec))]
    for kind, old, new, _ in CHANGES:
        broken += admit(resource(kind, new), resource(kind, old))
    broken += admit(resource("BrokerPool", {}, "a." + "b" * 40))
    messages = {r["message"] for kind in KINDS for r in rules_of(schema_of(kind.name))}
    told = {message.partition(": ")[2] for message in broken}
    assert messages - told == set()


def test_every_sentence_says_what_to_do() -> None:
    rules = [rule for kind in KINDS for rule in rules_of(schema_of(kind.name))]
    verbs = (
        "keep",
        "give",
        "leave",
        "lower",
        "raise",
        "put",
        "create",
        "write",
        "use",
        "say",
        "set",
    )
    vague = [
        rule["message"]
        for rule in rules
        if not any(f"{verb} " in rule["message"] for verb in verbs)
        and "begin with" not in rule["message"]
        and "is needed" not in rule["message"]
    ]
    assert vague == []


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_no_rule_fails_on_a_default_as_it_is_written(kind: Any) -> None:
    # The server runs every rule on the defaults themselves, with nothing filled in, when it takes
    # the definition.
    def visit(schema: dict[str, Any], path: str) -> None:
        if "default" in schema:
            assert list(broken_rules(schema, schema["default"], schema["default"], path)) == []
            assert list(broken_rules(schema, schema["default"], NOTHING, path)) == []
            assert defaulted(schema, schema["default"]) == schema["default"]
        for name, child in schema.get("properties", {}).items():
            visit(child, f"{path}.{name}")

    visit(schema_of(kind.name), kind.name)


def test_a_rule_that_cannot_be_evaluated_is_noticed() -> None:
    with pytest.raises(AssertionError, match="not found"):
        holds("self.missing == 1", {"self": {}})
