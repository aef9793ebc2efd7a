"""What the API server makes of the definitions: defaults, round trips, columns, scale, old objects.

What it refuses is in `test_rules`.
"""

import copy
from typing import Any

import pytest
import yaml

from ibrik_api.definitions import KINDS, Kind
from tests.support.admission import defaulted, schema_of
from tests.support.cluster import Cluster, Document, Refused, condition, documents_of
from tests.support.definitions import DEFINITION, DEFINITIONS, establish
from tests.support.resource_tables import CASES, resource

TOPIC, POOL = "ibrik.dev/v1beta1/Topic", "ibrik.dev/v1beta1/BrokerPool"
BY_NAME = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
FINE = [(kind, spec) for kind, spec, is_fine in CASES if is_fine]
SMALLEST: dict[str, dict[str, Any]] = {
    "BrokerPool": {},
    "Topic": {},
    "Subscription": {},
    "Channel": {"service": {"name": "billing"}},
}


def inside(namespace: str, kind: str, spec: Document, name: str = "orders") -> Document:
    document = resource(kind, spec, name)
    return document | {"metadata": {"name": name, "namespace": namespace}}


@pytest.mark.parametrize("path", DEFINITIONS, ids=lambda path: path.stem)
def test_a_definition_comes_back_as_it_is_written(cluster: Cluster, path: Any) -> None:
    (written,) = documents_of(path)
    stored = cluster.get(DEFINITION, written["metadata"]["name"])
    assert stored["spec"] == written["spec"]
    assert condition(stored, "NonStructuralSchema") == {}
    assert cluster.kubectl("diff", "--server-side", "--filename", str(path)) == ""


@pytest.mark.parametrize(("kind", "spec"), FINE)
def test_what_is_left_out_gets_the_default_of_the_model(
    cluster: Cluster, namespace: str, kind: str, spec: Document
) -> None:
    document = inside(namespace, kind, spec)
    stored = cluster.create(document, dry_run=True)
    assert stored["spec"] == defaulted(schema_of(kind), document)["spec"]
    model = next(known.model for known in KINDS if known.name == kind)
    assert model.parse(stored).spec == model.parse(document).spec


@pytest.mark.parametrize("is_server_side", [False, True])
@BY_NAME
def test_applying_the_same_again_changes_nothing(
    cluster: Cluster, namespace: str, kind: Kind, is_server_side: bool
) -> None:
    document = yaml.safe_dump(inside(namespace, kind.name, SMALLEST[kind.name]))
    side = f"--server-side={str(is_server_side).lower()}"
    stdin = ("--filename", "-")
    cluster.kubectl("apply", side, *stdin, stdin=document)
    path = f"ibrik.dev/v1beta1/{kind.name}"
    before = cluster.get(path, "orders", namespace)
    assert cluster.kubectl("diff", side, *stdin, stdin=document) == ""
    cluster.kubectl("apply", side, *stdin, stdin=document)
    assert cluster.get(path, "orders", namespace) == before
    # What a GitOps tool reads back and applies changes nothing either.
    whole = {key: before[key] for key in ("apiVersion", "kind", "spec")}
    whole["metadata"] = {"name": "orders", "namespace": namespace}
    cluster.apply(whole, manager="gitops")
    after = cluster.get(path, "orders", namespace)
    assert after["metadata"]["generation"] == before["metadata"]["generation"]
    assert after["spec"] == before["spec"]


@BY_NAME
def test_a_status_is_kept_apart_from_the_spec_and_pruned(
    cluster: Cluster, namespace: str, kind: Kind
) -> None:
    document = inside(namespace, kind.name, SMALLEST[kind.name])
    stored = cluster.apply(document | {"status": {"observedGeneration": 7}})
    assert stored.get("status", {}) == {}
    head = {key: document[key] for key in ("apiVersion", "kind", "metadata")}
    status = {"observedGeneration": 1, "invented": True}
    # What a newer operator observes beyond an older definition: refused, or pruned, by the verb.
    with pytest.raises(Refused, match="field not declared in schema"):
        cluster.apply(head | {"status": status}, manager="observer", subresource="status")
    path = f"ibrik.dev/v1beta1/{kind.name}"
    told = cluster.patch(path, "orders", {"status": status}, namespace, subresource="status")
    assert told["status"] == {"observedGeneration": 1}
    assert told["spec"] == stored["spec"]
    assert told["metadata"]["generation"] == stored["metadata"]["generation"]


@BY_NAME
def test_unknown_fields_are_pruned(cluster: Cluster, namespace: str, kind: Kind) -> None:
    document = inside(namespace, kind.name, SMALLEST[kind.name] | {"invented": {"deep": 1}})
    stored = cluster.create(document)
    assert "invented" not in stored["spec"]


def test_parts_of_a_pod_are_kept_as_they_are(cluster: Cluster, namespace: str) -> None:
    template = {
        "affinity": {"podAntiAffinity": {"some": [{"of": "these"}]}},
        "tolerations": [{"key": "dedicated", "operator": "Exists"}],
        "topologySpread": [{"maxSkew": 1}],
    }
    stored = cluster.create(inside(namespace, "BrokerPool", {"podTemplate": template}))
    assert stored["spec"]["podTemplate"] == template | {
        "labels": {},
        "annotations": {},
        "nodeSelector": {},
    }


def test_short_names_and_the_category_work_and_all_leaves_us_out(
    cluster: Cluster, namespace: str
) -> None:
    for kind in KINDS:
        cluster.create(inside(namespace, kind.name, SMALLEST[kind.name]))
    names = ("--namespace", namespace, "--output", "name")
    everything = [f"{kind.name.lower()}.ibrik.dev/orders" for kind in KINDS]
    assert sorted(cluster.kubectl("get", "ibrik", *names).split()) == sorted(everything)
    assert cluster.kubectl("get", "all", *names).split() == []
    for kind, name in zip(KINDS, everything, strict=True):
        assert cluster.kubectl("get", kind.short_name, *names).split() == [name]


def test_the_columns_are_those_that_people_read(cluster: Cluster, namespace: str) -> None:
    flights = cluster.create(inside(namespace, "Topic", {"partitions": 4}, "flights"))
    head = {key: flights[key] for key in ("apiVersion", "kind")}
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "Ready",
        "message": "",
        "lastTransitionTime": "2026-11-27T10:00:00Z",
    }
    status = {"subscriptions": 0, "conditions": [ready]}
    metadata = {"name": "flights", "namespace": namespace}
    cluster.apply(head | {"metadata": metadata, "status": status}, subresource="status")
    heading, row = cluster.kubectl("get", "ibt", "--namespace", namespace).splitlines()
    assert heading.split() == [
        "NAME",
        "PARTITIONS",
        "RETENTION",
        "SUBSCRIPTIONS",
        "READY",
        "REASON",
        "AGE",
    ]
    assert row.split()[:-1] == ["flights", "4", "7d", "0", "True", "Ready"]
    cluster.create(inside(namespace, "BrokerPool", {}, "default"))
    heading, row = cluster.kubectl("get", "ibp", "-o", "wide", "-n", namespace).splitlines()
    assert heading.split() == ["NAME", "READY", "BROKERS", "STORAGE", "AGE", "VERSION", "METADATA"]
    assert row.split()[:3] == ["default", "1", "10Gi"]


def test_a_pool_scales_by_kubectl_scale(cluster: Cluster, namespace: str) -> None:
    postgres = {"metadata": {"postgres": {"secretRef": {"name": "database"}}}}
    cluster.create(inside(namespace, "BrokerPool", postgres, "default"))
    scale = ("scale", "brokerpools.ibrik.dev/default", "--namespace", namespace)
    cluster.kubectl(*scale, "--replicas", "3")
    assert cluster.get(POOL, "default", namespace)["spec"]["replicas"] == 3
    shown = cluster.get(POOL, "default", namespace, "scale")
    assert shown["spec"] == {"replicas": 3}
    assert "should be less than or equal to 9" in cluster.kubectl(
        *scale, "--replicas", "10", check=False
    )


def test_a_pool_on_sqlite_does_not_scale_by_its_subresource_either(
    cluster: Cluster, namespace: str
) -> None:
    cluster.create(inside(namespace, "BrokerPool", {}, "default"))
    scale = {"spec": {"replicas": 2}}
    with pytest.raises(Refused, match="SQLite serves one broker"):
        cluster.patch(POOL, "default", scale, namespace, subresource="scale")


def test_topics_are_selected_by_their_pool_and_subscriptions_by_their_topic(
    cluster: Cluster, namespace: str
) -> None:
    cluster.create(inside(namespace, "Topic", {}, "a"))
    cluster.create(inside(namespace, "Topic", {"pool": {"name": "large"}}, "b"))
    large = cluster.objects(TOPIC, namespace, fields="spec.pool.name=large")
    assert [topic["metadata"]["name"] for topic in large] == ["b"]
    cluster.create(inside(namespace, "Subscription", {"topicRef": {"name": "a"}}, "reads-a"))
    push = {"topicRef": {"name": "b"}, "mode": "push", "channelRef": {"name": "billing"}}
    cluster.create(inside(namespace, "Subscription", push, "pushes-b"))
    for selector, name in (("topicRef", "reads-a"), ("channelRef", "pushes-b")):
        value = "a" if selector == "topicRef" else "billing"
        found = cluster.objects(
            "ibrik.dev/v1beta1/Subscription", namespace, fields=f"spec.{selector}.name={value}"
        )
        assert [one["metadata"]["name"] for one in found] == [name]


def test_objects_of_an_older_definition_go_on_working(cluster: Cluster, namespace: str) -> None:
    # The next release adds a field with a default and tightens another one.
    (definition,) = documents_of(next(p for p in DEFINITIONS if p.stem == "topics"))
    newer = renamed(definition, "ratchet.example")
    older = copy.deepcopy(newer)
    del spec_of(older)["properties"]["deduplicationWindow"]
    del spec_of(older)["default"]["deduplicationWindow"]
    spec_of(older)["properties"]["partitions"]["maximum"] = 1_000
    establish(cluster, older)
    document = inside(namespace, "Topic", {"partitions": 500})
    document["apiVersion"] = "ratchet.example/v1beta1"
    assert "deduplicationWindow" not in cluster.create(document)["spec"]

    establish(cluster, newer)
    kind = "ratchet.example/v1beta1/Topic"
    seen = cluster.wait(kind, "orders", namespace, lambda t: "deduplicationWindow" in t["spec"])
    assert seen["spec"]["deduplicationWindow"] == "2m"
    # A field that was not touched is not judged anew; a changed one is.
    changed = cluster.patch(kind, "orders", {"spec": {"publishers": "registered"}}, namespace)
    assert changed["spec"]["partitions"] == 500
    with pytest.raises(Refused, match="should be less than or equal to 256"):
        cluster.patch(kind, "orders", {"spec": {"partitions": 501}}, namespace)
    cluster.delete(DEFINITION, "topics.ratchet.example")


def renamed(definition: Document, group: str) -> Document:
    """The same kind in another group, so that no other test sees what is done to it."""
    other = copy.deepcopy(definition)
    other["metadata"]["name"] = f"{other['spec']['names']['plural']}.{group}"
    other["spec"]["group"] = group
    other["spec"]["names"].update({"shortNames": [], "categories": []})
    return other


def spec_of(definition: Document) -> Document:
    schema: Document = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    spec: Document = schema["properties"]["spec"]
    return spec
