"""From a model to a structural schema: what is said in other words, and what is refused."""

from enum import StrEnum
from typing import Annotated, Any, Literal, Optional

import pytest
from pydantic import Field, WithJsonSchema

from ibrik_api.durations import DurationMs, duration_limits
from ibrik_api.model import Model
from ibrik_api.quantities import QuantityBytes
from ibrik_api.structural import NotStructural, structural_schema


class Colour(StrEnum):
    RED = "red"


class Inner(Model):
    """What the class says."""

    size: QuantityBytes = 1024
    """Its size."""
    wait_ms: Annotated[DurationMs, duration_limits(1, 2)] | None = Field(default=None, alias="wait")
    """How long."""


class Outer(Model):
    """All that can be
    said."""

    kind: Literal["Outer"] = "Outer"
    colour: Colour | None = None
    inner: Inner = Inner()
    """What the field says."""
    other: Inner | None = None
    bare: Inner
    names: dict[Annotated[str, Field(max_length=3)], Annotated[str, Field(max_length=4)]] = Field(
        default={}, max_length=5
    )
    factor: float = Field(default=2.0, gt=1.0, lt=10.5)
    count: int = Field(default=0, ge=0, le=2**63 - 1)
    from_: list[int] = Field(default=[1], max_length=2, alias="from")


def field(name: str) -> dict[str, Any]:
    properties: dict[str, Any] = structural_schema(Outer)["properties"]
    schema: dict[str, Any] = properties[name]
    return schema


def schema_of(annotation: Any, **facts: Any) -> dict[str, Any]:
    holder = type("Holder", (Model,), {"__annotations__": {"it": annotation}, "it": Field(**facts)})
    schema: dict[str, Any] = structural_schema(holder)["properties"]["it"]
    return schema


def test_the_root_keeps_its_description_in_one_line_and_its_required_fields() -> None:
    schema = structural_schema(Outer)
    assert schema["description"] == "All that can be said."
    assert schema["required"] == ["bare"]
    assert schema.keys() == {"description", "type", "required", "properties"}


def test_references_are_written_out_and_the_field_speaks_before_its_class() -> None:
    assert field("inner")["description"] == "What the field says."
    assert field("bare")["description"] == "What the class says."
    assert field("bare")["properties"].keys() == {"size", "wait"}
    assert "$ref" not in str(structural_schema(Outer))


def test_an_optional_field_is_not_nullable() -> None:
    assert field("colour") == {"type": "string", "enum": ["red"]}
    assert field("other")["type"] == "object"
    assert "default" not in field("other")


def test_nulls_are_in_no_default() -> None:
    assert field("inner")["default"] == {"size": "1Ki"}


def test_a_constant_is_a_choice_of_one() -> None:
    assert field("kind") == {"type": "string", "default": "Outer", "enum": ["Outer"]}


def test_whole_numbers_and_open_bounds_are_written_as_kubernetes_prints_them() -> None:
    assert field("factor") == {
        "type": "number",
        "default": 2,
        "minimum": 1,
        "exclusiveMinimum": True,
        "maximum": 10.5,
        "exclusiveMaximum": True,
    }
    assert repr(field("factor")["default"]) == "2"


def test_the_largest_integer_is_a_format_since_bounds_are_floats() -> None:
    assert field("count") == {"type": "integer", "format": "int64", "default": 0, "minimum": 0}


def test_names_in_a_map_are_left_to_the_broker() -> None:
    assert field("names") == {
        "type": "object",
        "default": {},
        "maxProperties": 5,
        "additionalProperties": {"type": "string", "maxLength": 4},
    }


def test_an_alias_is_the_name() -> None:
    assert field("from")["items"] == {"type": "integer"}
    assert field("from")["default"] == [1]


def test_a_size_is_an_int_or_string_without_a_type() -> None:
    size = field("bare")["properties"]["size"]
    assert size["x-kubernetes-int-or-string"] is True
    assert size["anyOf"] == [{"type": "integer"}, {"type": "string"}]
    assert "type" not in size


def test_bounds_of_a_duration_are_a_rule_without_days() -> None:
    wait = field("bare")["properties"]["wait"]
    assert wait["format"] == "duration"
    assert wait["x-kubernetes-validations"] == [
        {
            "rule": "self >= duration('1ms') && self <= duration('2ms')",
            "message": "it is out of bounds: write 1ms to 2ms",
        }
    ]


class Node(Model):
    next: Optional["Node"] = None


Said = tuple[str, Any]
UNSAYABLE: list[tuple[Any, str]] = [
    (int | str, "a union of 2"),
    (Any, "no type"),
    (dict[str, Any], "x-kubernetes-preserve-unknown-fields"),
    (list[Any], "no type"),
    (Annotated[set[int], Field(max_length=1)], "uniqueItems cannot be said"),
    (tuple[int, str], "prefixItems cannot be said"),
    (Annotated[str, WithJsonSchema({"type": "string", "format": "uri"})], "the format uri"),
    (Annotated[str, WithJsonSchema({"type": "string", "examples": ["a"]})], "examples cannot"),
    (Annotated[str, WithJsonSchema({"type": "string", "deprecated": True})], "deprecated cannot"),
    (Annotated[str, WithJsonSchema({"type": "string", "writeOnly": True})], "writeOnly cannot"),
    (Annotated[str, WithJsonSchema({"oneOf": []})], "oneOf cannot"),
    (Annotated[str, WithJsonSchema({"type": "object", "patternProperties": {}})], "patternProp"),
    (Annotated[str, WithJsonSchema({"type": "array"})], "does not say what is in it"),
    (
        Annotated[
            str,
            WithJsonSchema(
                {
                    "type": "object",
                    "properties": {"a": {"type": "string"}},
                    "additionalProperties": {"type": "string"},
                }
            ),
        ],
        "exclude each other",
    ),
    (
        Annotated[
            str,
            WithJsonSchema(
                {
                    "type": "object",
                    "required": ["a"],
                    "properties": {"a": {"type": "string", "default": "b"}},
                }
            ),
        ],
        "a is required and has a default",
    ),
    (
        Annotated[str, WithJsonSchema({"type": "string", "x-kubernetes-int-or-string": True})],
        "without a type",
    ),
    (Node, "Node holds itself"),
]


@pytest.mark.parametrize(("annotation", "told"), UNSAYABLE)
def test_what_cannot_be_said_stops_the_conversion_at_its_place(annotation: Any, told: str) -> None:
    with pytest.raises(NotStructural, match=told) as refused:
        schema_of(annotation)
    assert str(refused.value).startswith("Holder.it")


def test_what_kubernetes_defines_is_kept_as_it_comes() -> None:
    kept = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    assert schema_of(Annotated[dict[str, Any], WithJsonSchema(kept)]) == kept
