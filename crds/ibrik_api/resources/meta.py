"""What all resources share: identity, conditions. Shapes are those of Kubernetes."""

from enum import StrEnum
from typing import Annotated

from pydantic import ConfigDict, Field, StringConstraints

from ibrik_api.model import Model
from ibrik_api.names import Name, Namespace

Timestamp = Annotated[str, StringConstraints(max_length=40)]
"""RFC 3339 in UTC."""


class ObjectMeta(Model):
    """Identity of a resource.

    Labels, annotations and what else Kubernetes keeps here belong to Kubernetes and are ignored.
    """

    model_config = ConfigDict(extra="ignore")

    name: Name
    """Name of the resource, unique in its namespace and kind."""
    namespace: Namespace = "default"
    """Namespace of the resource."""
    uid: Annotated[str, StringConstraints(max_length=64)] | None = None
    """Id of this incarnation of the resource, given by Kubernetes."""
    generation: int | None = Field(default=None, ge=0, le=2**63 - 1, strict=True)
    """Rises by one with each change of the spec; given by Kubernetes."""
    resource_version: Annotated[str, StringConstraints(max_length=64)] | None = None
    """Changes with each change of the object; over HTTP it is the ETag."""
    creation_timestamp: Timestamp | None = None
    """When the resource was made."""
    deletion_timestamp: Timestamp | None = None
    """Set while the resource is being deleted: its deletionPolicy is carried out."""


class ConditionStatus(StrEnum):
    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Condition(Model):
    """One aspect of the state, in Kubernetes' standard shape. Positive types only."""

    type: Annotated[str, StringConstraints(min_length=1, max_length=64)]
    """Name of the aspect, such as Ready."""
    status: ConditionStatus
    """Whether it is so."""
    reason: Annotated[str, StringConstraints(min_length=1, max_length=128)]
    """One word from a closed list that says why."""
    message: Annotated[str, StringConstraints(max_length=2048)] = ""
    """A sentence that says the next human step."""
    observed_generation: int = Field(default=0, ge=0, le=2**63 - 1)
    """The generation that this condition speaks of."""
    last_transition_time: Timestamp
    """When the status last flipped."""


Conditions = Annotated[
    list[Condition],
    Field(
        max_length=16,
        json_schema_extra={
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
        },
    ),
]
"""One of each type; a writer changes its own and leaves the others."""
