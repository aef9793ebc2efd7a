"""Which subscriptions name a topic or a channel: so that news of one concerns only those."""

from collections import defaultdict
from functools import lru_cache
from typing import Generic, NamedTuple, TypeVar

from ibrik_api.resources.subscription import SubscriptionSpec
from ibrik_broker.metadata.resources import ResourceRow
from ibrik_broker.registrations.resolving import channel_key

Key = tuple[str, str]
"""Namespace and name of a channel."""
T = TypeVar("T")


class Index(Generic[T]):
    """Ids of subscriptions by what they name; a name without any takes no room."""

    def __init__(self) -> None:
        # Dicts rather than sets, which take four times the room.
        self._ids: defaultdict[T, dict[str, None]] = defaultdict(dict)

    def of(self, name: T) -> list[str]:
        return sorted(self._ids.get(name, ()))

    def count(self, name: T) -> int:
        return len(self._ids.get(name, ()))

    def add(self, name: T, subscription_id: str) -> None:
        self._ids[name][subscription_id] = None

    def remove(self, name: T, subscription_id: str) -> None:
        ids = self._ids.get(name)
        if ids is not None:
            ids.pop(subscription_id, None)
            if not ids:
                del self._ids[name]


class Named(NamedTuple):
    """What one subscription names."""

    topics: tuple[str, ...]
    channel: Key | None


class Uses:
    def __init__(self) -> None:
        self.topics: Index[str] = Index()
        """By the name in topicRef or deadLetter.topicRef."""
        self.channels: Index[Key] = Index()
        self._named: dict[str, Named] = {}

    def put(self, row: ResourceRow, spec: SubscriptionSpec) -> None:
        """The subscription names these from now on, and no others."""
        self.remove(row.id)
        dead_letter, channel = spec.dead_letter.topic_ref, spec.channel_ref
        named = _named(
            spec.topic_ref.name,
            None if dead_letter is None else dead_letter.name,
            None if channel is None else channel_key(row, channel),
        )
        self._named[row.id] = named
        for name in named.topics:
            self.topics.add(name, row.id)
        if named.channel is not None:
            self.channels.add(named.channel, row.id)

    def remove(self, subscription_id: str) -> None:
        named = self._named.pop(subscription_id, None)
        if named is None:
            return
        for name in named.topics:
            self.topics.remove(name, subscription_id)
        if named.channel is not None:
            self.channels.remove(named.channel, subscription_id)


@lru_cache(maxsize=1_024)
def _named(topic: str, dead_letter_topic: str | None, channel: Key | None) -> Named:
    """The same object for all subscriptions that name the same."""
    return Named((topic,) if dead_letter_topic is None else (topic, dead_letter_topic), channel)
