"""Who serves what in a pool: the owner of a topic, and of all that hangs on one.

Looks only at what this broker knows; a name that it does not know is looked for once more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ibrik_api.errors import Refusal
from ibrik_broker.metadata.replays import ReplayRows
from ibrik_broker.metadata.rows import Origin
from ibrik_broker.metadata.topics import TopicRow
from ibrik_broker.pool.following import Following
from ibrik_broker.pool.placement import candidates
from ibrik_broker.pool.pool import Pool
from ibrik_broker.registrations.subscriptions import Subscriptions
from ibrik_broker.topics.registry import Registry

HERE: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Places:
    pool: Pool
    registry: Registry
    subscriptions: Subscriptions
    replays: ReplayRows
    following: Following

    # --- for a request ----------------------------------------------------------------------------

    async def of_topic(self, name: str) -> Sequence[str]:
        """The id of its owner; HERE when there is no such topic."""
        row = self.registry.find(name)
        if row is None:
            await self.following.look_for_unknown()
            row = self.registry.find(name)
        return HERE if row is None else (owner_of(row),)

    async def of_topic_to_be(self, name: str) -> Sequence[str]:
        """Its owner, or the brokers that may get it, best first."""
        return await self.of_topic(name) or self.for_new_topic({})

    async def of_subscription(self, name: str, namespace: str | None) -> Sequence[str]:
        """The owner of its topic; HERE when there is no such subscription, or no such topic."""
        key = (namespace or self.subscriptions.namespace, name)
        entry = self.subscriptions.entries.get(key)
        if entry is None:
            await self.following.look_for_unknown()
            entry = self.subscriptions.entries.get(key)
        owner = None if entry is None else self.subscriptions.owner(entry.row)
        return HERE if owner is None else (owner,)

    async def of_replay(self, replay_id: str) -> Sequence[str]:
        row = await self.replays.get(replay_id)
        return HERE if row is None else await self.of_topic(row.topic)

    # --- for a resource ---------------------------------------------------------------------------

    def of_topic_resource(
        self, document: Mapping[str, Any], planned: Mapping[str, int]
    ) -> tuple[str | None, bool]:
        """The owner, or the broker that gets it, and whether it is new; None: nothing to place.

        `planned` are topics that are on their way to brokers.
        """
        name, namespace = text_at(document, "metadata", "name"), _namespace(document)
        topic_name = text_at(document, "spec", "topicName") or name
        if name is None or topic_name is None:
            return None, False
        row = self.registry.find_identity(namespace, name) or self.registry.find(topic_name)
        if row is not None:
            return row.owner, False
        if text_at(document, "metadata", "deletionTimestamp") is not None:
            return None, False
        best = self.for_new_topic(planned)
        return (best[0] if best else None), True

    def of_subscription_resource(self, document: Mapping[str, Any]) -> str | None:
        """The owner of its topic, as it is or as it is wished."""
        name, namespace = text_at(document, "metadata", "name"), _namespace(document)
        if name is not None:
            entry = self.subscriptions.entries.get((namespace, name))
            owner = None if entry is None else self.subscriptions.owner(entry.row)
            if owner is not None:
                return owner
        reference = text_at(document, "spec", "topicRef", "name")
        if reference is None:
            return None
        return self.subscriptions.owner_of(namespace, Origin.RESOURCE, reference)

    def for_new_topic(self, planned: Mapping[str, int]) -> Sequence[str]:
        """The brokers that may get it, best first."""
        counts = self.registry.counts()
        counts.update(planned)
        found = candidates(self.pool.brokers(), counts, self.pool.clock_ms())
        return [broker.id for broker in found]


def owner_of(row: TopicRow) -> str:
    """Raises Refusal `owner-unavailable` for what is older than the pool and in no known folder."""
    if row.owner is None:
        raise Refusal(
            "owner-unavailable",
            f"The topic '{row.name}' is older than this pool, and no broker has its folder. Start "
            "the one that has it.",
        )
    return row.owner


def text_at(document: Any, *path: str) -> str | None:
    """A text somewhere in a document that may be anything."""
    for key in path:
        if not isinstance(document, Mapping):
            return None
        document = document.get(key)
    return document if isinstance(document, str) else None


def _namespace(document: Mapping[str, Any]) -> str:
    return text_at(document, "metadata", "namespace") or "default"
