"""What the schema of the values refuses, and that it speaks of every value."""

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.helm import CHART, refusal, template

pytestmark = pytest.mark.slow
# Parts that Kubernetes itself defines, and maps with names of the user's.
FREE = {
    "global", "commonLabels", "operator.resources", "operator.podLabels", "operator.podAnnotations",
    "operator.nodeSelector", "operator.affinity", "serviceAccount.annotations", "monitoring.labels",
}  # fmt: skip
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())


def names(values: dict[str, Any], above: str = "") -> Iterator[str]:
    for name, value in values.items():
        path = f"{above}{name}"
        yield path
        if isinstance(value, dict) and path not in FREE:
            yield from names(value, f"{path}.")


def described(schema: dict[str, Any], above: str = "") -> Iterator[str]:
    for name, inner in schema.get("properties", {}).items():
        path = f"{above}{name}"
        yield path
        if path not in FREE:
            yield from described(inner, f"{path}.")


def test_schema_and_values_speak_of_the_same_names() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert set(described(SCHEMA)) - {"global"} == set(names(values))


def test_every_value_has_a_comment_that_says_what_it_does() -> None:
    lines = (CHART / "values.yaml").read_text().splitlines()
    bare = [
        line
        for before, line in pairwise(lines)
        if ":" in line and not line.strip().startswith("#")
        # Groups explain themselves by what is in them; so do the amounts of resources.
        and not line.endswith(":") and line.strip().split(":")[0] not in {"cpu", "memory"}
        and not before.strip().startswith("#")
    ]  # fmt: skip
    assert bare == []


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("operater.replicas=1", "'operater' not allowed"),
        ("operator.replica=1", "'replica' not allowed"),
        ("operator.replicas=-1", "minimum"),
        ("operator.logLevel=loud", "value must be one of"),
        ("image.registry=oci://images.example", "'not' failed"),
        ("image.operator.digest=latest", "does not match pattern"),
        ("imagePullSecrets[0].nam=a", "'nam' not allowed"),
        ("watchNamespaces={A}", "does not match pattern"),
        ("watchNamespaces=shop", "want array"),
        ("monitoring.podMonitor.interval=fast", "does not match pattern"),
        ("defaultPool.storage.sise=1Gi", "'sise' not allowed"),
        ("defaultPool.replicas=99", "maximum"),
        ("defaultPool.storage.size=big", "does not match pattern"),
        ("defaultPool.metadata.postgres.key=uri", "'key' not allowed"),
    ],
)
def test_a_value_that_cannot_work_is_refused_with_its_place(value: str, said: str) -> None:
    assert said in refusal("--set", value)


@pytest.mark.parametrize("path", sorted((Path(__file__).parent / "values").glob("*.yaml")))
def test_the_schema_takes_what_is_meant(path: Path) -> None:
    assert template("--values", str(path)).returncode == 0
