"""The Topic resource: defaults, what is refused and how, what survives a round trip."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ibrik_api.errors import Refusal
from ibrik_api.resources.topic import Partitioner, Retention, Segment, Topic, TopicSpec
from ibrik_api.resources.topic_rules import check_spec, plan_update, refuse_unserved
from tests.support.admission import admit
from tests.support.resource_tables import resource

HEAD = {"apiVersion": "ibrik.dev/v1beta1", "kind": "Topic", "metadata": {"name": "orders"}}

SMALLEST = """
apiVersion: ibrik.dev/v1beta1
kind: Topic
metadata: {name: orders}
"""

FROM_KUBECTL = """
apiVersion: ibrik.dev/v1beta1
kind: Topic
metadata:
  name: flights
  namespace: shop
  uid: 8a3c
  generation: 3
  resourceVersion: "77"
  creationTimestamp: "2026-11-27T10:00:00Z"
  labels: {team: air}
  annotations: {note: x}
  managedFields: []
spec:
  partitions: 4
  retention: {time: 12h, bytes: 1Gi}
  segment: {bytes: 1048576}
  buffer: {whenFull: dropOldest}
status: {anything: 1}
"""


def topic(**spec: Any) -> Topic:
    return Topic.parse(HEAD | {"spec": spec})


def test_the_smallest_topic_has_the_documented_defaults() -> None:
    spec = Topic.parse(yaml.safe_load(SMALLEST)).spec
    assert spec == TopicSpec()
    document = spec.document()
    assert document["partitions"] == 1
    assert document["retention"] == {"time": "7d"}
    assert document["segment"] == {"bytes": "256Mi", "time": "1h"}
    assert document["maxMessageBytes"] == "1Mi"
    assert document["buffer"] == {"records": 10_000, "bytes": "16Mi", "whenFull": "wait"}
    assert document["deletionPolicy"] == "Retain"
    check_spec(spec)


def test_a_topic_as_kubectl_prints_it_is_read() -> None:
    parsed = Topic.parse(yaml.safe_load(FROM_KUBECTL))
    assert parsed.metadata.generation == 3
    assert parsed.spec.retention == Retention(time_ms="12h", size_bytes="1Gi")
    assert parsed.spec.segment == Segment(size_bytes=2**20)
    assert parsed.topic_name == "flights"


@pytest.mark.parametrize(
    ("spec", "pointer", "told"),
    [
        ({"partitons": 4}, "/spec/partitons", "no such field"),
        ({"partitions": 0}, "/spec/partitions", "greater than or equal to 1"),
        ({"partitions": 257}, "/spec/partitions", "less than or equal to 256"),
        ({"partitions": "4"}, "/spec/partitions", "valid integer"),
        ({"partitions": True}, "/spec/partitions", "valid integer"),
        ({"partitions": None}, "/spec/partitions", "valid integer"),
        ({"max_message_bytes": 5}, "/spec/max_message_bytes", "no such field"),
        ({"segment": {"bytes": "2Gi"}}, "/spec/segment/bytes", "write 16Ki to 2147483647"),
        ({"retention": {"time": 30}}, "/spec/retention/time", "'30s' or '7d'"),
        ({"retention": {"time": "1ms"}}, "/spec/retention/time", "write 1s to 36500d"),
        ({"retention": {"bytes": True}}, "/spec/retention/bytes", "number of bytes"),
        ({"partitioner": "random"}, "/spec/partitioner", "'keyHash', 'roundRobin' or 'sticky'"),
        ({"topicName": "A"}, "/spec/topicName", "write it in lower case"),
        ([], "/spec", "valid dictionary"),
    ],
)
def test_a_broken_field_is_named(spec: Any, pointer: str, told: str) -> None:
    with pytest.raises(Refusal) as refused:
        Topic.parse(HEAD | {"spec": spec})
    assert refused.value.code == "invalid-resource"
    (error,) = refused.value.errors
    assert error["pointer"] == pointer
    assert told in error["detail"]


@pytest.mark.parametrize("document", [None, 3, [], "x", {}, {"metadata": {}}])
def test_what_is_no_resource_is_refused(document: Any) -> None:
    with pytest.raises(Refusal, match=r"required|dictionary"):
        Topic.parse(document)


@pytest.mark.parametrize(
    ("spec", "pointer"),
    [
        ({"replicas": 3}, "/spec/replicas"),
        ({"minInSyncReplicas": 2}, "/spec/minInSyncReplicas"),
        ({"cleanup": "compact"}, "/spec/cleanup"),
        ({"schema": {"subject": "orders"}}, "/spec/schema/subject"),
        ({"quota": {"recordsPerSecond": 5}}, "/spec/quota/recordsPerSecond"),
    ],
)
def test_a_field_that_is_not_served_yet_is_refused_by_name(
    spec: dict[str, Any], pointer: str
) -> None:
    with pytest.raises(Refusal, match=r"not (served|replicated) yet: leave") as refused:
        check_spec(topic(**spec).spec)
    assert refused.value.code == "unsupported-field"
    assert [error["pointer"] for error in refused.value.errors] == [pointer]


@pytest.mark.parametrize(
    "spec",
    [{"dispatch": "queue"}, {"publishers": "registered"}, {"delivery": {"ordering": "key"}}],
)
def test_what_subscriptions_and_publishers_need_is_served(spec: dict[str, Any]) -> None:
    check_spec(topic(**spec).spec)


@pytest.mark.parametrize(
    "archive",
    [
        {"enabled": True},
        {"enabled": True, "schedule": "*/5 0-6 1,15 JAN MON-FRI", "timeZone": "Europe/Berlin"},
        {"schedule": "@hourly"},
        {"schedule": "@every 1h30m"},
        {"schedule": "0 0 * * 0", "timeZone": "Etc/GMT+2"},
        {"holdMax": {"bytes": "1Gi", "action": "block"}},
        {"holdMax": {"time": "1d", "action": "drop"}},
    ],
)
def test_an_archive_is_served(archive: dict[str, Any]) -> None:
    check_spec(topic(archive=archive).spec)
    assert admit(resource("Topic", {"archive": archive})) == []


@pytest.mark.parametrize(
    ("schedule", "zone"),
    [
        ("hourly", "UTC"),
        ("@every ", "UTC"),
        ("@every 7d", "UTC"),
        ("@every 30m1h", "UTC"),
        ("60 * * * *", "UTC"),
        ("* 24 * * *", "UTC"),
        ("* * 0 * *", "UTC"),
        ("* * * 13 *", "UTC"),
        ("* * * * 7", "UTC"),
        ("0 * * *", "UTC"),
        ("0 0 * * * *", "UTC"),
        ("*/0 * * * *", "UTC"),
        ("@hourly", "Local time"),
        ("@hourly", ""),
        ("@hourly", "../UTC"),
    ],
)
def test_what_kubernetes_could_not_schedule_is_refused(schedule: str, zone: str) -> None:
    with pytest.raises(Refusal, match=r"schedule|pattern"):
        topic(archive={"schedule": schedule, "timeZone": zone})
    assert admit(resource("Topic", {"archive": {"schedule": schedule, "timeZone": zone}})) != []


def test_blocking_and_dropping_need_a_limit() -> None:
    for action in ("block", "drop"):
        with pytest.raises(Refusal, match=r"set holdMax.bytes or holdMax.time"):
            check_spec(topic(archive={"holdMax": {"action": action}}).spec)


def test_an_unserved_field_at_its_default_is_accepted() -> None:
    spec = topic(replicas=1, cleanup="delete", archive={"enabled": False}, quota={}).spec
    assert refuse_unserved(spec) == []


def test_a_buffer_that_never_takes_the_largest_message_is_refused() -> None:
    with pytest.raises(Refusal, match=r"raise buffer.bytes or lower maxMessageBytes"):
        check_spec(topic(buffer={"bytes": "64Ki"}).spec)


def test_partitions_never_shrink() -> None:
    (error,) = plan_update(topic(partitions=4).spec, topic(partitions=2).spec)
    assert error["code"] == "partitions-shrink"
    assert "(4 → 2): create a new topic and replay into it" in error["detail"]


def test_the_topic_name_never_changes() -> None:
    (error,) = plan_update(topic(topicName="a").spec, topic(topicName="b").spec)
    assert error["code"] == "immutable-field"


def test_other_changes_are_allowed() -> None:
    new = topic(partitions=8, retention={"time": "1d"}, partitioner="sticky").spec
    assert plan_update(topic(partitions=4).spec, new) == []


SPECS = st.fixed_dictionaries(
    {},
    optional={
        "partitions": st.integers(1, 256),
        "partitioner": st.sampled_from(Partitioner),
        "maxMessageBytes": st.integers(1, 2**26),
        "retention": st.fixed_dictionaries({}, optional={"bytes": st.integers(1, 2**60)}),
        "segment": st.fixed_dictionaries({}, optional={"bytes": st.integers(2**14, 2**31 - 1)}),
        "deduplicationWindow": st.sampled_from(["0s", "1m30s", "1d"]),
    },
)


@given(SPECS)
def test_a_spec_survives_its_document(wish: dict[str, Any]) -> None:
    spec = TopicSpec.parse(wish)
    assert TopicSpec.parse(spec.document()) == spec


@given(SPECS, SPECS)
def test_fingerprints_are_equal_exactly_when_specs_are(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    first, second = TopicSpec.parse(one), TopicSpec.parse(other)
    assert (first.fingerprint() == second.fingerprint()) == (first == second)
