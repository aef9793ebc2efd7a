"""The BrokerPool resource: defaults, bounds, and the sentences of what is refused."""

from typing import Any

import pytest

from ibrik_api.errors import Refusal
from ibrik_api.resources.pool import BrokerPool
from ibrik_api.resources.pool_rules import check_pool, plan_pool_update

HEAD = {"apiVersion": "ibrik.dev/v1beta1", "kind": "BrokerPool"}
POSTGRES = {"postgres": {"secretRef": {"name": "database"}}}


def pool(name: str = "default", **spec: Any) -> BrokerPool:
    return BrokerPool.parse(HEAD | {"metadata": {"name": name}, "spec": spec})


def told(errors: list[Any]) -> list[tuple[str, str, str]]:
    return [(error["code"], error["pointer"], error["detail"]) for error in errors]


def test_the_smallest_pool_is_one_broker_with_sqlite_that_keeps_its_volume() -> None:
    spec = pool().spec.document()
    assert spec["replicas"] == 1
    assert spec["metadata"] == {"sqlite": {}}
    assert spec["storage"] == {"size": "10Gi", "reclaim": "Retain"}
    assert spec["listeners"] == {"tcp": {"enabled": True}, "openRegistration": False}
    assert spec["config"]["egress"] == {"allowPrivate": False, "allow": []}
    assert "archive" not in spec
    assert check_pool(pool()) == []


@pytest.mark.parametrize(
    ("spec", "pointer"),
    [
        ({"replicas": 0}, "/spec/replicas"),
        ({"replicas": 10}, "/spec/replicas"),
        ({"storage": {"size": "512Mi"}}, "/spec/storage/size"),
        ({"storage": {"reclaim": "Recycle"}}, "/spec/storage/reclaim"),
        ({"image": "a b"}, "/spec/image"),
        ({"imagePullSecrets": [{"name": "A"}]}, "/spec/imagePullSecrets/0/name"),
        ({"config": {"logLevel": "trace"}}, "/spec/config/logLevel"),
        ({"config": {"egress": {"allow": ["a b"]}}}, "/spec/config/egress/allow/0"),
        ({"archive": {"target": {"url": "s3a://me:word@x"}}}, "/spec/archive/target/url"),
        ({"podTemplate": {"labels": {"team": "-"}}}, "/spec/podTemplate/labels/team"),
        ({"podTemplate": {"tolerations": ["all"]}}, "/spec/podTemplate/tolerations/0"),
        ({"podTemplate": {"sidecars": []}}, "/spec/podTemplate/sidecars"),
    ],
)
def test_a_broken_field_is_named(spec: dict[str, Any], pointer: str) -> None:
    with pytest.raises(Refusal) as refused:
        pool(**spec)
    assert [error["pointer"] for error in refused.value.errors] == [pointer]


@pytest.mark.parametrize("amount", ["500m", "1.5", "2Gi", 2, 0])
def test_amounts_go_to_the_pod_as_they_are_written(amount: str | int) -> None:
    wish = {"requests": {"cpu": amount}, "limits": {}}
    assert pool(resources=wish).spec.document()["resources"] == wish


@pytest.mark.parametrize("amount", ["500 m", "-1", -1, 0.5, True, None, "1e3"])
def test_what_is_no_amount_is_refused(amount: Any) -> None:
    with pytest.raises(Refusal):
        pool(resources={"requests": {"cpu": amount}})


def test_parts_of_a_pod_that_kubernetes_defines_are_kept_as_they_are() -> None:
    wish = {
        "affinity": {"nodeAffinity": {"any": [1, None]}},
        "tolerations": [{"key": "spot", "operator": "Exists"}],
        "topologySpread": [{"maxSkew": 1}],
    }
    kept = pool(podTemplate=wish).spec.pod_template
    assert kept.affinity == wish["affinity"]
    assert kept.tolerations == wish["tolerations"]
    assert kept.topology_spread == wish["topologySpread"]


def test_everything_that_does_not_fit_is_told_at_once() -> None:
    wrong = pool(
        "my.pool_" + "a" * 40,
        replicas=2,
        storage={"size": "1Gi"},
        config={"minFreeBytes": "1Gi"},
        archive={"target": {"secretRef": {"name": "s3"}}},
    )
    found = told(check_pool(wrong))
    assert {code for code, _, _ in found} == {"invalid-resource"}
    assert [pointer for _, pointer, _ in found] == [
        "/metadata/name",
        "/metadata/name",
        "/spec/replicas",
        "/spec/config/minFreeBytes",
        "/spec/archive/target",
        "/spec/archive/target/secretRef",
    ]
    assert "on a volume of 1Gi: lower it" in found[3][2]


def test_a_change_that_cannot_be_made_is_told_with_what_was() -> None:
    old = pool(storage={"size": "20Gi", "storageClassName": "fast"}).spec
    new = pool(storage={"size": "10Gi"}, metadata=POSTGRES, replicas=3).spec
    found = told(plan_pool_update(old, new))
    assert {code for code, _, _ in found} == {"immutable-field"}
    assert [pointer for _, pointer, _ in found] == [
        "/spec/storage/size",
        "/spec/storage/storageClassName",
        "/spec/metadata",
    ]
    assert "(20Gi → 10Gi): put the size back" in found[0][2]
    assert "(fast): put it back" in found[1][2]


def test_what_no_job_can_do_yet_is_refused_with_what_to_write() -> None:
    wrong = pool(
        archive={
            "target": {"url": "gs://lake"},
            "executors": 2,
            "resources": {"limits": {"memory": "1m"}},
        }
    )
    found = told(check_pool(wrong))
    assert [pointer for _, pointer, _ in found] == [
        "/spec/archive/target/url",
        "/spec/archive/executors",
        "/spec/archive/resources/limits/memory",
    ]
    assert "write url as s3://bucket/path" in found[0][2]
    assert "set serviceAccountName to an account that may do that" in found[1][2]


def test_an_archive_can_be_added_moved_and_taken_away_but_its_volume_never_shrinks() -> None:
    without = pool().spec
    large, small = (
        pool(archive={"target": {"claim": {"size": size}}}).spec for size in ("50Gi", "40Gi")
    )
    elsewhere = pool(archive={"target": {"url": "s3://archive"}}).spec
    for old, new in ((without, large), (small, large), (large, elsewhere), (large, without)):
        assert plan_pool_update(old, new) == []
    ((_, pointer, _),) = told(plan_pool_update(large, small))
    assert pointer == "/spec/archive/target/claim/size"
