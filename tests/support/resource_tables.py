"""Good and bad resources and changes, as tables that the models and the API server both judge.

The tables hold what crosses fields, what changes, and the bounds of sizes and durations. Rules of
one field alone (names of headers, hosts, whole URLs) and what is not served yet are the broker's.
"""

from typing import Any

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
    ({"archive": {"holdMax": {"action": "alarm"}}}, True),
    ({"archive": {"holdMax": {"action": "block", "bytes": "1Gi"}}}, True),
    ({"archive": {"holdMax": {"action": "drop", "time": "1d"}}}, True),
    ({"archive": {"holdMax": {"action": "drop"}}}, False),
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
    ({"archive": {"target": {"url": "s3a://archive", "secretRef": {"name": "s3"}}}}, False),
    ({"archive": {"target": {"url": "s3://archive/orders"}}}, True),
    ({"archive": {"target": {"url": "s3://archive", "secretRef": {"name": "s3"}}}}, True),
    ({"archive": {"target": {"claim": {}}, "executors": 2}}, False),
    ({"archive": {"target": {"claim": {}}, "executors": 2, "serviceAccountName": "spark"}}, True),
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
    (
        "BrokerPool",
        ARCHIVE,
        {"archive": {"target": {"claim": {"size": "5Gi", "storageClassName": "slow"}}}},
        False,
    ),
]

CASES: list[tuple[str, dict[str, Any], bool]] = [
    *(("Channel", *case) for case in CHANNELS),
    *(("Subscription", *case) for case in SUBSCRIPTIONS),
    *(("Topic", *case) for case in TOPICS),
    *(("BrokerPool", *case) for case in POOLS),
]

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

NAMES: list[tuple[str, bool]] = [
    ("a" * 40, True),
    ("a" * 41, False),
    ("a.b", False),
    ("team-a", True),
]
"""Of pools."""


def resource(kind: str, spec: dict[str, Any], name: str = "orders") -> dict[str, Any]:
    if kind == "Subscription":
        spec = {"topicRef": {"name": "orders"}} | spec
    head = {"apiVersion": "ibrik.dev/v1beta1", "kind": kind, "metadata": {"name": name}}
    return head | {"spec": spec}
