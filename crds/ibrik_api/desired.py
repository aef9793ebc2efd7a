"""Bodies of PUT /admin/v1/desired, which the operator and `ibrik apply` call.

The items are plain documents here: each is parsed on its own, so that one broken resource is
refused by name and the others are applied.
"""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field, StringConstraints

from ibrik_api.model import Model

MAX_RESOURCES = 1_000
Text = Annotated[str, StringConstraints(max_length=253)]


class ApplyResult(StrEnum):
    APPLIED = "applied"
    ADOPTED = "adopted"
    UNCHANGED = "unchanged"
    DELETED = "deleted"
    REFUSED = "refused"
    CONFLICT = "conflict"


CARRIED_OUT = frozenset({ApplyResult.APPLIED, ApplyResult.ADOPTED, ApplyResult.UNCHANGED})
"""What was wished is so now."""


class DesiredRequest(Model):
    resources: list[dict[str, Any]] = Field(max_length=MAX_RESOURCES)
    """Resources as in YAML: apiVersion, kind, metadata, spec. What is absent stays untouched; a
    metadata.deletionTimestamp deletes by deletionPolicy."""


class Outcome(Model):
    """What became of one resource."""

    kind: Text
    """Kind as it was sent."""
    namespace: Text
    """Namespace of the resource."""
    name: Text
    """Name of the resource."""
    uid: Text | None = None
    """The uid as it was sent."""
    generation: int | None = None
    """The generation as it was sent."""
    result: ApplyResult
    """applied, adopted (it was detached and is served again, with what it held), unchanged,
    deleted, refused, or conflict with another owner of the name."""
    code: Text | None = None
    """Code of the table of errors; refused and conflict only."""
    detail: str | None = None
    """Why, and what to do next; refused and conflict only."""
    errors: list[dict[str, Any]] | None = None
    """Every field at fault."""
    observed: dict[str, Any] | None = None
    """The status after it: topic id, generation, counts."""


class DesiredResponse(Model):
    results: list[Outcome]
    """One outcome per resource, in the order of the request."""
