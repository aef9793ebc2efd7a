"""Every resource that came over PUT /admin/v1/desired, as it is served now.

The operator compares them with its own. One after the other, with pauses, so that the doors go on
however many there are.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

from ibrik_api.errors import Refusal
from ibrik_api.observed import ObservedResource
from ibrik_broker.metadata.resources import ResourceState
from ibrik_broker.metadata.rows import Origin
from ibrik_broker.metadata.topics import TopicRow, TopicState
from ibrik_broker.registrations.catalogue import Catalogue
from ibrik_broker.registrations.collection import Collection, SpecT, ViewT
from ibrik_broker.registrations.entries import Entry, WishT
from ibrik_broker.topics.registry import Registry
from ibrik_broker.topics.views import observed

AT_A_TIME = 25
"""Resources that are looked at in a row: about 5 ms."""
_SERVED = (TopicState.READY, TopicState.DETACHED)


async def observed_resources(
    registry: Registry, catalogue: Catalogue
) -> AsyncIterator[ObservedResource]:
    """Also detached ones; of a pool those of this broker. What goes meanwhile may be left out."""
    found = _all(registry, catalogue)
    for number, resource in enumerate(found, 1):
        yield resource
        if number % AT_A_TIME == 0:
            await asyncio.sleep(0)


def _all(registry: Registry, catalogue: Catalogue) -> Iterator[ObservedResource]:
    for row in registry.rows():
        if row.origin is Origin.RESOURCE and row.state in _SERVED:
            yield _topic(registry, row)
    yield from _entries(catalogue.channels)
    yield from _entries(catalogue.subscriptions)


def _topic(registry: Registry, row: TopicRow) -> ObservedResource:
    return ObservedResource(
        kind="Topic",
        namespace=row.namespace,
        name=row.resource_name,
        uid=row.resource_uid,
        generation=row.generation,
        is_detached=row.state is TopicState.DETACHED,
        status=observed(row, registry.served(row.name)),
    )


def _entries(collection: Collection[SpecT, WishT, ViewT]) -> Iterator[ObservedResource]:
    for entry in list(collection.entries):
        is_there = collection.entries.by_id(entry.id) is entry
        if is_there and entry.row.origin is Origin.RESOURCE and not entry.is_elsewhere:
            yield _resource(collection, entry)


def _resource(collection: Collection[SpecT, WishT, ViewT], entry: Entry[WishT]) -> ObservedResource:
    row = entry.row
    return ObservedResource(
        kind=collection.kind,
        namespace=row.namespace,
        name=row.name,
        uid=row.resource_uid,
        generation=row.generation,
        is_detached=row.state is ResourceState.DETACHED,
        status=_status(collection, entry),
    )


def _status(collection: Collection[SpecT, WishT, ViewT], entry: Entry[WishT]) -> dict[str, Any]:
    try:
        return collection.observed(entry)
    except Refusal:  # another version wrote the spec
        return {}
