"""The page of the custom resources, from the schemas that the API server gets."""

from collections.abc import Iterator
from typing import Any

from ibrik_api.definitions import CATEGORY, GROUP, KINDS, VERSION, Column, Kind, resource_schema
from ibrik_api.resources.cel import VALIDATIONS
from pages.markdown import page, table

# Written once, where it belongs.
_ELSEWHERE = {
    "Subscription": {
        "push": "As the spec of a [Channel](#channel), without allowedNamespaces: where push "
        "delivers to, written here instead of in a Channel.",
    }
}
_WORDS = {
    "array": ("list", "maxItems"),
    "boolean": ("`true`, `false`", ""),
    "object": ("map", "maxProperties"),
    "string": ("text", "maxLength"),
}
_NOTES = {
    "BrokerPool": "Only the operator reads this kind: `ibrik apply` refuses it, and a broker of "
    "its own is configured by its [settings](settings.md).",
    "Topic": "Which fields are served so far is on the page of the [topic](topic.md).",
}


def pages() -> dict[str, str]:
    return {
        "reference/resources.md": page(
            "Resources",
            f"Four kinds of the group `{GROUP}`, version `{VERSION}`, each in a namespace. The\n"
            f"definitions are the YAML files in `crds/`. `kubectl get {CATEGORY}` shows all four;\n"
            "`kubectl get all` shows none, so that nothing is deleted with it.",
            "Use the full name in scripts, as in `kubectl get topics.ibrik.dev`: other products\n"
            "have kinds of the same plural. A field that is left out has its default; leaving it\n"
            "out later sets it to its default again. Durations are written `30s`, `7d` or\n"
            "`1h30m`; sizes `256Mi` or as a number of bytes.",
            table(("kind", "full name", "short"), map(_names, KINDS)),
            *(part for kind in KINDS for part in _parts(kind)),
        )
    }


def _names(kind: Kind) -> tuple[str, str, str]:
    return (
        f"[{kind.name}](#{kind.name.lower()})",
        f"`{kind.plural}.{GROUP}`",
        f"`{kind.short_name}`",
    )


def _parts(kind: Kind) -> Iterator[str]:
    schema = resource_schema(kind)
    yield f"## {kind.name}"
    yield f"{schema['description']} {_NOTES.get(kind.name, '')}".strip()
    shown, wide = (_titles(kind, is_wide) for is_wide in (False, True))
    yield f"Columns: {shown}." + (f" With `-o wide` also {wide}." if wide else "")
    yield f"### The spec of a {kind.name}"
    elsewhere = _ELSEWHERE.get(kind.name, {})
    rows = _rows(schema["properties"]["spec"], "", elsewhere)
    yield table(("field", "values", "default", "meaning"), rows)
    yield "Refused besides a field that does not fit:"
    yield "\n".join(dict.fromkeys(_rules(schema, "", elsewhere)))
    yield f"### The status of a {kind.name}"
    yield "What is observed; nobody but Ibrik writes it."
    rows = _rows(schema["properties"]["status"], "", {})
    yield table(("field", "values", "meaning"), ((row[0], row[1], row[3]) for row in rows))


def _titles(kind: Kind, is_wide: bool) -> str:
    columns: list[Column] = [column for column in kind.columns if column.is_wide is is_wide]
    return ", ".join(column.name.upper() for column in columns)


def _rows(
    schema: dict[str, Any], prefix: str, elsewhere: dict[str, str], is_given: bool = True
) -> Iterator[tuple[str, str, str, str]]:
    """`is_given`: what holds these fields is always there."""
    for name, child in schema["properties"].items():
        path = prefix + name
        is_required = name in schema.get("required", ())
        is_needed = is_given and (is_required or "default" in child)
        if path in elsewhere:
            yield f"`{path}`", "", "", elsewhere[path]
        elif "properties" in child:
            yield from _rows(child, f"{path}.", elsewhere, is_needed)
        elif child.get("items", {}).get("properties"):
            yield from _rows(child["items"], f"{path}[].", elsewhere, False)
        else:
            needed = "required" if is_given else f"required with `{prefix.rstrip('.[]')}`"
            default = needed if is_required else _default(child)
            yield f"`{path}`", _values(child), default, child["description"]


def _rules(schema: dict[str, Any], path: str, elsewhere: dict[str, str]) -> Iterator[str]:
    if "properties" not in schema:  # its bounds are among its values
        return
    for rule in schema.get(VALIDATIONS, ()):
        place = (path + rule.get("fieldPath", "")).removeprefix(".")
        yield f"* `{place or 'metadata.name'}`: {rule['message']}."
    for name, child in schema.get("properties", {}).items():
        if name not in elsewhere:
            yield from _rules(child, f"{path}.{name}", elsewhere)


def _default(schema: dict[str, Any]) -> str:
    match schema.get("default"):
        case None:
            return "none"
        case bool(flag):
            return f"`{str(flag).lower()}`"
        case [] | {}:
            return "empty"
        case value:
            return f"`{value}`"


def _values(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return ", ".join(f"`{choice}`" for choice in schema["enum"])
    if "x-kubernetes-int-or-string" in schema or schema.get("format") == "duration":
        return _measure(schema)
    if schema["type"] in ("integer", "number"):
        return _number(schema)
    if "enum" in schema.get("items", {}):
        return "any of " + _values(schema["items"])
    word, bound = _WORDS[schema["type"]]
    return f"{word}, at most {schema[bound]}" if bound in schema else word


def _measure(schema: dict[str, Any]) -> str:
    kind = "duration" if schema.get("format") == "duration" else "size"
    bounds = [rule["message"].rpartition("write ")[2] for rule in schema.get(VALIDATIONS, ())]
    return ", ".join((kind, *bounds))


def _number(schema: dict[str, Any]) -> str:
    bounds = [
        f"{words} `{schema[key]}`"
        for key, words in (("minimum", "at least"), ("maximum", "at most"))
        if key in schema
    ]
    return ", ".join(bounds)
