"""How a model carries rules across fields for the API server, which checks them as CEL.

The broker has no CEL of resources: `*_rules` say the same in Python, and a test runs both on one
table. A rule compares fields with each other: a literal such as `duration('7d')` is an error there.
"""

from typing import Any

from pydantic import ConfigDict

VALIDATIONS = "x-kubernetes-validations"


def rule(condition: str, otherwise: str, *, field: str | None = None) -> dict[str, str]:
    """`condition` has to be true, else `otherwise` is said of `field`, a path below the model."""
    path = {} if field is None else {"fieldPath": f".{field}"}
    return {"rule": condition, "message": otherwise} | path


def checked(*rules: dict[str, str]) -> ConfigDict:
    """The `model_config` of a model whose objects keep `rules`."""
    extra: dict[str, Any] = {VALIDATIONS: list(rules)}
    return ConfigDict(json_schema_extra=extra)


def unchanged(name: str) -> str:
    """A condition on the parent: an optional field stays as it was, also when it was left out."""
    return (
        f"has(self.{name}) == has(oldSelf.{name}) && "
        f"(!has(self.{name}) || self.{name} == oldSelf.{name})"
    )
