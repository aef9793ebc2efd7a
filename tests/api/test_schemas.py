"""The JSON Schemas: for OpenAPI, and convertible to the structural schema of a CRD."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from ibrik_api.desired import DesiredRequest
from ibrik_api.http import (
    BatchRequest,
    MessageView,
    PublishResult,
    component_schemas,
)
from ibrik_api.resources.topic import Topic

RESOURCE = Topic.model_json_schema(mode="serialization")
ILLEGAL = {"oneOf", "patternProperties", "propertyNames", "uniqueItems", "examples", "deprecated"}


def nodes(schema: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(schema, dict):
        if "type" in schema or "anyOf" in schema:
            yield path, schema
        for key, value in schema.items():
            if key != "default":
                yield from nodes(value, f"{path}/{key}")
    elif isinstance(schema, list):
        for index, value in enumerate(schema):
            yield from nodes(value, f"{path}/{index}")


def test_the_resource_uses_no_keyword_that_a_structural_schema_forbids() -> None:
    found = [(path, ILLEGAL & node.keys()) for path, node in nodes(RESOURCE)]
    assert [item for item in found if item[1]] == []


def test_every_text_and_list_of_the_resource_is_bounded() -> None:
    unbounded = [
        path
        for path, node in nodes(RESOURCE)
        if (
            node.get("type") == "string"
            and not node.keys() & {"maxLength", "enum", "const"}
            and "x-kubernetes-int-or-string" not in str(parent_of(path))
        )
        or (node.get("type") == "array" and "maxItems" not in node)
        or (node.get("type") == "object" and "properties" not in node)
    ]
    assert unbounded == []


def parent_of(path: str) -> Any:
    """The node that holds the `anyOf` which `path` leads into."""
    node: Any = RESOURCE
    for step in path.split("/")[1:-2]:
        node = node[int(step)] if isinstance(node, list) else node[step]
    return node


def test_every_field_of_the_resource_has_a_description() -> None:
    bare = [
        f"{name}.{field}"
        for name, definition in RESOURCE["$defs"].items()
        for field, schema in definition.get("properties", {}).items()
        if not schema.get("description")
    ]
    assert bare == []


def test_defaults_are_written_as_people_write_them() -> None:
    spec = RESOURCE["$defs"]["TopicSpec"]["properties"]
    assert spec["retention"]["default"]["time"] == "7d"
    assert spec["maxMessageBytes"]["default"] == "1Mi"
    assert RESOURCE["$defs"]["Segment"]["properties"]["bytes"]["default"] == "256Mi"


def test_the_schemas_refer_to_each_other_within_the_document() -> None:
    schemas = component_schemas()
    text = msgspec.json.encode(schemas).decode()
    assert "#/$defs/" not in text
    for name in {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}:
        assert name in schemas


def test_a_json_value_is_kept_as_the_bytes_received() -> None:
    body = b'{"messages":[{"key":"7","value":{"a": 1.10},"headers":{"x":null}},{"value":null}]}'
    first, second = msgspec.json.decode(body, type=BatchRequest).messages
    assert isinstance(first.value, msgspec.Raw)
    assert bytes(first.value) == b'{"a": 1.10}'
    assert isinstance(second.value, msgspec.Raw)
    assert bytes(second.value) == b"null"
    assert second.key is msgspec.UNSET


@pytest.mark.parametrize("body", [b'{"messages":[]}', b'{"messages":[{"vlaue":1}]}', b"{}"])
def test_a_batch_of_another_shape_is_refused(body: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(body, type=BatchRequest)


def test_results_leave_out_what_does_not_apply() -> None:
    result = PublishResult("orders", 0, 5, "x-0-5", "2026-11-27T10:00:00.123Z", "flushed")
    assert "duplicate" not in msgspec.json.decode(msgspec.json.encode(result))
    view = MessageView(0, 5, "t", "x", value=msgspec.Raw(b'{"a": 1}'))
    assert msgspec.json.encode(view).endswith(b'"value":{"a": 1}}')


def test_a_desired_list_is_bounded() -> None:
    assert DesiredRequest.model_json_schema()["properties"]["resources"]["maxItems"] == 1_000
