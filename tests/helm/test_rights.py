"""Every right that the chart grants, listed once more. A new one is argued for here.

A row is a group, a kind, and the verbs in the order of the alphabet.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ibrik_api.definitions import KINDS
from tests.support.helm import Document, documents, named, of_kind

pytestmark = pytest.mark.slow
NAMESPACED = ("--values", str(Path(__file__).parent / "values" / "namespaced.yaml"))
READ = "get list watch"
APPLY = "create get list patch watch"

SERVED = {
    ("ibrik.dev", "topics", "get list patch watch"),  # patch: finalizers
    ("ibrik.dev", "subscriptions", "get list patch watch"),
    ("ibrik.dev", "channels", "get list patch watch"),
    ("ibrik.dev", "brokerpools", APPLY),  # create: the pool `default`
    ("ibrik.dev", "brokerpools/status", "patch"),
    ("ibrik.dev", "topics/status", "patch"),
    ("ibrik.dev", "subscriptions/status", "patch"),
    ("ibrik.dev", "channels/status", "patch"),
    ("ibrik.dev", "brokerpools/finalizers", "update"),  # to be named as an owner
    ("apps", "statefulsets", "create delete get list patch watch"),  # delete: growing a volume
    ("", "services", APPLY),
    ("", "configmaps", APPLY),
    ("", "serviceaccounts", APPLY),
    ("", "secrets", APPLY),
    ("policy", "poddisruptionbudgets", APPLY),
    ("networking.k8s.io", "networkpolicies", "create delete get list patch watch"),  # switched off
    ("", "pods", "delete get list watch"),  # delete: rolling
    ("", "persistentvolumeclaims", APPLY),  # patch: growing; create: the volumes of tables
    ("sparkoperator.k8s.io", "scheduledsparkapplications", "create delete get list patch"),
    ("batch", "cronjobs", "create delete get list patch"),  # where no Spark operator serves
    ("sparkoperator.k8s.io", "sparkapplications", "create delete get"),  # delete: never began
    ("batch", "jobs", "create list"),
    ("", "events", "create"),
}
CLUSTER_READS = {
    ("storage.k8s.io", "storageclasses", "get"),
    ("", "namespaces", "get"),
}
# A namespace that goes takes its Role along, before or after what is protected in it.
LEAVING = {("ibrik.dev", kind, "patch") for kind in ("topics", "subscriptions")}
DEFINITIONS = {("apiextensions.k8s.io", "customresourcedefinitions", READ)}
RELEASE = {("ibrik.dev", kind.plural, "get list patch") for kind in KINDS}


def rows(role: Document) -> Iterator[tuple[str, str, str]]:
    for rule in role["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                yield group, resource, " ".join(sorted(rule["verbs"]))


def test_the_operator_of_a_whole_cluster_may_do_this_and_nothing_else() -> None:
    role = named(documents(), "ClusterRole", "ibrik-system-ibrik-operator")
    assert set(rows(role)) == SERVED | CLUSTER_READS | DEFINITIONS


def test_the_operator_of_some_namespaces_needs_nothing_outside_them() -> None:
    found = documents(*NAMESPACED)
    assert of_kind(found, "ClusterRole") == of_kind(found, "ClusterRoleBinding") == []
    served = [
        role
        for role in of_kind(found, "Role")
        if role["metadata"]["name"] == "ibrik-operator"
    ]  # fmt: skip
    assert [role["metadata"]["namespace"] for role in served] == ["shop", "billing"]
    assert all(set(rows(role)) == SERVED for role in served)


def test_the_operator_of_some_namespaces_may_look_at_classes_and_namespaces_if_wished() -> None:
    found = documents(*NAMESPACED, "--set", "rbac.clusterReads=true")
    role = named(found, "ClusterRole", "ibrik-system-ibrik-operator")
    assert set(rows(role)) == CLUSTER_READS | LEAVING


def test_the_lease_is_the_only_thing_in_its_own_namespace() -> None:
    role = named(documents(), "Role", "ibrik-operator-lease")
    assert set(rows(role)) == {
        ("coordination.k8s.io", "leases", "create"),
        ("coordination.k8s.io", "leases", "get patch update"),
    }
    assert [rule.get("resourceNames") for rule in role["rules"]] == [None, ["ibrik-operator"]]


def test_who_uninstalls_may_stop_the_operator_and_release_finalizers() -> None:
    found = documents()
    assert set(rows(named(found, "ClusterRole", "ibrik-system-ibrik-uninstall"))) == RELEASE
    own = named(found, "Role", "ibrik-uninstall")
    assert set(rows(own)) == {("apps", "deployments", "get patch"), ("", "pods", "list")}
    assert own["rules"][0]["resourceNames"] == ["ibrik-operator"]
    inside = documents(*NAMESPACED)
    roles = [
        r for r in of_kind(inside, "Role") if r["metadata"]["name"] == "ibrik-uninstall-resources"
    ]
    assert [role["metadata"]["namespace"] for role in roles] == ["shop", "billing"]
    assert all(set(rows(role)) == RELEASE for role in roles)


@pytest.mark.parametrize("arguments", [(), NAMESPACED])
def test_no_right_is_a_wildcard(arguments: tuple[str, ...]) -> None:
    found = documents(*arguments)
    for role in of_kind(found, "ClusterRole") + of_kind(found, "Role"):
        for rule in role["rules"]:
            assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]


@pytest.mark.parametrize("arguments", [(), NAMESPACED])
def test_every_role_is_bound_to_an_account_that_exists(arguments: tuple[str, ...]) -> None:
    found = documents(*arguments)
    accounts = {one["metadata"]["name"] for one in of_kind(found, "ServiceAccount")}
    for kind in ("ClusterRole", "Role"):
        bindings = of_kind(found, f"{kind}Binding")
        bound = {(b["roleRef"]["name"], b["metadata"].get("namespace")) for b in bindings}
        roles = {
            (r["metadata"]["name"], r["metadata"].get("namespace"))
            for r in of_kind(found, kind)
            if not any("aggregate-to" in label for label in r["metadata"]["labels"])
        }
        assert bound == roles
        for binding in bindings:
            (subject,) = binding["subjects"]
            assert subject["name"] in accounts
            assert subject["namespace"] == "ibrik-system"


@pytest.mark.parametrize(
    ("role", "aggregated", "verbs"),
    [
        ("viewer", "view", READ),
        ("editor", "edit", "create delete get list patch update watch"),
        ("admin", "admin", "create delete deletecollection get list patch update watch"),
    ],
)
def test_people_get_the_rights_of_their_role_on_every_kind(
    role: str, aggregated: str, verbs: str
) -> None:
    found = documents()
    for kind in KINDS:
        one = named(found, "ClusterRole", f"ibrik-system-ibrik-{kind.plural}-{role}")
        labels = one["metadata"]["labels"]
        assert labels[f"rbac.authorization.k8s.io/aggregate-to-{aggregated}"] == "true"
        granted = set(rows(one))
        assert ("ibrik.dev", kind.plural, verbs) in granted
        assert ("ibrik.dev", f"{kind.plural}/status", "get") in granted


def test_no_rights_are_made_where_somebody_else_grants_them() -> None:
    found = documents("--set", "rbac.create=false,rbac.userRoles=false")
    names = {
        one["metadata"]["name"] for one in of_kind(found, "ClusterRole") + of_kind(found, "Role")
    }
    assert names == {"ibrik-uninstall", "ibrik-system-ibrik-uninstall"}
