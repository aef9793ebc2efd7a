"""Channels and subscriptions alike: list, create, read, replace, pause, resume.

Bodies are resources, the ETag is the revision. What is special about each kind is in `channels.py`
and `subscriptions.py`.
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from aiohttp import web

from ibrik_api.errors import Refusal
from ibrik_api.names import check_name
from ibrik_api.resources.channel import Channel
from ibrik_api.resources.destination import Destination
from ibrik_api.resources.destination_rules import check_destination, destination_endpoint
from ibrik_api.resources.subscription import Subscription
from ibrik_broker.delivery.guard import Guard
from ibrik_broker.http.crud import (
    page_answer,
    parse_page,
    precondition,
    read_json,
    resource_answer,
    unchanged,
    wants_new,
)
from ibrik_broker.http.door import Door
from ibrik_broker.metadata.resources import ResourceState
from ibrik_broker.registrations.collection import Collection
from ibrik_broker.registrations.entries import Entry

ResourceT = TypeVar("ResourceT", bound=Channel | Subscription)
Keep = Callable[[Entry[Any]], bool]


class CollectionHandlers(Generic[ResourceT]):
    def __init__(
        self,
        door: Door,
        collection: Collection[Any, Any, ResourceT],
        parse: Callable[[Any], ResourceT],
        guard: Guard,
    ) -> None:
        self._door = door
        self._collection = collection
        self._parse = parse
        self._guard = guard

    def keep(self, request: web.Request) -> Keep:
        """Which ones a list is asked for."""
        raise NotImplementedError

    def destination(self, resource: ResourceT) -> Destination | None:
        """Where the resource itself says that messages go."""
        raise NotImplementedError

    async def list_page(self, request: web.Request) -> web.Response:
        page = parse_page(request)
        found = self._collection.page(
            after=page.after,
            limit=page.limit,
            namespace=request.rel_url.query.get("namespace"),
            keep=self.keep(request),
        )
        return page_answer(page, [(key_of(resource), resource.document()) for resource in found])

    async def create(self, request: web.Request) -> web.Response:
        """Make it. The same again changes nothing; other settings are a conflict."""
        resource = await self._read(request)
        made, is_new = await self._collection.create(resource.metadata.name, resource.spec)
        return self._answer(made, is_new=is_new)

    async def read(self, request: web.Request) -> web.Response:
        name, namespace = self.place(request)
        found = self._collection.describe(name, namespace=namespace)
        return unchanged(request, found.metadata.resource_version) or self._answer(found)

    async def replace(self, request: web.Request) -> web.Response:
        """Make it be as the body says, whether it is there or not."""
        name, _ = self.place(request)
        resource = await self._read(request)
        if resource.metadata.name != name:
            raise Refusal(
                "invalid-request",
                f"The path names {name!r}, the body {resource.metadata.name[:60]!r}.",
            )
        made, is_new = await self._collection.put(
            name,
            resource.spec,
            if_match=self.precondition(request, name, None),
            if_none_match=wants_new(request),
        )
        return self._answer(made, is_new=is_new)

    async def pause(self, request: web.Request) -> web.Response:
        """Hold deliveries back; the backlog stays."""
        name, namespace = self.place(request)
        return self._answer(await self._collection.pause(name, namespace=namespace))

    async def resume(self, request: web.Request) -> web.Response:
        """Go on, whatever it was that stopped it."""
        name, namespace = self.place(request)
        return self._answer(await self._collection.resume(name, namespace=namespace))

    # --- parts ------------------------------------------------------------------------------------

    def place(self, request: web.Request) -> tuple[str, str | None]:
        """The name in the path, and the namespace in the query."""
        word = self._collection.word
        return check_name(request.match_info[word], what=word), request.query.get("namespace")

    def precondition(self, request: web.Request, name: str, namespace: str | None) -> int | None:
        """The revision that If-Match names."""
        entry = self._collection.entries.get((namespace or self._collection.namespace, name))
        is_known = entry is not None and entry.row.state is ResourceState.READY
        return precondition(request, self._collection.word, name, is_known=is_known)

    async def _read(self, request: web.Request) -> ResourceT:
        resource = self._parse(await read_json(self._door, request))
        refuse_denied(self._guard, self.destination(resource))
        return resource

    def _answer(self, resource: ResourceT, *, is_new: bool = False) -> web.Response:
        path = f"/v1/{self._collection.word}s/{resource.metadata.name}"
        return resource_answer(
            resource.document(),
            resource.metadata.resource_version,
            created_at=path if is_new else None,
        )


def refuse_denied(guard: Guard, destination: Destination | None) -> None:
    """Say at once that an address will never be delivered to; names are judged on each connection.

    Raises Refusal `egress-denied`.
    """
    if destination is None or any(check_destination(destination)) or destination.topic is not None:
        return
    host, port = destination_endpoint(destination)
    is_service = destination.service is not None
    sentence = guard.policy.refuse_literal(host, port or 0, is_service)
    if sentence is not None:
        raise Refusal("egress-denied", sentence)


def key_of(resource: Channel | Subscription) -> str:
    """What a page token holds: `Collection.page` goes on after it."""
    return f"{resource.metadata.name}/{resource.metadata.namespace}"
