"""Whom a change concerns: the keys to reconcile after an event. Pure.

A status that we wrote ourselves concerns nobody but those who wait for a flip of Ready, so that
writing a status never leads to another reconcile of the same object.
"""

from collections.abc import Iterator

from ibrik_api.kubernetes import credentials_secret_name
from ibrik_operator.decisions.placing import pools_of_channel
from ibrik_operator.decisions.references import pool_of, pool_of_child, secret_keys_of
from ibrik_operator.documents import is_ready
from ibrik_operator.keys import Document, Key
from ibrik_operator.naming import channel_of, pool_of_topic, served_name, spec_of, topic_of
from ibrik_operator.world import World

RESOURCES = ("BrokerPool", "Topic", "Subscription", "Channel")
OBSERVATION, CREDENTIALS, ARCHIVE = "Observation", "Credentials", "Archive"
"""Keys of a pool's own tasks: look at what its brokers serve; copy what its channels need; archive
what its topics wish."""


def dependents(before: Document | None, after: Document | None, world: World) -> list[Key]:
    """Each key once; `before` and `after` are None for what was not there and what is gone."""
    document = after or before
    assert document is not None
    key = Key.of(document)
    if key.kind not in RESOURCES:
        return list(dict.fromkeys(_of_child(before, after, document, world)))
    is_new = has_changed(before, after)
    found = [key] if is_new else []
    if after is None and key.kind != "BrokerPool":
        # What is gone is looked for at the brokers, and detached when it stays gone.
        found += [Key(OBSERVATION, one.namespace, one.name) for one in pools_of(document, world)]
    if is_new or is_ready(before) != is_ready(after):
        found += {
            "BrokerPool": _of_pool,
            "Topic": _of_topic,
            "Subscription": _of_subscription,
            "Channel": _of_channel,
        }[key.kind](document, world)
    return list(dict.fromkeys(found))


def has_changed(before: Document | None, after: Document | None) -> bool:
    """Whether more than the status differs."""
    if before is None or after is None:
        return True
    return _identity(before) != _identity(after)


def _identity(document: Document) -> tuple[object, ...]:
    metadata = document["metadata"]
    return (
        metadata.get("uid"),
        metadata.get("generation"),
        metadata.get("deletionTimestamp"),
        metadata.get("annotations"),
        metadata.get("labels"),
        metadata.get("finalizers"),
    )


def pools_of(document: Document, world: World) -> list[Key]:
    """The pools that serve a Topic, a Subscription or a Channel."""
    if document["kind"] == "Channel":
        return pools_of_channel(document, world)
    pool = pool_of(document, world)
    return [] if pool is None else [pool]


def _of_pool(pool: Document, world: World) -> Iterator[Key]:
    key = Key.of(pool)
    yield Key(OBSERVATION, key.namespace, key.name)
    yield Key(ARCHIVE, key.namespace, key.name)
    for topic in world.all("Topic", key.namespace):
        if pool_of_topic(topic) == key:
            yield Key.of(topic)
    for subscription in world.all("Subscription", key.namespace):
        if pool_of(subscription, world) == key:
            yield Key.of(subscription)
            channel = channel_of(subscription)
            if channel is not None:
                yield channel
    yield from (Key.of(channel) for channel in world.all("Channel", key.namespace))


def _of_topic(topic: Document, world: World) -> Iterator[Key]:
    key = Key.of(topic)
    pool = pool_of_topic(topic)
    yield pool
    if spec_of(topic).get("archive"):
        yield Key(ARCHIVE, pool.namespace, pool.name)
    yield from (Key.of(rival) for rival in world.naming(served_name(topic)))
    for subscription in world.naming(key):
        yield Key.of(subscription)
        channel = channel_of(subscription)
        if channel is not None:
            yield channel


def _of_subscription(subscription: Document, world: World) -> Iterator[Key]:
    yield topic_of(subscription)  # It counts them.
    channel = channel_of(subscription)
    if channel is not None:
        yield channel


def _of_channel(channel: Document, world: World) -> Iterator[Key]:
    for subscription in world.naming(Key.of(channel)):
        yield Key.of(subscription)


def _of_child(
    before: Document | None, after: Document | None, document: Document, world: World
) -> Iterator[Key]:
    pool = pool_of_child(document)
    if pool is not None:
        yield pool
    if document["kind"] == "Secret":
        key = Key.of(document)
        if pool is not None and key.name == credentials_secret_name(pool.name):
            yield Key(CREDENTIALS, pool.namespace, pool.name)
        yield from _users_of_secret(key, world)
        for one in world.all("BrokerPool", key.namespace):
            postgres = (one.get("spec") or {}).get("metadata", {}).get("postgres") or {}
            if (postgres.get("secretRef") or {}).get("name") == key.name:
                yield Key.of(one)


def _users_of_secret(secret: Key, world: World) -> Iterator[Key]:
    for kind in ("Channel", "Subscription"):
        for document in world.all(kind, secret.namespace):
            if secret.name in {name for name, _key in secret_keys_of(document)}:
                for pool in pools_of(document, world):
                    yield Key(CREDENTIALS, pool.namespace, pool.name)
