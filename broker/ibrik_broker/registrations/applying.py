"""Carries out a list of desired resources of all kinds: topics first, then what names them.

Each resource has its own outcome; the outcomes come in the order of the request.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from ibrik_api.desired import Outcome
from ibrik_api.errors import Refusal
from ibrik_api.resources.meta import ObjectMeta
from ibrik_broker.metadata.rows import Origin
from ibrik_broker.registrations.channels import Channels
from ibrik_broker.registrations.collection import Collection, SpecT, ViewT
from ibrik_broker.registrations.desired import decide, decide_deletion
from ibrik_broker.registrations.entries import Entry, WishT
from ibrik_broker.registrations.subscriptions import Subscriptions
from ibrik_broker.registrations.turns import Turns
from ibrik_broker.topics.desired import Action
from ibrik_broker.topics.documents import carried_out, check_kind, metadata_of, refused, result_of
from ibrik_broker.topics.owner import Owner
from ibrik_broker.topics.registry import Registry

KINDS = ("Topic", "Channel", "Subscription")
"""In the order in which they are applied."""

Document = Mapping[str, Any]


class Desired:
    def __init__(
        self,
        registry: Registry,
        channels: Channels,
        subscriptions: Subscriptions,
        turns: Turns,
    ) -> None:
        self._registry = registry
        self._channels = channels
        self._subscriptions = subscriptions
        self._turns = turns

    async def apply(self, resources: Sequence[Document]) -> list[Outcome]:
        """Make the listed resources so; what is not listed stays as it is.

        A refusal concerns its item only; `metadata-unavailable` is raised: nothing would work.
        """
        outcomes = {index: outcome async for index, outcome in self.outcomes(resources)}
        return [outcomes[index] for index in range(len(resources))]

    async def outcomes(self, resources: Sequence[Document]) -> AsyncIterator[tuple[int, Outcome]]:
        """The same, one by one with the place in the request, as they are carried out."""
        for index in sorted(range(len(resources)), key=lambda i: _rank(resources[i])):
            yield index, await self._outcome(resources[index])

    async def _outcome(self, document: Document) -> Outcome:
        try:
            check_kind(document, KINDS)
            match document["kind"]:
                case "Topic":
                    (outcome,) = await self._registry.apply([document])
                    return outcome
                case "Channel":
                    return await self._apply(self._channels, document)
                case _:
                    return await self._apply(self._subscriptions, document)
        except Refusal as refusal:
            return refused(document, refusal)

    async def _apply(
        self, collection: Collection[SpecT, WishT, ViewT], document: Document
    ) -> Outcome:
        metadata = metadata_of(document, collection.model)
        try:
            spec = collection.read(document)
        except Refusal:
            if metadata.deletion_timestamp is None:
                raise
            spec = None
        async with self._turns:
            entry = collection.entries.get((metadata.namespace, metadata.name))
            if metadata.deletion_timestamp is None and spec is not None:
                return await _carry_out(collection, metadata, spec, entry)
            return await _delete(collection, metadata, spec, entry)


def _rank(document: Document) -> int:
    kind = document.get("kind")
    return KINDS.index(kind) if kind in KINDS else len(KINDS)


async def _delete(
    collection: Collection[SpecT, WishT, ViewT],
    metadata: ObjectMeta,
    spec: SpecT | None,
    entry: Entry[WishT] | None,
) -> Outcome:
    """A resource whose spec cannot be read is deleted by the policy of its row."""
    row = None if entry is None else entry.row
    is_kept = row is not None and collection.keeps(row, spec)
    action = decide_deletion(metadata, row, is_kept=is_kept)
    observed = None
    if action is Action.DELETE and entry is not None:
        await collection.remove(entry, is_kept=is_kept)
        if is_kept:
            observed = {"subscriptionId": entry.id, "state": entry.row.state.value}
    result = result_of(action, metadata, row)
    return carried_out(collection.kind, metadata, result, observed)


async def _carry_out(
    collection: Collection[SpecT, WishT, ViewT],
    metadata: ObjectMeta,
    spec: SpecT,
    entry: Entry[WishT] | None,
) -> Outcome:
    owner = Owner(
        metadata.namespace, metadata.name, Origin.RESOURCE, metadata.uid, metadata.generation
    )
    row = None if entry is None else entry.row
    is_same = row is not None and collection.stored(row) == spec
    action = decide(collection.kind, metadata, row, is_same=is_same)
    result = result_of(action, metadata, row)
    if entry is None:
        entry = await collection.make(spec, owner)
    elif action is Action.UPDATE:
        await collection.alter(entry, spec, owner)
    elif action is Action.READOPT:
        await collection.readopt(entry, spec, owner)
    elif action is Action.RECORD:
        await collection.record(entry, owner)
    elif entry.is_unfinished:
        await collection.carry_out(entry)
    return carried_out(collection.kind, metadata, result, collection.observed(entry))
