"""The chart as Helm renders it."""

import functools
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "helm" / "ibrik"
KUBE_VERSION = "1.34.0"
TIMEOUT_S = 60

Document = dict[str, Any]


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ("helm", *arguments), capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )


@functools.cache
def template(*arguments: str, chart: Path = CHART) -> subprocess.CompletedProcess[str]:
    return helm(
        "template", "ibrik", str(chart), "--namespace", "ibrik-system",
        "--kube-version", KUBE_VERSION, *arguments,
    )  # fmt: skip


def rendered(*arguments: str, chart: Path = CHART) -> str:
    ended = template(*arguments, chart=chart)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def documents(*arguments: str, chart: Path = CHART, crds: bool = False) -> list[Document]:
    """The objects of a rendering; the definitions, which are most of its text, only if wished."""
    text = rendered(*arguments, "--set", f"crds.enabled={str(crds).lower()}", chart=chart)
    return [document for document in yaml.safe_load_all(text) if document]


def of_kind(found: Sequence[Document], kind: str) -> list[Document]:
    return [document for document in found if document["kind"] == kind]


def named(found: Sequence[Document], kind: str, name: str) -> Document:
    (only,) = [one for one in of_kind(found, kind) if one["metadata"]["name"] == name]
    return only


def refusal(*arguments: str) -> str:
    """What Helm says about values that it does not take."""
    ended = template(*arguments)
    assert ended.returncode != 0, ended.stdout[:400]
    return ended.stderr
