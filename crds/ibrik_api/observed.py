"""Body of GET /admin/v1/observed: what one broker is, and every resource that it serves.

The operator compares it with the resources that there are; one call for each broker, whatever the
number of resources. Fields that are not known are passed over: while a pool changes its version,
its brokers and the operator are not of one.
"""

import hashlib
from typing import Annotated, Any

from pydantic import ConfigDict, Field, StringConstraints

from ibrik_api.model import Model

Text = Annotated[str, StringConstraints(max_length=253)]
Count = Annotated[int, Field(ge=0, le=2**63 - 1)]
FINGERPRINT_CHARACTERS = 12


def content_fingerprint(content: bytes) -> str:
    """The beginning of the SHA-256 of a secret's file as it is, to see a change by."""
    return hashlib.sha256(content).hexdigest()[:FINGERPRINT_CHARACTERS]


class Told(Model):
    """What a broker of another version may have said."""

    model_config = ConfigDict(extra="ignore")


class ObservedBroker(Told):
    id: Text
    """Id of the volume: who this broker is, wherever it runs."""
    name: Text
    """Name that the broker was given; in a cluster that of its pod."""
    cluster_id: Text
    """Id that all brokers of one pool share."""
    version: Text
    """Version of the program."""
    metadata_store: Text
    """sqlite or postgres."""
    is_metadata_ready: bool
    """Whether the metadata database answers."""
    is_storage_low: bool
    """Whether publishing is refused since the volume is nearly full."""
    free_bytes: Count
    """Bytes that are free on the volume."""
    capacity_bytes: Count
    """Size of the volume's file system."""
    min_free_bytes: Count
    """Free bytes below which publishing is refused."""
    topics: list[Text] = Field(default=[])
    """Names of the topics that lie on this broker's volume, also detached ones and those made over
    HTTP."""
    credentials: dict[str, Text] = Field(default={})
    """File of each secret in the folder of credentials, with its `content_fingerprint`."""


class ObservedResource(Told):
    """A resource as this broker serves it; only those that came over PUT /admin/v1/desired."""

    kind: Text
    """Topic, Subscription or Channel."""
    namespace: Text
    """Namespace of the resource."""
    name: Text
    """Name of the resource."""
    uid: Text | None = None
    """The uid as it was applied."""
    generation: Count = 0
    """The generation as it was applied, and confirmed unless conditions say otherwise."""
    is_detached: bool = False
    """Deleted under Retain: kept, and not served."""
    status: dict[str, Any] = Field(default={})
    """The status of its kind; empty when another version wrote a spec that this one cannot read."""


class Observed(Told):
    broker: ObservedBroker
    """This broker."""
    resources: list[ObservedResource]
    """What it serves."""
