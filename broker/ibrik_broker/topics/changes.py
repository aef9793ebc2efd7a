"""What the registry tells those who depend on topics, such as the catalogue of subscriptions.

A listener is called while the registry is busy: it takes a note and looks later.
"""

from collections.abc import Callable
from typing import NamedTuple

from ibrik_broker.metadata.topics import TopicRow


class TopicChange(NamedTuple):
    """A topic appeared, changed, or went."""

    name: str
    resource_name: str


Listener = Callable[[TopicChange], None]


class Listeners(list[Listener]):
    """Who wants to know."""

    def tell(self, *rows: TopicRow) -> None:
        """One change for each name that the topic has, or had."""
        for change in dict.fromkeys(TopicChange(row.name, row.resource_name) for row in rows):
            for listener in self:
                listener(change)
