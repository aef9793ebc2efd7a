"""Every bound that a structural schema states, broken once: the place, and a value that does."""

import copy
import itertools
import re
from collections.abc import Iterator
from typing import Any

Path = tuple[str | int, ...]
Schema = dict[str, Any]

_TEXTS = ("", "a", "-", "A b", "ä", "x" * 20, "1.2.3", "7 days", "/", "://")


def broken_values(schema: Schema) -> Iterator[tuple[Path, Any]]:
    """Of everything below `spec`; a value is wrong in one respect only, as far as that goes."""
    yield from _broken(schema["properties"]["spec"], ("spec",))


def with_value(document: dict[str, Any], path: Path, value: Any) -> dict[str, Any]:
    """A copy of `document` that holds `value` at `path`; what is missing on the way is made."""
    changed = copy.deepcopy(document)
    at: Any = changed
    for step, following in itertools.pairwise(path):
        empty: Any = [] if isinstance(following, int) else {}
        if isinstance(at, list):
            at.append(empty)
            at = at[-1]
        else:
            at = at.setdefault(step, empty)
    if isinstance(at, list):
        at.append(value)
    else:
        at[path[-1]] = value
    return changed


def _broken(schema: Schema, path: Path) -> Iterator[tuple[Path, Any]]:
    for value in _wrong(schema):
        yield path, value
    for name, child in schema.get("properties", {}).items():
        yield from _broken(child, (*path, name))
    if "items" in schema:
        yield from _broken(schema["items"], (*path, 0))
    if "additionalProperties" in schema:
        yield from _broken(schema["additionalProperties"], (*path, "some"))


def _wrong(schema: Schema) -> Iterator[Any]:
    if "x-kubernetes-int-or-string" in schema:
        yield from ({}, True, -1, "1 Gi", "x", "1" * 40)
        return
    match schema["type"]:
        case "string":
            yield from _wrong_texts(schema)
        case "integer" | "number":
            yield from _wrong_numbers(schema)
        case "boolean":
            yield from ("true", 1)
        case "array":
            yield {}
            yield [_any(schema["items"])] * (schema["maxItems"] + 1)
        case "object":
            yield from ("text", [])
            if "maxProperties" in schema:
                many = range(schema["maxProperties"] + 1)
                yield {f"a{n}": _any(schema["additionalProperties"]) for n in many}


def _wrong_numbers(schema: Schema) -> Iterator[Any]:
    yield "1"
    if schema["type"] == "integer":
        yield 1.5
    for bound, step in (("minimum", -1), ("maximum", 1)):
        if bound in schema:
            yield schema[bound] + step


def _wrong_texts(schema: Schema) -> Iterator[Any]:
    yield 5
    if "enum" in schema:
        yield "nonsense"
        yield schema["enum"][0].swapcase()
        return
    if "maxLength" in schema:
        yield "a" * (schema["maxLength"] + 1)
    if schema.get("minLength", 0) > 0:
        yield "a" * (schema["minLength"] - 1)
    if "pattern" in schema:
        unfit = (text for text in _TEXTS if not re.search(schema["pattern"], text))
        yield next(unfit)


def _any(schema: Schema) -> Any:
    """Something of the right type."""
    if "x-kubernetes-int-or-string" in schema:
        return 1
    return {"string": "a", "object": {}, "integer": 1, "boolean": True, "array": []}[schema["type"]]
