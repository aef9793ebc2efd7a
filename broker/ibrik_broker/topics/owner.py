"""Who made a topic: the identity of its resource, or of the topic itself when it came over HTTP."""

from typing import NamedTuple

from ibrik_broker.metadata.rows import Origin


class Owner(NamedTuple):
    namespace: str
    resource_name: str
    origin: Origin = Origin.API
    uid: str | None = None
    generation: int | None = None
    """As the resource says it; None lets the broker count."""
