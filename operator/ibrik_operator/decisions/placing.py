"""Which pools serve a Channel, and whether a Subscription may name it. Pure."""

from ibrik_api.kubernetes import DEFAULT_POOL
from ibrik_operator.decisions.references import pool_of, spec_of, subscriptions_of_channel
from ibrik_operator.keys import Document, Key
from ibrik_operator.world import World


def is_allowed(channel: Document, namespace: str) -> bool:
    """Only a Subscription's channelRef crosses namespaces, and only with the channel's consent."""
    is_same = channel["metadata"]["namespace"] == namespace
    return is_same or spec_of(channel).get("allowedNamespaces") == "All"


def pools_of_channel(channel: Document, world: World) -> list[Key]:
    """Of each Subscription that may name it, and `default` of its own namespace if it is there."""
    key = Key.of(channel)
    own = Key("BrokerPool", key.namespace, DEFAULT_POOL)
    pools = set() if world.get(own) is None else {own}
    for subscription in subscriptions_of_channel(key, world):
        pool = pool_of(subscription, world)
        if (
            pool is not None
            and world.get(pool) is not None
            and is_allowed(channel, subscription["metadata"]["namespace"])
        ):
            pools.add(pool)
    return sorted(pools)
