"""The page of settings, from the classes in `ibrik_broker.settings`: one section per setting."""

from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from ibrik_broker.settings.source import Settings, variable_of
from pages.markdown import duration_ms, one_line, page, size


def pages() -> dict[str, str]:
    schema = Settings.model_json_schema()
    return {
        "reference/settings.md": page(
            "Settings",
            "All settings of the broker. A flag wins over the environment, the environment over a\n"
            "file. [Configure](../guides/configure.md) says how to give them.",
            "## The process",
            *_sections(Settings, schema, schema, ""),
        )
    }


def _sections(
    model: type[BaseModel], schema: dict[str, Any], root: dict[str, Any], prefix: str
) -> Iterator[str]:
    for name, field in sorted(model.model_fields.items(), key=lambda item: _is_group(item[1])):
        described = schema["properties"][name]
        if _is_group(field):
            kind = field.annotation
            assert isinstance(kind, type)
            assert issubclass(kind, BaseModel)
            group = root["$defs"][_reference(described)]
            yield f"## `{name}`\n\n{one_line(field.description or '')}"
            yield from _sections(kind, group, root, f"{prefix}{name}.")
        else:
            yield _one(prefix + name, field, described)


def _is_group(field: FieldInfo) -> bool:
    return isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)


def _reference(described: dict[str, Any]) -> str:
    reference = described.get("$ref") or described["allOf"][0]["$ref"]
    return str(reference).rpartition("/")[2]


def _one(name: str, field: FieldInfo, described: dict[str, Any]) -> str:
    assert field.description, f"setting {name} has no description"
    facts = [f"`{variable_of(name)}`", f"default {_value(name, field.default)}"]
    facts += _bounds(name, described)
    return f"### `{name}`\n\n{' · '.join(facts)}\n\n{one_line(field.description)}"


def _value(name: str, value: object) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return f"`{str(value).lower()}`"
        case int() if name.endswith("_bytes"):
            return f"`{value}` ({size(value)})"
        case int() if name.endswith("_ms"):
            return f"`{value}` ({duration_ms(value)})"
        case PurePath():
            return f"`{value.as_posix()}`"
    return f"`{value}`"


def _bounds(name: str, described: dict[str, Any]) -> list[str]:
    options = [described, *described.get("anyOf", ())]
    facts = []
    for option in options:
        if "enum" in option:
            facts.append("one of " + ", ".join(f"`{choice}`" for choice in option["enum"]))
        if "minimum" in option:
            facts.append(f"at least {_value(name, option['minimum'])}")
        if "maximum" in option:
            facts.append(f"at most {_value(name, option['maximum'])}")
        if "pattern" in option:
            facts.append(f"matches `{option['pattern']}`")
    return facts
