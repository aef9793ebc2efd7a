"""Bounds of a field that is text outside and a number inside: sizes and durations.

One pair of bounds, said twice: in Python for the broker, as a CEL rule for the API server. Each is
refused in the spelling that people write.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema


@dataclass(frozen=True, slots=True)
class Limits:
    """An annotation; `rule` is the same in CEL, `show` writes a number as people do.

    Without `most` the bound is that of all such values, which their parser keeps.
    """

    least: int
    most: int | None
    show: Callable[[int], str]
    rule: str

    @property
    def wish(self) -> str:
        least = self.show(self.least)
        if self.most is None:
            return f"write at least {least}"
        return f"write {least} to {self.show(self.most)}"

    def check(self, value: int) -> int:
        if self.least <= value and (self.most is None or value <= self.most):
            return value
        raise ValueError(f"{self.show(value)} is out of bounds: {self.wish}")

    def __get_pydantic_core_schema__(
        self, source: type[Any], handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        rule = {"rule": self.rule, "message": f"it is out of bounds: {self.wish}"}
        return handler(schema) | {"x-kubernetes-validations": [rule]}
