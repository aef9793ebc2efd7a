"""What somebody changed by hand is noticed; what the API server or others added is left alone."""

import copy
from typing import Any

import pytest

from ibrik_operator.decisions.drift import holds, is_as_desired
from ibrik_operator.desired.broker_set import Defaults, stateful_set
from ibrik_operator.desired.common import stamped
from ibrik_operator.desired.network import client_service
from tests.support.pool_documents import pool

DESIRED = stamped(stateful_set(pool(), 1, Defaults("ibrik/broker:1")))
CONTAINERS = DESIRED["spec"]["template"]["spec"]["containers"]
CONTAINER = ("spec", "template", "spec", "containers", 0)


def changed(*path: str | int, to: Any) -> dict[str, Any]:
    """The object as desired but for one place."""
    document = copy.deepcopy(DESIRED)
    at: Any = document
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = to
    return document


def test_an_object_that_is_not_there_is_not_as_desired() -> None:
    assert not is_as_desired(DESIRED, None)


def test_an_object_as_it_was_applied_is_as_desired() -> None:
    assert is_as_desired(DESIRED, copy.deepcopy(DESIRED))


DRIFTED = {
    "replicas": changed("spec", "replicas", to=3),
    "image": changed(*CONTAINER, "image", to="other"),
    "a right": changed(*CONTAINER, "securityContext", "readOnlyRootFilesystem", to=False),
    "a label": changed("metadata", "labels", "ibrik.dev/pool", to="other"),
    "a label taken away": changed("metadata", "labels", to={}),
    "the owner": changed("metadata", "ownerReferences", to=[]),
    "an environment variable": changed(*CONTAINER, "env", 1, "value", to="other"),
    "all environment variables": changed(*CONTAINER, "env", to=[]),
    "a switch turned on": changed(
        "spec", "template", "spec", "automountServiceAccountToken", to=True
    ),
    "an older wish": changed("metadata", "annotations", "ibrik.dev/desired-hash", to="old"),
}


@pytest.mark.parametrize("actual", DRIFTED.values(), ids=DRIFTED)
def test_a_field_of_ours_that_differs_is_noticed(actual: dict[str, Any]) -> None:
    assert not is_as_desired(DESIRED, actual)


ADDED = {
    "a status": changed("status", to={"replicas": 0}),
    "a default": changed("spec", "revisionHistoryLimit", to=10),
    "a label": changed("metadata", "labels", "team", to="shop"),
    "an annotation": changed("metadata", "annotations", "note", to="by hand"),
    "a phase of a claim": changed("spec", "volumeClaimTemplates", 0, "status", to={"phase": "x"}),
    "a default of a port": changed(*CONTAINER, "ports", 0, "hostPort", to=0),
    "a variable of somebody else": changed(
        *CONTAINER, "env", to=[{"name": "TZ", "value": "UTC"}, *CONTAINERS[0]["env"]]
    ),
    "another container": changed(
        "spec", "template", "spec", "containers",
        to=[{"name": "mesh"}, *CONTAINERS],
    ),
}  # fmt: skip


@pytest.mark.parametrize("actual", ADDED.values(), ids=ADDED)
def test_what_others_added_is_left_alone(actual: dict[str, Any]) -> None:
    assert is_as_desired(DESIRED, actual)


SAME = {
    "memory": ({"memory": "1024Mi"}, {"memory": "1Gi"}),
    "bytes": ({"storage": "10Gi"}, {"storage": "10737418240"}),
    "cpu": ({"cpu": "0.5"}, {"cpu": "500m"}),
    "whole cpus": ({"cpu": 2}, {"cpu": "2"}),
    "empty": ({"requests": {}, "limits": {}}, {}),
    "nothing": ({"annotations": {}}, {"annotations": None}),
}


@pytest.mark.parametrize(("desired", "actual"), SAME.values(), ids=SAME)
def test_the_same_written_otherwise_is_the_same(desired: object, actual: object) -> None:
    assert holds(desired, actual)


DIFFERENT = {
    "memory": ({"memory": "1Gi"}, {"memory": "1G"}),
    "text": ({"name": "1"}, {"name": "one"}),
    "on and off": ({"on": True}, {}),
    "off and on": ({"on": False}, {"on": True}),
    "order": ({"items": ["a", "b"]}, {"items": ["b", "a"]}),
    "length": ({"items": ["a"]}, {"items": ["a", "b"]}),
}


@pytest.mark.parametrize(("desired", "actual"), DIFFERENT.values(), ids=DIFFERENT)
def test_what_differs_is_different(desired: object, actual: object) -> None:
    assert not holds(desired, actual)


def test_a_port_added_to_the_service_by_hand_is_left_alone_and_a_changed_one_is_not() -> None:
    desired = stamped(client_service(pool()))
    actual = copy.deepcopy(desired)
    actual["spec"]["ports"].append({"name": "extra", "port": 1})
    assert is_as_desired(desired, actual)
    actual["spec"]["ports"][0]["port"] = 9
    assert not is_as_desired(desired, actual)
