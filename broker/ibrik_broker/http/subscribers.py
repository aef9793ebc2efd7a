"""Subscribers the webhook way: an endpoint registers for the messages of a topic, and no more.

Behind each stand a channel and a subscription, made and removed together.
"""

from aiohttp import web

from ibrik_api.errors import Refusal
from ibrik_api.registering import SubscriberRegistered, SubscriberRequest, SubscriberView
from ibrik_api.resources.destination import Destination, HttpDestination, Method
from ibrik_api.resources.subscription import Mode, Subscription
from ibrik_broker.delivery.guard import Guard
from ibrik_broker.http.collections import key_of, refuse_denied
from ibrik_broker.http.crud import (
    PLAIN_NEXT,
    json_answer,
    page_answer,
    parse_choice,
    parse_page,
    read_body,
)
from ibrik_broker.http.door import Door
from ibrik_broker.registrations.catalogue import Catalogue
from ibrik_broker.registrations.endpoints import names_of

PREFIX, CHANNEL_PREFIX = "sub-", "ch-"
"""What the names of a subscriber's subscription and channel begin with."""


class SubscriberHandlers:
    def __init__(self, door: Door, catalogue: Catalogue, guard: Guard) -> None:
        self._door = door
        self._catalogue = catalogue
        self._guard = guard

    async def register(self, request: web.Request) -> web.Response:
        """The same endpoint again is the same registration, never a second delivery."""
        topic = self._door.topic(request).name
        body = await read_body(self._door, request, SubscriberRequest)
        wished = {"url": body.url, "method": body.method, "headers": body.headers}
        http = HttpDestination.parse(wished)  # says which one is too long, or too many
        refuse_denied(self._guard, Destination(http=http))
        made = await self._catalogue.endpoints.subscribe(
            topic, http.url, http.method, http.headers, fire_and_forget=body.fire_and_forget
        )
        name = made.subscription.metadata.name
        answer = SubscriberRegistered(
            name, topic, made.channel, body.url, body.method, created=made.created
        )
        response = json_answer(answer, status=201 if made.created else 200)
        if made.created:
            response.headers["Location"] = f"/v1/topics/{topic}/subscribers/{name}"
        return response

    async def list_page(self, request: web.Request) -> web.Response:
        topic = self._door.topic(request).name
        subscriptions = self._catalogue.subscriptions
        page = parse_page(request)
        found = subscriptions.page(
            after=page.after,
            limit=page.limit,
            namespace=subscriptions.namespace,
            keep=subscriptions.matching(topic=topic, mode=Mode.PUSH, name_prefix=PREFIX),
        )
        rows = [(key_of(one), self._view(one)) for one in found]
        return page_answer(
            page, [(key, view) for key, view in rows if view is not None], next_name=PLAIN_NEXT
        )

    async def remove(self, request: web.Request) -> web.Response:
        """De-register by the id that registering answered."""
        return await self._remove(self._door.topic(request).name, request.match_info["subscriber"])

    async def remove_endpoint(self, request: web.Request) -> web.Response:
        """De-register by what was registered."""
        topic = self._door.topic(request).name
        url = request.query.get("url", "")
        if not url:
            raise Refusal("invalid-request", "url= says which endpoint is to be removed.")
        method = parse_choice(request, "method", Method) or Method.POST
        return await self._remove(topic, id_of(topic, url, method))

    async def _remove(self, topic: str, name: str) -> web.Response:
        """Only a subscriber of this topic: other subscriptions are removed under their own path."""
        found = self._catalogue.subscriptions.describe(name)
        view = self._view(found)
        if view is None or view.topic != topic:
            raise Refusal(
                "unknown-subscription",
                f"The topic '{topic}' has no subscriber {name[:60]!r}. GET"
                f" /v1/topics/{topic}/subscribers lists them.",
            )
        await self._catalogue.endpoints.unsubscribe(name)
        return web.Response(status=204)

    def _view(self, subscription: Subscription) -> SubscriberView | None:
        """None for a subscription that was not made by registering an endpoint."""
        name, reference = subscription.metadata.name, subscription.spec.channel_ref
        channels = self._catalogue.channels
        if reference is None or reference.name != CHANNEL_PREFIX + name.removeprefix(PREFIX):
            return None
        entry = channels.entries.get((channels.namespace, reference.name))
        http = None if entry is None else channels.view(entry).spec.http
        if http is None:
            return None
        topic = (subscription.status and subscription.status.topic) or ""
        return SubscriberView(name, topic, reference.name, http.url, http.method.value)


def id_of(topic: str, url: str, method: Method) -> str:
    """The id that registering this endpoint answers."""
    try:
        return names_of(topic, url, method).subscription
    except ValueError as error:
        raise Refusal("invalid-destination", f"url={url[:100]!r} is no URL: {error}.") from error
