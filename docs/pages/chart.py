"""What of the Helm chart is made from the models: definitions, and how a pool in values is judged.

The schema of the values is written by hand but for its definitions; these are the models'. The page
of the values is `values.yaml` read back: the comment above a name is its description.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from ibrik_api.definitions import KINDS, custom_resource_definition
from ibrik_api.resources.pool import BrokerPoolSpec
from pages.definitions import NOTICE, as_yaml
from pages.markdown import page, table

CHART = Path(__file__).resolve().parents[2] / "helm" / "ibrik"
KEEP = {"helm.sh/resource-policy": "keep"}
_KEPT_OUT = ("default", "description", "title")


def chart_files() -> dict[str, str]:
    """Files of the chart, by their path in it."""
    return {
        **{f"files/crds/{kind.plural}.yaml": _definition(kind) for kind in KINDS},
        "values.schema.json": _schema_of_values(),
    }


def pages() -> dict[str, str]:
    values = (CHART / "values.yaml").read_text(encoding="utf-8")
    return {
        "reference/values.md": page(
            "Values of the chart",
            "What `helm install --set` and `--values` take. A name that is not here is refused.\n"
            "[Install](../guides/install.md) says what to choose for common cases.",
            table(("value", "default", "meaning"), described_values(values)),
        )
    }


def described_values(text: str) -> Iterator[tuple[str, str, str]]:
    """Name, default and comment of each value that has a comment right above it."""
    above: list[str] = []
    path: list[str] = []
    for line in text.splitlines():
        bare = line.strip()
        if bare.startswith("# "):
            above.append(bare.removeprefix("# "))
            continue
        if ":" in bare:
            depth = (len(line) - len(line.lstrip())) // 2
            path[depth:] = [bare.partition(":")[0]]
            if above:
                yield f"`{'.'.join(path)}`", _default(text, path), " ".join(above)
        above = []


def _default(text: str, path: list[str]) -> str:
    value = yaml.safe_load(text)
    for name in path:
        value = value[name]
    return f"`{json.dumps(value)}`"


def _definition(kind: Any) -> str:
    document = custom_resource_definition(kind)
    metadata = {"name": document["metadata"]["name"], "annotations": KEEP}
    return NOTICE + as_yaml({**document, "metadata": metadata})


def _schema_of_values() -> str:
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    pool = BrokerPoolSpec.model_json_schema(ref_template="#/definitions/{model}")
    models = {**pool.pop("$defs"), "BrokerPoolSpec": pool}
    schema["definitions"] = {name: _plain(models[name]) for name in sorted(models)}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _plain(schema: Any) -> Any:
    """Only what judges a value: no rules for an API server, no defaults, no texts."""
    if isinstance(schema, list):
        return [_plain(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {name: value for name, value in schema.items() if not name.startswith("x-kubernetes")}
    return {
        # Below `properties` a name is a field's, whatever it is.
        name: {field: _plain(value) for field, value in inner.items()}
        if name == "properties"
        else _plain(inner)
        for name, inner in kept.items()
        if name not in _KEPT_OUT
    }
