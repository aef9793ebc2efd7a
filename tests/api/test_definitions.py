"""The four definitions: their names and columns, and that a Kubernetes would take them.

The rules of a structural schema are asserted here from Kubernetes' documentation, apart from the
converter. What only an API server knows is not: the types in the rules, and what they cost.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft4Validator
from pydantic import BaseModel

from ibrik_api.definitions import KINDS, Kind, custom_resource_definition, resource_schema
from tests.support.admission import admit, defaulted, pruned, schema_of

ROOT = Path(__file__).resolve().parents[2]
BY_NAME = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
# https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/
ILLEGAL = {
    "$ref", "$defs", "definitions", "dependencies", "deprecated", "discriminator", "id",
    "patternProperties", "readOnly", "writeOnly", "xml", "allOf", "oneOf", "not", "const", "title",
    "examples", "propertyNames", "uniqueItems", "nullable", "additionalItems", "prefixItems",
}  # fmt: skip
FORMATS = {"duration", "int32", "int64", "float", "double", "byte", "date", "date-time"}
ESCAPED = {
    "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function",
    "if", "import", "let", "loop", "package", "namespace", "return", "var", "void", "while",
}  # fmt: skip
SHELL = {"BrokerPool": ("brokerpools", "ibp"), "Topic": ("topics", "ibt")} | {
    "Subscription": ("subscriptions", "ibs"),
    "Channel": ("channels", "ibc"),
}
COLUMNS = {
    "BrokerPool": ("READY BROKERS STORAGE AGE", "VERSION METADATA"),
    "Topic": ("PARTITIONS RETENTION SUBSCRIPTIONS READY REASON AGE", "POOL TOPIC-ID BYTES"),
    "Subscription": ("TOPIC MODE DESTINATION BACKLOG READY REASON AGE", ""),
    "Channel": ("TYPE DESTINATION CIRCUIT READY REASON AGE", ""),
}


def nodes(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from nodes(schema[key], f"{path}[]")


def version_of(kind: Kind) -> dict[str, Any]:
    version: dict[str, Any]
    (version,) = custom_resource_definition(kind)["spec"]["versions"]
    return version


def at(schema: dict[str, Any], path: str) -> dict[str, Any]:
    for step in path.removeprefix(".").split("."):
        schema = schema["properties"][step]
    return schema


@BY_NAME
def test_the_names_are_those_of_the_documentation(kind: Kind) -> None:
    document = custom_resource_definition(kind)
    plural, short = SHELL[kind.name]
    assert document["metadata"] == {"name": f"{plural}.ibrik.dev"}
    spec = document["spec"]
    assert (spec["group"], spec["scope"]) == ("ibrik.dev", "Namespaced")
    assert spec["names"] == {
        "kind": kind.name,
        "listKind": f"{kind.name}List",
        "plural": plural,
        "singular": kind.name.lower(),
        "shortNames": [short],
        "categories": ["ibrik"],
    }
    version = version_of(kind)
    assert (version["name"], version["served"], version["storage"]) == ("v1beta1", True, True)


@BY_NAME
def test_kubectl_shows_the_columns_of_the_documentation(kind: Kind) -> None:
    columns = version_of(kind)["additionalPrinterColumns"]
    shown = [c["name"].upper() for c in columns if "priority" not in c]
    wide = [c["name"].upper() for c in columns if c.get("priority") == 1]
    assert (" ".join(shown), " ".join(wide)) == COLUMNS[kind.name]


@BY_NAME
def test_each_column_and_selectable_field_is_a_field_of_that_type(kind: Kind) -> None:
    version, schema = version_of(kind), schema_of(kind.name)
    for column in version["additionalPrinterColumns"]:
        path = column["jsonPath"]
        if path == ".metadata.creationTimestamp":
            assert column["type"] == "date"
        elif path.startswith(".status.conditions["):
            item = at(schema, ".status.conditions")["items"]
            assert path.rpartition(".")[2] in item["properties"]
            assert path.startswith('.status.conditions[?(@.type=="Ready")].')
        else:
            assert at(schema, path).get("type", "string") == column["type"]
    for field in version.get("selectableFields", []):
        assert at(schema, field["jsonPath"])["type"] == "string"


def test_a_pool_scales_by_its_subresource_and_the_others_do_not() -> None:
    with_scale = [kind.name for kind in KINDS if "scale" in version_of(kind)["subresources"]]
    assert with_scale == ["BrokerPool"]
    scale = version_of(KINDS[0])["subresources"]["scale"]
    kinds = {key: at(schema_of("BrokerPool"), path)["type"] for key, path in scale.items()}
    assert kinds == {
        "specReplicasPath": "integer",
        "statusReplicasPath": "integer",
        "labelSelectorPath": "string",
    }
    assert all(version_of(kind)["subresources"]["status"] == {} for kind in KINDS)


@BY_NAME
def test_every_schema_is_a_json_schema(kind: Kind) -> None:
    Draft4Validator.check_schema(schema_of(kind.name))


@BY_NAME
def test_every_schema_is_structural(kind: Kind) -> None:
    for path, node in nodes(schema_of(kind.name)):
        assert not ILLEGAL & node.keys(), path
        if "x-kubernetes-int-or-string" in node:
            assert node["anyOf"] == [{"type": "integer"}, {"type": "string"}], path
            assert "type" not in node, path
        else:
            assert node["type"] in {"object", "array", "string", "integer", "number", "boolean"}
            assert "anyOf" not in node, path
        assert node.get("format", "int64") in FORMATS, path
        assert not ("properties" in node and "additionalProperties" in node), path
        assert node.get("additionalProperties") not in (True, False), path
        assert node["type"] != "array" or "items" in node if "type" in node else True, path
        assert set(node.get("required", ())) <= node.get("properties", {}).keys(), path


@BY_NAME
def test_the_root_leaves_to_kubernetes_what_is_its_own(kind: Kind) -> None:
    properties = schema_of(kind.name)["properties"]
    assert properties.keys() == {"apiVersion", "kind", "metadata", "spec", "status"}
    assert properties["metadata"] == {"type": "object"}
    assert "default" not in str(properties["status"])


@BY_NAME
def test_every_list_map_and_text_is_bounded_so_that_rules_cost_little(kind: Kind) -> None:
    spec_and_status = ("spec", "status")
    for name in spec_and_status:
        for path, node in nodes(schema_of(kind.name)["properties"][name], name):
            match node.get("type"):
                case "string":
                    assert "maxLength" in node or "enum" in node, path
                case "array":
                    assert "maxItems" in node, path
                case "object" if "additionalProperties" in node:
                    assert "maxProperties" in node, path
                case None:
                    assert "maxLength" in node, path


@BY_NAME
def test_every_field_has_a_description(kind: Kind) -> None:
    for path, node in nodes(schema_of(kind.name)):
        for name, child in node.get("properties", {}).items():
            assert child.get("description") or (path, name) == ("", "metadata"), f"{path}.{name}"


@BY_NAME
def test_defaults_are_valid_whole_and_beside_no_required(kind: Kind) -> None:
    def has_null(value: Any) -> bool:
        if isinstance(value, dict | list):
            return any(map(has_null, value.values() if isinstance(value, dict) else value))
        return value is None

    for path, node in nodes(schema_of(kind.name)):
        for name in node.get("required", ()):
            assert "default" not in node["properties"][name], f"{path}.{name}"
        if "default" in node:
            assert Draft4Validator(node).is_valid(node["default"]), path
            assert not has_null(node["default"]), path
            assert pruned(node, node["default"]) == node["default"], path


@BY_NAME
def test_lists_that_are_merged_by_a_key_require_it(kind: Kind) -> None:
    for path, node in nodes(schema_of(kind.name)):
        if node.get("x-kubernetes-list-type") == "map":
            assert set(node["x-kubernetes-list-map-keys"]) <= set(node["items"]["required"]), path


@BY_NAME
def test_unknown_fields_are_kept_only_where_kubernetes_itself_defines_them(kind: Kind) -> None:
    kept = [
        path
        for path, node in nodes(schema_of(kind.name))
        if "x-kubernetes-preserve-unknown-fields" in node
    ]
    pod = ".spec.podTemplate"
    expected = [f"{pod}.affinity", f"{pod}.tolerations[]", f"{pod}.topologySpread[]"]
    assert kept == (expected if kind.name == "BrokerPool" else [])


@BY_NAME
def test_rules_name_fields_that_are_there(kind: Kind) -> None:
    for path, node in nodes(schema_of(kind.name)):
        for rule in node.get("x-kubernetes-validations", ()):
            assert not re.search(r"duration\('[0-9]*[dw]", rule["rule"]), path
            assert "\n" not in rule["message"], path
            if "fieldPath" in rule:
                at(node, rule["fieldPath"])
            for chain in re.findall(r"(?:self|oldSelf)((?:\.\w+)+)(?![\w(])", rule["rule"]):
                if path or not chain.startswith(".metadata"):
                    at(node, chain)
                    assert not set(chain.split(".")) & ESCAPED, rule["rule"]


def fields_of(
    model: type[BaseModel], path: str = ""
) -> Iterator[tuple[str, type[BaseModel] | None]]:
    """Each field of `model` by its outside name, and the model in it, if there is one."""
    for field in model.model_fields.values():
        inner = re.findall(r"ibrik_api[\w.]*\.(\w+)", str(field.annotation))
        yield (
            f"{path}.{field.alias}",
            next((known for known in MODELS if known.__name__ in inner), None),
        )


def models_below(model: type[BaseModel]) -> set[type[BaseModel]]:
    found: set[type[BaseModel]] = set()
    queue: list[Any] = [model]
    while queue:
        part = queue.pop()
        if isinstance(part, type) and issubclass(part, BaseModel):
            if part not in found:
                found.add(part)
                queue += [field.annotation for field in part.model_fields.values()]
        else:
            queue += getattr(part, "__args__", ())
    return found


MODELS = {part for kind in KINDS for part in models_below(kind.model)}


@BY_NAME
def test_nothing_that_a_model_writes_is_pruned(kind: Kind) -> None:
    def visit(model: type[BaseModel], schema: dict[str, Any], path: str) -> int:
        schema = schema.get("items", schema)
        seen = 0
        for (name, inner), field in zip(fields_of(model), model.model_fields.values(), strict=True):
            assert field.alias in schema["properties"], path + name
            child = schema["properties"][field.alias]
            seen += 1 + (visit(inner, child, path + name) if inner else 0)
        return seen

    properties = schema_of(kind.name)["properties"]
    for name in ("spec", "status"):
        (inner,) = (part for key, part in fields_of(kind.model) if key == f".{name}")
        assert inner is not None
        count = sum(1 for _, node in nodes(properties[name]) for _ in node.get("properties", {}))
        assert visit(inner, properties[name], name) == count


def documents() -> list[Any]:
    """Resources of the examples and of the pages."""
    texts = [(p, p.read_text(encoding="utf-8")) for p in sorted(ROOT.glob("examples/*/*.yaml"))]
    for page in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]):
        blocks = re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
        texts += [(page, block) for block in blocks]
    return [
        pytest.param(document, id=f"{path.relative_to(ROOT)}-{index}")
        for index, (path, text) in enumerate(texts)
        for document in yaml.safe_load_all(text)
        if isinstance(document, dict) and document.get("apiVersion") == "ibrik.dev/v1beta1"
    ]


@pytest.mark.parametrize("document", documents())
def test_what_the_examples_and_pages_show_is_admitted_and_kept(document: dict[str, Any]) -> None:
    assert admit(document) == []
    schema = schema_of(document["kind"])
    spec = schema["properties"]["spec"]
    assert pruned(spec, document.get("spec", {})) == document.get("spec", {})


@BY_NAME
def test_a_whole_object_of_the_model_survives_the_server(kind: Kind) -> None:
    spec: dict[str, Any] = {
        "Subscription": {"topicRef": {"name": "orders"}},
        "Channel": {"http": {"url": "https://billing/"}},
    }.get(kind.name, {})
    head = {"apiVersion": "ibrik.dev/v1beta1", "kind": kind.name, "metadata": {"name": "orders"}}
    parsed = kind.model.parse(head | {"spec": spec})
    stored = defaulted(schema_of(kind.name), head | {"spec": spec})
    assert stored["spec"] == parsed.document()["spec"]
    assert kind.model.parse(stored) == parsed


def test_the_examples_are_among_what_is_checked() -> None:
    kinds = {parameter.values[0]["kind"] for parameter in documents()}
    assert {"Topic", "Subscription", "Channel"} <= kinds


@BY_NAME
def test_a_field_that_is_misspelt_is_pruned_by_the_server(kind: Kind) -> None:
    assert pruned(schema_of(kind.name), {"spec": {"no": 1}, "x": 2}) == {"spec": {}}


@BY_NAME
def test_the_committed_file_holds_this_definition(kind: Kind) -> None:
    text = (ROOT / f"crds/{kind.plural}.yaml").read_text(encoding="utf-8")
    assert text.startswith("# Written by docs/generate.py")
    assert yaml.safe_load(text) == custom_resource_definition(kind)
    assert not re.search(r"[&*]id[0-9]", text)


def test_definitions_are_plain_json_and_the_same_each_time() -> None:
    for kind in KINDS:
        once = json.dumps(custom_resource_definition(kind))
        assert json.dumps(custom_resource_definition(kind)) == once
        assert json.loads(once)["spec"]["versions"][0]["schema"]["openAPIV3Schema"] == (
            resource_schema(kind)
        )
