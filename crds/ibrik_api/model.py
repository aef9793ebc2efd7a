"""The base of every pydantic model of the contract: camelCase outside, snake_case inside.

Unknown fields are refused, models are frozen, and the string under a field is its description in
the schema. What arrives from outside goes through `parse`, which accepts documented names only.
"""

from typing import Any, Self, TypedDict

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from ibrik_api.errors import Refusal


class FieldError(TypedDict):
    """One field at fault: a JSON pointer, a code of the table and a sentence."""

    pointer: str
    code: str
    detail: str


class Model(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        serialize_by_alias=True,
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
        validate_default=False,
    )

    @classmethod
    def parse(cls, document: Any) -> Self:
        """Read what came from outside; a Refusal `invalid-resource` names every field at fault."""
        try:
            return cls.model_validate(document, by_alias=True, by_name=False)
        except ValidationError as error:
            errors = field_errors(error)
            sentence = "; ".join(f"{e['pointer'] or '/'}: {e['detail']}" for e in errors[:3])
            more = f" (and {len(errors) - 3} more)" if len(errors) > 3 else ""
            raise Refusal("invalid-resource", sentence + more + ".", errors=errors) from error

    def document(self) -> dict[str, Any]:
        """The JSON form; what is unset stays out of it."""
        return self.model_dump(mode="json", exclude_none=True)


def field_errors(error: ValidationError) -> list[FieldError]:
    """Pydantic's findings as ours; values are left out, they may be secret or long."""
    return [
        FieldError(
            pointer=json_pointer(*item["loc"]),
            code="invalid-resource",
            detail=_sentence(item["type"], item["msg"]),
        )
        for item in error.errors(include_url=False, include_input=False, include_context=False)
    ]


def json_pointer(*steps: str | int) -> str:
    """RFC 6901."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)


def _sentence(kind: str, message: str) -> str:
    match kind:
        case "extra_forbidden":
            return "there is no such field; check the spelling"
        case "missing":
            return "this field is required"
        case _:
            return message.removeprefix("Value error, ")
