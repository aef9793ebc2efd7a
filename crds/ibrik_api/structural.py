"""A pydantic model as a structural schema: the dialect of JSON Schema that Kubernetes takes.

Pure: a model in, a schema out. Structural means: every node has a type, nothing refers elsewhere,
unions are optional members with a rule beside them. A keyword that is not on the list stops the
conversion, because the API server would refuse the definition, or, worse, drop the keyword
silently. `definitions` calls this.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

Schema = dict[str, Any]

INT64_MAX = 2**63 - 1
FORMATS = frozenset({"duration", "int64"})
"""Formats that the API server checks and that mean the same here."""

_KEPT = (
    "description",
    "type",
    "format",
    "default",
    "enum",
    "minLength",
    "maxLength",
    "pattern",
    "minimum",
    "exclusiveMinimum",
    "maximum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "x-kubernetes-int-or-string",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    "x-kubernetes-validations",
    "required",
)
"""Copied, in this order."""
_NESTED = ("items", "additionalProperties", "properties", "anyOf")
# A title repeats the name; the broker checks the names in a map, where the API server cannot.
_DROPPED = ("title", "discriminator", "propertyNames")
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]


class NotStructural(Exception):
    """A model holds what no structural schema can say; the text names the place."""


def structural_schema(model: type[BaseModel]) -> Schema:
    """The schema of `model` by its outside names, with defaults as people write them."""
    document = model.model_json_schema(mode="serialization")
    return _converted(document, document.get("$defs", {}), model.__name__, ())


def _converted(
    node: Schema, definitions: Mapping[str, Schema], path: str, inside: tuple[str, ...]
) -> Schema:
    """`inside` are the definitions around this node: one that holds itself has no end."""
    node, inside = _resolved(node, definitions, path, inside)
    _check_keywords(node, path)
    node = _restated(node, path)
    schema = {key: node[key] for key in _KEPT if node.get(key) is not None}
    if "anyOf" in node:
        schema["anyOf"] = node["anyOf"]
    if isinstance(values := node.get("additionalProperties"), dict):
        schema["additionalProperties"] = _converted(values, definitions, f"{path}{{}}", inside)
    if "items" in node:
        schema["items"] = _converted(node["items"], definitions, f"{path}[]", inside)
    if node.get("properties"):
        schema["properties"] = {
            name: _converted(child, definitions, f"{path}.{name}", inside)
            for name, child in node["properties"].items()
        }
    _check_shape(schema, path)
    return schema


def _resolved(
    node: Schema, definitions: Mapping[str, Schema], path: str, inside: tuple[str, ...]
) -> tuple[Schema, tuple[str, ...]]:
    """The node without `$ref` and without null; what stands beside a reference wins over it."""
    while True:
        beside = {key: value for key, value in node.items() if key not in ("$ref", "anyOf")}
        if "$ref" in node:
            name = node["$ref"].rpartition("/")[2]
            if name in inside:
                raise NotStructural(f"{path}: {name} holds itself")
            inside = (*inside, name)
            node = definitions[name] | beside
        elif "anyOf" in node and "x-kubernetes-int-or-string" not in node:
            members = [member for member in node["anyOf"] if member != {"type": "null"}]
            if len(members) != 1:
                raise NotStructural(
                    f"{path}: a union of {len(members)}: make them optional members, with a rule "
                    "that says which go together"
                )
            node = members[0] | beside
        else:
            return {key: value for key, value in node.items() if key != "$defs"}, inside


def _check_keywords(node: Schema, path: str) -> None:
    unknown = node.keys() - {*_KEPT, *_NESTED, *_DROPPED, "const"}
    if unknown:
        raise NotStructural(f"{path}: {', '.join(sorted(unknown))} cannot be said")


def _restated(node: Schema, path: str) -> Schema:
    """The same said in Kubernetes' words."""
    restated = dict(node)
    if "const" in node:
        restated["enum"] = [restated.pop("const")]
    for flag, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if flag in node:
            restated |= {bound: node[flag], flag: True}
    if restated.get("maximum") == INT64_MAX:
        # The server keeps bounds as floats, where this number would become another one.
        del restated["maximum"]
        restated["format"] = "int64"
    for key in restated.keys() & {"default", "minimum", "maximum"}:
        restated[key] = _plain(restated[key])
    if "description" in restated:
        restated["description"] = " ".join(restated["description"].split())
    if node.get("additionalProperties") is True:
        raise NotStructural(f"{path}: any value: say x-kubernetes-preserve-unknown-fields")
    return restated


def _plain(value: Any) -> Any:
    """Without nulls, which are no values to Kubernetes; whole numbers as it prints them."""
    match value:
        case dict():
            return {key: _plain(member) for key, member in value.items() if member is not None}
        case list():
            return [_plain(member) for member in value]
        case float() if value.is_integer():
            return int(value)
    return value


def _check_shape(schema: Schema, path: str) -> None:
    if "x-kubernetes-int-or-string" in schema:
        if schema.get("anyOf") != _INT_OR_STRING or "type" in schema:
            raise NotStructural(f"{path}: an int-or-string is an anyOf of the two, without a type")
    elif "type" not in schema:
        raise NotStructural(f"{path}: it has no type")
    if schema.get("format", "int64") not in FORMATS:
        raise NotStructural(f"{path}: the format {schema['format']} means nothing to Kubernetes")
    if "properties" in schema and "additionalProperties" in schema:
        raise NotStructural(f"{path}: named members and others exclude each other")
    if schema.get("type") == "array" and "items" not in schema:
        raise NotStructural(f"{path}: the list does not say what is in it")
    unmet = set(schema.get("required", ())) & _defaulted(schema)
    if unmet:
        raise NotStructural(f"{path}: {', '.join(sorted(unmet))} is required and has a default")


def _defaulted(schema: Schema) -> set[str]:
    return {name for name, child in schema.get("properties", {}).items() if "default" in child}
