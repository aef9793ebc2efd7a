"""Subscriptions over HTTP: what they have beside other resources.

Consuming them (leases, acknowledgements, seeks) is in `consuming.py`.
"""

from aiohttp import web

from ibrik_api.names import check_name
from ibrik_api.resources.destination import Destination
from ibrik_api.resources.subscription import Subscription, SubscriptionDeletionPolicy
from ibrik_broker.delivery.guard import Guard
from ibrik_broker.http.collections import CollectionHandlers, Keep
from ibrik_broker.http.crud import parse_choice
from ibrik_broker.http.door import Door
from ibrik_broker.registrations.catalogue import Catalogue


class SubscriptionHandlers(CollectionHandlers[Subscription]):
    def __init__(self, door: Door, catalogue: Catalogue, guard: Guard) -> None:
        super().__init__(door, catalogue.subscriptions, Subscription.parse, guard)
        self._subscriptions = catalogue.subscriptions

    def keep(self, request: web.Request) -> Keep:
        topic = request.query.get("topic")
        if topic is not None:
            check_name(topic)
        return self._subscriptions.matching(topic=topic)

    def destination(self, resource: Subscription) -> Destination | None:
        return resource.spec.push

    async def delete(self, request: web.Request) -> web.Response:
        """Delete as the subscription's deletionPolicy says, or as `policy=` does."""
        name, namespace = self.place(request)
        is_kept = await self._subscriptions.delete(
            name,
            if_match=self.precondition(request, name, namespace),
            policy=parse_choice(request, "policy", SubscriptionDeletionPolicy),
            namespace=namespace,
        )
        state = "detached" if is_kept else "deleted"
        return web.Response(status=204, headers={"Ibrik-Subscription-State": state})
