"""Other ways to install: with few rights in one namespace, and over an older version."""

import json
import shutil
from pathlib import Path

import pytest
import yaml

from e2e.support.cluster import CHART, SYSTEM, Cluster
from e2e.support.pods import start_client
from e2e.support.resources import pool, topic

pytestmark = pytest.mark.reinstalls
FEW_RIGHTS = ("crds.enabled=false", "rbac.clusterReads=false", "rbac.userRoles=false")


def test_an_operator_of_one_namespace_works_with_roles_alone(
    installed: Cluster, namespace: str
) -> None:
    installed.uninstall()  # The definitions stay, as if somebody else had installed them.
    served = f"watchNamespaces={{{namespace}}}"
    installed.install("--set", ",".join((*FEW_RIGHTS, served)))
    try:
        held = installed.kubectl("get", "clusterroles,clusterrolebindings", "--output=name")
        assert "ibrik" not in held
        client = start_client(installed, namespace)
        installed.apply(topic("orders", deletionPolicy="Delete"), namespace=namespace)
        installed.wait_condition("topics.ibrik.dev", "orders", namespace, "Ready=True")
        client.publish("orders", 0, 10)
        assert client.read("orders") == list(range(10))
        logs = installed.kubectl(
            "logs", "deployment/ibrik-operator", "--namespace", SYSTEM, "--all-pods=true"
        )
        assert "is forbidden" not in logs
    finally:
        installed.uninstall()
    installed.delete_namespace(namespace, timeout_s=60)


def test_an_upgrade_brings_the_new_fields_and_keeps_the_messages(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    if cluster.is_installed():
        cluster.uninstall()
    cluster.install(chart=older_chart(tmp_path))
    assert "maxMessageBytes" not in topic_fields(cluster)
    cluster.apply(pool(), topic("orders"), namespace=namespace)
    before = cluster.wait_condition("topics.ibrik.dev", "orders", namespace, "Ready=True")
    client = start_client(cluster, namespace)
    client.publish("orders", 0, 20)
    cluster.install()
    assert "maxMessageBytes" in topic_fields(cluster)
    cluster.apply(topic("orders", maxMessageBytes="64Ki"), namespace=namespace)
    after = cluster.wait_condition("topics.ibrik.dev", "orders", namespace, "Ready=True")
    assert after["spec"]["maxMessageBytes"] == "64Ki"
    assert after["status"]["topicId"] == before["status"]["topicId"]
    assert client.read("orders") == list(range(20))


def older_chart(folder: Path) -> Path:
    """The chart as it was before topics had maxMessageBytes."""
    chart = folder / "ibrik"
    shutil.copytree(CHART, chart)
    path = chart / "files" / "crds" / "topics.yaml"
    definition = yaml.safe_load(path.read_text())
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    spec = schema["properties"]["spec"]
    del spec["properties"]["maxMessageBytes"]
    spec.get("default", {}).pop("maxMessageBytes", None)
    rules = spec.get("x-kubernetes-validations", [])
    spec["x-kubernetes-validations"] = [
        rule for rule in rules if "maxMessageBytes" not in rule["rule"]
    ]
    path.write_text(yaml.safe_dump(definition))
    return chart


def topic_fields(cluster: Cluster) -> set[str]:
    text = cluster.kubectl("get", "crd", "topics.ibrik.dev", "--output=json")
    version = json.loads(text)["spec"]["versions"][0]
    return set(version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"])
