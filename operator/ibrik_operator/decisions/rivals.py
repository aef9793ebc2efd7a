"""Two Topics that claim one name at the brokers of a pool: the oldest wins. Pure.

Times of creation are whole seconds. Of those made in the same one that wins which the brokers serve
already, since they let nobody else in; while they serve none, the uid decides.
"""

from collections.abc import Callable

from ibrik_operator.keys import Document, Key
from ibrik_operator.naming import served_name
from ibrik_operator.world import World

Age = tuple[str, bool, str]


def rival(topic: Document, world: World, is_served: Callable[[Document], bool]) -> Key | None:
    """The older Topic of the same pool and topic name; None when this one may have it.

    `is_served` says whether the brokers are known to serve a Topic.
    """

    def age(one: Document) -> Age:
        metadata = one["metadata"]
        is_late = not (is_served(one) or (one.get("status") or {}).get("topicId"))
        return str(metadata.get("creationTimestamp", "")), is_late, str(metadata.get("uid", ""))

    own = age(topic)
    others = (other for other in world.naming(served_name(topic)) if age(other) < own)
    oldest = min(others, key=age, default=None)
    return None if oldest is None else Key.of(oldest)
