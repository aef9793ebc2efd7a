"""Brings each request to the broker that owns its topic. Absent when a broker is alone.

An operation is routed by the topic or the subscription in its path, or by the one that its body
names. What is here is served at once; what is not is passed on; what is nowhere yet goes to the
broker that gets the next topic.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from aiohttp import web

from ibrik_api.errors import Refusal
from ibrik_broker.http.crud import KEPT_BODY, keep_body
from ibrik_broker.http.door import Door, expect_body
from ibrik_broker.http.filling import LISTS, filled
from ibrik_broker.http.forwarding import Forwarding, not_here
from ibrik_broker.http.operations import ExpectHandler, Handler, Operation
from ibrik_broker.http.pool import is_from_peer
from ibrik_broker.pool.peers import POOL_CLIENT, POOL_TOKEN, NotConnected, Peers
from ibrik_broker.registrations.places import HERE, Places, text_at

WAITING = ("/stream", ":lease")
"""Ends of paths whose requests wait for messages: they end when their client goes."""

Find = Callable[[web.Request], Awaitable[Sequence[str]]]
"""The id of the broker that a request is for; several for a new topic, best first. HERE: it is
served by this one, or refused."""


class Routing:
    def __init__(self, places: Places, peers: Peers, door: Door) -> None:
        self._places = places
        self._peers = peers
        self._door = door
        self._forwarding = Forwarding(peers)
        self._bodies = {
            "createTopic": self._new_topic,
            "createSubscription": self._new_subscription,
            "createReplay": self._new_replay,
        }

    def route(self, operations: Iterable[Operation]) -> list[Operation]:
        return [self._route(operation) for operation in operations]

    def close(self) -> None:
        self._forwarding.close()

    def _route(self, operation: Operation) -> Operation:
        find = self._find(operation)
        if operation.name in LISTS:
            handler = filled(operation.handler, LISTS[operation.name], self._peers)
            return replace(operation, handler=handler)
        if find is None:
            if not operation.is_registration:
                return operation
            return replace(operation, handler=self._telling(operation.handler))
        handler = self._routed(operation, find)
        expect = self._expecting(operation.expect or expect_body, find)
        return replace(operation, handler=handler, expect=expect)

    def _find(self, operation: Operation) -> Find | None:
        if operation.name in self._bodies:
            return self._bodies[operation.name]
        if operation.name == "replaceTopic":
            return self._topic_to_be
        if operation.name == "replaceSubscription":
            return self._subscription_to_be
        for parameter, find in (
            ("topic", self._topic),
            ("subscription", self._subscription),
            ("replay", self._replay),
        ):
            if f"{{{parameter}}}" in operation.path:
                return find
        return None

    # --- handlers ---------------------------------------------------------------------------------

    def _routed(self, operation: Operation, find: Find) -> Handler:
        here = operation.handler
        if find in (self._topic, self._topic_to_be, self._new_topic):
            here = _owning(here)
        if operation.is_registration:
            here = self._telling(here)
        waits = operation.path.endswith(WAITING)

        async def routed(request: web.Request) -> web.StreamResponse:
            if POOL_TOKEN in request.headers and is_from_peer(request, self._places.pool):
                return await self._serve_peer(request, here)
            for owner in (owners := await find(request)):
                if self._places.pool.is_me(owner):
                    break
                broker, body = self._places.pool.broker(owner), request.get(KEPT_BODY)
                try:
                    return await self._forwarding.forward(request, broker, body=body, waits=waits)
                except NotConnected:
                    if owner == owners[-1]:
                        raise
            return await here(request)

        return routed

    def _telling(self, handler: Handler) -> Handler:
        """What was changed is known to every broker before it is answered."""

        async def telling(request: web.Request) -> web.StreamResponse:
            response = await handler(request)
            if response.status < 300:
                await self._peers.notify()
            return response

        return telling

    def _expecting(self, expect: ExpectHandler, find: Find) -> ExpectHandler:
        """A body that is passed on is asked for when its owner asks for it."""
        if find in self._bodies.values() or find == self._subscription_to_be:
            return expect  # it is read here

        async def expecting(request: web.Request) -> web.StreamResponse | None:
            if POOL_TOKEN not in request.headers:
                try:
                    owners = await find(request)
                except Refusal:
                    return None  # the handler says it
                if owners and not self._places.pool.is_me(owners[0]):
                    return None
            return await expect(request)

        return expecting

    async def _serve_peer(self, request: web.Request, here: Handler) -> web.StreamResponse:
        """Once passed on, a request is served or refused; it comes from where it came from."""
        client = request.headers.get(POOL_CLIENT)
        return await here(request.clone(remote=client) if client else request)

    # --- by the path ------------------------------------------------------------------------------

    async def _topic(self, request: web.Request) -> Sequence[str]:
        name = request.match_info["topic"]
        if self._door.engine.served(name) is not None:
            return HERE
        return await self._places.of_topic(name)

    async def _subscription(self, request: web.Request) -> Sequence[str]:
        name, namespace = request.match_info["subscription"], request.query.get("namespace")
        return await self._places.of_subscription(name, namespace)

    async def _replay(self, request: web.Request) -> Sequence[str]:
        return await self._places.of_replay(request.match_info["replay"])

    async def _topic_to_be(self, request: web.Request) -> Sequence[str]:
        return await self._places.of_topic_to_be(request.match_info["topic"])

    # --- by the body ------------------------------------------------------------------------------

    async def _new_topic(self, request: web.Request) -> Sequence[str]:
        body = await self._document(request)
        name = text_at(body, "spec", "topicName") or text_at(body, "metadata", "name")
        return HERE if name is None else await self._places.of_topic_to_be(name)

    async def _new_subscription(self, request: web.Request) -> Sequence[str]:
        name = text_at(await self._document(request), "spec", "topicRef", "name")
        return HERE if name is None else await self._places.of_topic(name)

    async def _subscription_to_be(self, request: web.Request) -> Sequence[str]:
        return await self._subscription(request) or await self._new_subscription(request)

    async def _new_replay(self, request: web.Request) -> Sequence[str]:
        name = text_at(await self._document(request), "source", "topic")
        return HERE if name is None else await self._places.of_topic(name)

    async def _document(self, request: web.Request) -> Any:
        """The body; whoever serves the request reads it once more, from where it is kept."""
        return await keep_body(self._door, request)


def _owning(handler: Handler) -> Handler:
    """What is found at another broker only now is tried again, and goes there then."""

    async def owning(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except Refusal as refusal:
            if refusal.code != "owner-elsewhere":
                raise
            raise not_here(request.match_info.get("topic", "The topic")) from refusal

    return owning
