"""The pages of settings, from the classes of the two programs: one section per setting."""

from collections.abc import Callable, Iterator
from pathlib import PurePath
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from ibrik_broker.settings.source import Settings, variable_of
from ibrik_operator import settings as operator
from pages.markdown import duration_ms, one_line, page, size

VariableOf = Callable[[str], str]


def pages() -> dict[str, str]:
    return {
        "reference/settings.md": page(
            "Settings",
            "All settings of the broker. A flag wins over the environment, the environment over a\n"
            "file. [Configure](../guides/configure.md) says how to give them.",
            "## The process",
            *_all_sections(Settings, variable_of),
        ),
        "reference/operator-settings.md": page(
            "Settings of the operator",
            "All settings of the operator: environment variables, which the chart sets from its\n"
            "[values](values.md). Change the values and not the Deployment, since the next\n"
            "`helm upgrade` writes the Deployment anew. An unknown variable of this prefix stops\n"
            "the start and names the nearest known one. Settings of brokers are on a\n"
            "[page of their own](settings.md).",
            "## The process",
            *_all_sections(operator.Settings, operator.variable_of),
        ),
    }


def _all_sections(model: type[BaseModel], variable: VariableOf) -> Iterator[str]:
    schema = model.model_json_schema()
    return _sections(model, schema, schema, "", variable)


def _sections(
    model: type[BaseModel],
    schema: dict[str, Any],
    root: dict[str, Any],
    prefix: str,
    variable: VariableOf,
) -> Iterator[str]:
    for name, field in sorted(model.model_fields.items(), key=lambda item: _is_group(item[1])):
        described = schema["properties"][name]
        if _is_group(field):
            kind = field.annotation
            assert isinstance(kind, type)
            assert issubclass(kind, BaseModel)
            group = root["$defs"][_reference(described)]
            yield f"## `{name}`\n\n{one_line(field.description or '')}"
            yield from _sections(kind, group, root, f"{prefix}{name}.", variable)
        else:
            yield _one(prefix + name, field, described, variable)


def _is_group(field: FieldInfo) -> bool:
    return isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)


def _reference(described: dict[str, Any]) -> str:
    reference = described.get("$ref") or described["allOf"][0]["$ref"]
    return str(reference).rpartition("/")[2]


def _one(name: str, field: FieldInfo, described: dict[str, Any], variable: VariableOf) -> str:
    assert field.description, f"setting {name} has no description"
    facts = [f"`{variable(name)}`", _default(name, field)]
    facts += _bounds(name, described)
    return f"### `{name}`\n\n{' · '.join(facts)}\n\n{one_line(field.description)}"


def _default(name: str, field: FieldInfo) -> str:
    if field.default is PydanticUndefined:  # Found out at the start; the description says how.
        return "found at the start"
    return f"default {_value(name, field.default)}"


def _value(name: str, value: object) -> str:
    match value:
        case None | () | "" | {}:
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
