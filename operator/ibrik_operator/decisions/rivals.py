"""Two Topics that claim one name at the brokers of a pool: the oldest wins. Pure."""

from ibrik_operator.decisions.references import pool_of_topic, topic_name
from ibrik_operator.keys import Document, Key
from ibrik_operator.world import World


def rival(topic: Document, world: World) -> Key | None:
    """The older Topic of the same pool and topic name; None when this one may have it."""
    own = _age(topic)
    others = (
        other
        for other in world.all("Topic", topic["metadata"]["namespace"])
        if topic_name(other) == topic_name(topic)
        and pool_of_topic(other) == pool_of_topic(topic)
        and _age(other) < own
    )
    oldest = min(others, key=_age, default=None)
    return None if oldest is None else Key.of(oldest)


def _age(topic: Document) -> tuple[str, str]:
    metadata = topic["metadata"]
    return str(metadata.get("creationTimestamp", "")), metadata["name"]
