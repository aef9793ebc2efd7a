"""What an API server does with a custom resource, as far as it can be had without one.

In its order: fill in defaults, check the schema (jsonschema), check the rules (`cel-expr-python`).
It differs from the real one in this: rules are not typed against the schema, cost nothing, and see
a duration as whole milliseconds, since the library takes no durations from outside; both compare
alike. `quantity` and its methods are Kubernetes' own functions and are made here from our own
parser.
"""

import copy
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from cel_expr_python import cel
from jsonschema import Draft4Validator

from ibrik_api.definitions import KINDS, resource_schema
from ibrik_api.durations import parse_duration
from ibrik_api.quantities import parse_quantity

Schema = dict[str, Any]
NOTHING = object()
_LITERAL = re.compile(r"duration\('([0-9]+)ms'\)")


@cache
def schema_of(kind: str) -> Schema:
    return next(resource_schema(known) for known in KINDS if known.name == kind)


def admit(document: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    """What an API server says against `document`, created or put in the place of `old`."""
    schema = schema_of(document["kind"])
    stored = defaulted(schema, document)
    before = NOTHING if old is None else defaulted(schema, old)
    unfit = [
        f"{error.json_path}: {error.message}"
        for error in Draft4Validator(schema).iter_errors(stored)
    ]
    return unfit or list(broken_rules(schema, stored, before))


def defaulted(schema: Schema, value: Any) -> Any:
    """`value` with the defaults of `schema`, also below the defaults themselves."""
    if isinstance(value, list):
        return [defaulted(schema.get("items", {}), item) for item in value]
    if not isinstance(value, dict):
        return value
    filled = dict(value)
    for name, child in schema.get("properties", {}).items():
        if name not in filled and "default" in child:
            filled[name] = copy.deepcopy(child["default"])
        if name in filled:
            filled[name] = defaulted(child, filled[name])
    return filled


def pruned(schema: Schema, value: Any) -> Any:
    """`value` without the fields that `schema` does not know."""
    if isinstance(value, list):
        return [pruned(schema.get("items", {}), item) for item in value]
    if not isinstance(value, dict) or "x-kubernetes-preserve-unknown-fields" in schema:
        return value
    others = schema.get("additionalProperties")
    known = schema.get("properties", {})
    return {
        name: pruned(known.get(name, others), member)
        for name, member in value.items()
        if name in known or others is not None
    }


def broken_rules(schema: Schema, value: Any, old: Any, path: str = "$") -> Iterator[str]:
    """Messages of the rules that do not hold, here and below; of changes only beside an old one."""
    for rule in schema.get("x-kubernetes-validations", ()):
        is_transition = "oldSelf" in rule["rule"]
        if is_transition and old is NOTHING:
            continue
        facts = {"self": _seen(schema, value)}
        if is_transition:
            facts["oldSelf"] = _seen(schema, old)
        if not holds(rule["rule"], facts):
            yield f"{path}{rule.get('fieldPath', '')}: {rule['message']}"
    if isinstance(value, dict):
        for name, child in schema.get("properties", {}).items():
            if name in value:
                before = old.get(name, NOTHING) if isinstance(old, dict) else NOTHING
                yield from broken_rules(child, value[name], before, f"{path}.{name}")
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from broken_rules(schema.get("items", {}), item, NOTHING, f"{path}[{index}]")


def holds(rule: str, facts: dict[str, Any]) -> bool:
    """Whether `rule` is true; one that cannot be evaluated is a fault of the rule, and raises."""
    result = _compiled(rule).eval(data=facts)
    if result.type() != cel.Type.BOOL:
        raise AssertionError(f"{rule}: {result.plain_value()}")
    return bool(result.plain_value())


@cache
def _compiled(rule: str) -> Any:
    return _environment().compile(_LITERAL.sub(r"\1", rule))


@cache
def _environment() -> Any:
    dyn, text, number = cel.Type.DYN, cel.Type.STRING, cel.Type.INT

    def function(name: str, parameters: list[Any], result: Any, call: Any, is_member: bool) -> Any:
        overload = cel.Overload(f"{name}_k8s", result, parameters, is_member, call)
        return cel.FunctionDecl(name, [overload])

    return cel.NewEnv(
        variables={"self": dyn, "oldSelf": dyn},
        functions=[
            function("quantity", [text], number, parse_quantity, False),
            function("compareTo", [number, number], number, lambda a, b: (a > b) - (a < b), True),
            function("isLessThan", [number, number], cel.Type.BOOL, lambda a, b: a < b, True),
        ],
    )


def _seen(schema: Schema, value: Any) -> Any:
    """`value` as rules see it."""
    if isinstance(value, dict):
        known = schema.get("properties", {})
        return {name: _seen(known.get(name, {}), member) for name, member in value.items()}
    if isinstance(value, list):
        return [_seen(schema.get("items", {}), item) for item in value]
    return parse_duration(value) if schema.get("format") == "duration" else value
