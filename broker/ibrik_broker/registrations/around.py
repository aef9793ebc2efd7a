"""What there is for a subscription to name: topics from the registry, channels from the catalogue.

Over HTTP a topic is named as at the broker. A resource names the Topic resource beside it: names of
other namespaces are not reached by chance.
"""

from collections.abc import Callable

from ibrik_broker.metadata.resources import ResourceRow
from ibrik_broker.metadata.rows import Origin
from ibrik_broker.metadata.topics import TopicRow, TopicState
from ibrik_broker.registrations.resolving import FoundChannel, FoundTopic
from ibrik_broker.topics.registry import Registry

_KNOWN = (TopicState.READY, TopicState.DETACHED)


class Around:
    def __init__(
        self, registry: Registry, channel: Callable[[str, str], FoundChannel | None]
    ) -> None:
        self._registry = registry
        self.channel = channel

    def topic(self, row: ResourceRow, reference: str) -> FoundTopic | None:
        found = self._topic_row(row.namespace, row.origin, reference)
        if found is None or found.state not in _KNOWN:
            return None
        topic = self._registry.served(found.name)
        return FoundTopic(found.name, None if topic is None else topic.spec)

    def is_elsewhere(self, row: ResourceRow, reference: str) -> bool:
        """Whether another broker owns the topic, and serves what reads it."""
        found = self._topic_row(row.namespace, row.origin, reference)
        return found is not None and self._registry.by_name(found.name) is None

    def owner(self, namespace: str, origin: Origin, reference: str) -> str | None:
        """The broker of the topic that something of this namespace and origin names."""
        found = self._topic_row(namespace, origin, reference)
        return None if found is None else found.owner

    def refuse_unknown_topic(self, name: str) -> None:
        """Raises Refusal `unknown-topic`, `topic-detached` … when it is not served."""
        self._registry.engine.topic(name)

    def _topic_row(self, namespace: str, origin: Origin, reference: str) -> TopicRow | None:
        named = self._registry.find(reference)
        if named is not None:
            if origin is Origin.API:
                return named
            if (named.namespace, named.resource_name) == (namespace, reference):
                return named
        owned = self._registry.find_identity(namespace, reference)
        if owned is None and named is not None and named.namespace == namespace:
            return named
        return owned
