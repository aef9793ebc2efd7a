"""What one object names: its pool, its topic, its channel, its name at the brokers. Pure."""

from collections.abc import Iterator

from ibrik_api.kubernetes import DEFAULT_POOL
from ibrik_operator.keys import Document, Key


def spec_of(document: Document) -> Document:
    return document.get("spec") or {}


def pool_of_topic(topic: Document) -> Key:
    pool = (spec_of(topic).get("pool") or {}).get("name") or DEFAULT_POOL
    return Key("BrokerPool", topic["metadata"]["namespace"], pool)


def topic_name(topic: Document) -> str:
    """Its name at the broker."""
    return str(spec_of(topic).get("topicName") or topic["metadata"]["name"])


def served_name(topic: Document) -> Key:
    """Its name at the brokers of its pool, which no other Topic may have: no object, but a key."""
    pool = pool_of_topic(topic)
    return Key("ServedName", pool.namespace, f"{pool.name}/{topic_name(topic)}")


def topic_of(subscription: Document) -> Key:
    name = spec_of(subscription)["topicRef"]["name"]
    return Key("Topic", subscription["metadata"]["namespace"], name)


def channel_of(subscription: Document) -> Key | None:
    """The Channel that it delivers to; None for pull, stream and destinations written inline."""
    reference = spec_of(subscription).get("channelRef")
    if not reference:
        return None
    namespace = reference.get("namespace") or subscription["metadata"]["namespace"]
    return Key("Channel", namespace, reference["name"])


def names(document: Document) -> Iterator[Key]:
    """What others look it up by."""
    if document["kind"] == "Topic":
        yield served_name(document)
    if document["kind"] == "Subscription":
        yield topic_of(document)
        channel = channel_of(document)
        if channel is not None:
            yield channel
