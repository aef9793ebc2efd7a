"""The Channel resource: a named place that messages are delivered to."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from ibrik_api.model import Model
from ibrik_api.resources.destination import Destination
from ibrik_api.resources.meta import Conditions, ObjectMeta, Timestamp

Count = Annotated[int, Field(ge=0, le=2**63 - 1, strict=True)]
Text = Annotated[str, StringConstraints(max_length=253)]


class AllowedNamespaces(StrEnum):
    SAME = "Same"
    ALL = "All"


class ChannelSpec(Destination):
    """Where messages go, and who may name this channel. A key left out has its default."""

    allowed_namespaces: AllowedNamespaces = AllowedNamespaces.SAME
    """Whose subscriptions may name this channel: of the same namespace, or of all."""


class Circuit(StrEnum):
    CLOSED = "closed"
    """Messages flow."""
    OPEN = "open"
    """Too many failures: nothing is sent for a while. This costs no attempts."""
    HALF_OPEN = "half-open"
    """One message is on its way to find out whether it works again."""
    PAUSED = "paused"
    """Someone paused the channel."""
    GONE = "gone"
    """The endpoint answered 410: nothing is sent until someone resumes the channel."""


class ChannelStatus(Model):
    """What the broker observes."""

    channel_id: Text | None = None
    """Id of this incarnation of the channel."""
    origin: Text | None = None
    """api or resource."""
    managed_by: Text | None = None
    """The resource that the channel comes from; it is read-only over HTTP then."""
    observed_generation: Count | None = None
    """Generation that the broker serves."""
    kind: Text | None = None
    """http, service, tcp or topic."""
    destination_host: Text | None = None
    """Host that messages go to; of a topic its name."""
    destination_port: Count | None = None
    """Port that messages go to; none for a topic."""
    circuit: Circuit | None = None
    """Whether messages flow."""
    paused_until: Timestamp | None = None
    """Until when a Retry-After or the circuit holds messages back."""
    subscriptions: Count | None = None
    """Subscriptions that name this channel."""
    conditions: Conditions = Field(default=[])
    """The state, aspect by aspect."""


class Channel(Model):
    """A named destination of messages."""

    api_version: Literal["ibrik.dev/v1beta1"] = "ibrik.dev/v1beta1"
    """Version of this schema."""
    kind: Literal["Channel"] = "Channel"
    """Always Channel."""
    metadata: ObjectMeta
    """Identity."""
    spec: ChannelSpec
    """The wish."""
    status: ChannelStatus | None = None
    """The observation; ignored in a request."""
