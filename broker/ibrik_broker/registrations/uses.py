"""Which subscriptions name a topic or a channel: so that news of one concerns only those."""

from collections import defaultdict
from typing import Generic, TypeVar

from ibrik_api.resources.subscription import SubscriptionSpec
from ibrik_broker.metadata.resources import ResourceRow
from ibrik_broker.registrations.resolving import channel_key

Key = tuple[str, str]
"""Namespace and name of a channel."""
T = TypeVar("T")


class Index(Generic[T]):
    """Ids of subscriptions by what they name; a name without any takes no room."""

    def __init__(self) -> None:
        self._ids: defaultdict[T, set[str]] = defaultdict(set)

    def of(self, name: T) -> list[str]:
        return sorted(self._ids.get(name, ()))

    def count(self, name: T) -> int:
        return len(self._ids.get(name, ()))

    def add(self, name: T, subscription_id: str) -> None:
        self._ids[name].add(subscription_id)

    def remove(self, name: T, subscription_id: str) -> None:
        ids = self._ids.get(name)
        if ids is not None:
            ids.discard(subscription_id)
            if not ids:
                del self._ids[name]


class Uses:
    def __init__(self) -> None:
        self.topics: Index[str] = Index()
        """By the name in topicRef or deadLetter.topicRef."""
        self.channels: Index[Key] = Index()
        self._named: dict[str, tuple[list[str], Key | None]] = {}

    def put(self, row: ResourceRow, spec: SubscriptionSpec) -> None:
        """The subscription names these from now on, and no others."""
        self.remove(row.id)
        dead_letter, channel = spec.dead_letter.topic_ref, spec.channel_ref
        topics = [spec.topic_ref.name]
        if dead_letter is not None:
            topics.append(dead_letter.name)
        key = None if channel is None else channel_key(row, channel)
        self._named[row.id] = topics, key
        for name in topics:
            self.topics.add(name, row.id)
        if key is not None:
            self.channels.add(key, row.id)

    def remove(self, subscription_id: str) -> None:
        topics, key = self._named.pop(subscription_id, ([], None))
        for name in topics:
            self.topics.remove(name, subscription_id)
        if key is not None:
            self.channels.remove(key, subscription_id)
