"""Which pools serve which resources, and whether a Subscription may name a Channel. Pure."""

from collections.abc import Iterator

from ibrik_api.kubernetes import DEFAULT_POOL
from ibrik_operator.decisions.references import pool_of
from ibrik_operator.keys import Document, Key
from ibrik_operator.naming import channel_of, pool_of_topic, spec_of
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
    for subscription in world.naming(key):
        pool = pool_of(subscription, world)
        if (
            pool is not None
            and world.get(pool) is not None
            and is_allowed(channel, subscription["metadata"]["namespace"])
        ):
            pools.add(pool)
    return sorted(pools)


def resources_of_pool(pool: Key, world: World) -> Iterator[Document]:
    """All that a pool serves, in one walk over what there is: topics, channels, subscriptions."""
    subscriptions = [
        one for one in world.all("Subscription", pool.namespace) if pool_of(one, world) == pool
    ]
    named = {key for one in subscriptions if (key := channel_of(one)) is not None}
    if pool.name == DEFAULT_POOL:
        named.update(Key.of(one) for one in world.all("Channel", pool.namespace))
    for topic in world.all("Topic", pool.namespace):
        if pool_of_topic(topic) == pool:
            yield topic
    for key in sorted(named):
        channel = world.get(key)
        if channel is not None and is_allowed(channel, pool.namespace):
            yield channel
    yield from subscriptions
