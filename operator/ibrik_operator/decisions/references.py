"""Who names whom among the resources. Pure."""

from collections.abc import Iterator

from ibrik_api.kubernetes import POOL_LABEL
from ibrik_operator.keys import Document, Key
from ibrik_operator.naming import pool_of_topic, spec_of, topic_of
from ibrik_operator.world import World


def pool_of(document: Document, world: World) -> Key | None:
    """The pool that serves a Topic or a Subscription; None while the topic is not there."""
    if document["kind"] == "Topic":
        return pool_of_topic(document)
    topic = world.get(topic_of(document))
    return None if topic is None else pool_of_topic(topic)


def pool_of_child(document: Document) -> Key | None:
    """The pool that a StatefulSet, pod, claim or other object of ours belongs to."""
    metadata = document["metadata"]
    pool = (metadata.get("labels") or {}).get(POOL_LABEL)
    return None if not pool else Key("BrokerPool", metadata.get("namespace", ""), pool)


def secret_keys_of(document: Document) -> set[tuple[str, str]]:
    """Names and keys of the Secrets that a Channel, or a Subscription's own destination, uses."""
    spec = spec_of(document)
    return set(_secrets_in(spec if document["kind"] == "Channel" else spec.get("push") or {}))


def _secrets_in(value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, list):
        for one in value:
            yield from _secrets_in(one)
    if not isinstance(value, dict):
        return
    for name, one in value.items():
        if name in {"secretRef", "caSecretRef"} and one.get("name") and one.get("key"):
            yield one["name"], one["key"]
        else:
            yield from _secrets_in(one)
