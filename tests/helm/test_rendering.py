"""What the chart makes of its values: whole renderings, and what has to hold in each.

`IBRIK_WRITE_GOLDEN=1 pytest tests/helm -m slow` writes the renderings anew; read the difference.
"""

import difflib
import os
import re
import shutil
import tomllib
from pathlib import Path
from textwrap import indent

import pytest
import yaml

from ibrik_api import __version__
from ibrik_api.definitions import KINDS
from tests.support.helm import (
    CHART,
    KUBE_VERSION,
    ROOT,
    Document,
    documents,
    helm,
    named,
    of_kind,
    rendered,
)

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent
VALUES = sorted(path.stem for path in (HERE / "values").glob("*.yaml"))
WITH_PODS = {"Deployment", "Job", "Pod"}


def values_of(name: str) -> tuple[str, str]:
    return "--values", str(HERE / "values" / f"{name}.yaml")


def pods_of(found: list[Document]) -> dict[str, Document]:
    """The spec of each pod, by the name of what makes it."""
    return {
        one["metadata"]["name"]: one["spec"].get("template", one)["spec"]
        for one in found
        if one["kind"] in WITH_PODS
    }


@pytest.mark.parametrize("name", VALUES)
def test_the_rendering_is_the_one_that_was_read(name: str) -> None:
    golden = HERE / "golden" / f"{name}.yaml"
    text = rendered(*values_of(name))
    if os.environ.get("IBRIK_WRITE_GOLDEN"):
        golden.write_text(text, encoding="utf-8")
    diff = difflib.unified_diff(golden.read_text("utf-8").splitlines(), text.splitlines(), n=1)
    assert list(diff) == []


def test_helm_finds_nothing_to_complain_about() -> None:
    ended = helm("lint", "--strict", "--kube-version", KUBE_VERSION, str(CHART))
    assert ended.returncode == 0, ended.stdout


def test_chart_operator_and_brokers_have_one_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == __version__
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["name"] == chart["name"]


def test_definitions_are_those_of_the_models_and_stay_at_an_uninstall() -> None:
    found = {
        one["metadata"]["name"]: one
        for one in of_kind(documents(crds=True), "CustomResourceDefinition")
    }
    assert len(found) == len(KINDS)
    for kind in KINDS:
        made = yaml.safe_load((ROOT / "crds" / f"{kind.plural}.yaml").read_text())
        given = found[made["metadata"]["name"]]
        assert given["spec"] == made["spec"]
        assert given["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}


def test_nothing_in_a_definition_is_taken_for_a_template() -> None:
    for path in CHART.glob("files/crds/*.yaml"):
        assert path.read_text().strip() in rendered(), path.name


@pytest.mark.parametrize("name", VALUES)
def test_every_pod_is_of_the_restricted_profile(name: str) -> None:
    pods = pods_of(documents(*values_of(name)))
    assert "ibrik-test" in pods
    for pod in pods.values():
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert "memory" in container["resources"]["limits"]
            assert "memory" in container["resources"]["requests"]


def test_every_image_comes_from_the_registry_that_is_chosen() -> None:
    text = rendered(*values_of("site"), "--set", "uninstall.releaseFinalizers=true")
    images = re.findall(r"image: (.+)", text) + re.findall(r"BROKER_IMAGE\n +value: (.+)", text)
    assert len(images) == 4
    assert all(image.startswith("images.example:5000/mirror/ibrik/") for image in images)


def test_every_pod_has_the_secrets_of_the_registry_and_its_place() -> None:
    found = documents(*values_of("site"), "--set", "uninstall.releaseFinalizers=true")
    for pod in pods_of(found).values():
        assert pod["imagePullSecrets"] == [{"name": "mirror"}, {"name": "other"}]
        assert pod["priorityClassName"] == "system-cluster-critical"
        assert pod["nodeSelector"] == {"kubernetes.io/os": "linux"}
        assert pod["tolerations"] == [{"key": "control", "operator": "Exists"}]
        assert "nodeAffinity" in pod["affinity"]


def test_another_default_pool_is_another_pod() -> None:
    def pod_of(*arguments: str) -> Document:
        deployment = named(documents(*arguments), "Deployment", "ibrik-operator")
        annotations: Document = deployment["spec"]["template"]["metadata"]["annotations"]
        return annotations

    assert pod_of() == pod_of()
    assert pod_of() != pod_of("--set", "defaultPool.storage.size=20Gi")


def test_a_default_pool_reaches_the_operator_as_it_is() -> None:
    found = documents("--set", "defaultPool.storage.size=20Gi,defaultPool.podTemplate.labels.a=b")
    data = named(found, "ConfigMap", "ibrik-operator")["data"]
    assert yaml.safe_load(data["default-pool.yaml"]) == {
        "storage": {"size": "20Gi"},
        "podTemplate": {"labels": {"a": "b"}},
    }


def test_a_release_of_another_name_shares_no_name_with_the_first() -> None:
    def names(release: str) -> set[tuple[str, str]]:
        ended = helm(
            "template", release, str(CHART), "--namespace", release, "--kube-version", KUBE_VERSION,
            "--set", "crds.enabled=false",
        )  # fmt: skip
        found = [one for one in yaml.safe_load_all(ended.stdout) if one]
        return {(one["kind"], one["metadata"]["name"]) for one in found}

    assert names("first") & names("second") == set()


def notes(folder: Path, *arguments: str) -> str:
    """The notes, rendered as a file of a copy of the chart: `helm template` leaves them out."""
    chart = folder / "ibrik"
    shutil.copytree(CHART, chart, dirs_exist_ok=True)
    text = indent((CHART / "templates" / "NOTES.txt").read_text(), "  ")
    (chart / "templates" / "notes.yaml").write_text(f"kind: Notes\nnotes: |\n{text}")
    (shown,) = documents("--show-only", "templates/notes.yaml", *arguments, chart=chart)
    return str(shown["notes"])


def test_the_notes_say_the_next_command_and_what_is_not_secured_yet(tmp_path: Path) -> None:
    plain = notes(tmp_path)
    assert "Next: kubectl apply -f examples/quickstart/topic.yaml" in plain
    for open_end in (
        "No TLS",
        "Port 7070",
        "networkPolicies.enabled=true",
        "publishers: registered",
    ):
        assert open_end in plain
    assert "openRegistration" not in plain
    opened = notes(tmp_path, "--set", "defaultPool.listeners.openRegistration=true")
    assert "openRegistration=false" in opened
    closed = notes(
        tmp_path,
        "--set", "defaultPool.listeners.tcp.enabled=false,networkPolicies.enabled=true",
        "--set", "watchNamespaces={a,b}",
    )  # fmt: skip
    assert "7070" not in closed
    assert "networkPolicies" not in closed
    assert "the namespaces a, b." in closed
