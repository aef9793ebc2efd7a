"""Channels, subscriptions, publishers, and subscribers the webhook way.

Channels and subscriptions are resources, like topics; the others are small documents of their own.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ibrik_client.calls import Calls, Resource, if_match, path_of, up_to


class Registrations(Calls):
    """Who gets messages and where, and who may publish."""

    # --- channels ---------------------------------------------------------------------------------

    async def channels(
        self,
        *,
        kind: str | None = None,
        host: str | None = None,
        name_prefix: str | None = None,
        namespace: str | None = None,
    ) -> list[Resource]:
        """Channels as resources, by name; all, or those that fit."""
        params = {"kind": kind, "host": host, "name_prefix": name_prefix, "namespace": namespace}
        return [channel async for channel in self._pages("/v1/channels", params)]

    async def channel(self, name: str, *, namespace: str | None = None) -> Resource:
        return await self._document("GET", path_of("channels", name), params=_in(namespace))

    async def create_channel(self, name: str, spec: Mapping[str, Any]) -> Resource:
        """A new channel; refused when there is another one of this name."""
        resource = self._resource("Channel", name, spec)
        return await self._document("POST", "/v1/channels", body=resource)

    async def replace_channel(
        self, name: str, spec: Mapping[str, Any], *, resource_version: str | None = None
    ) -> Resource:
        """The channel with this whole spec, made when missing."""
        return await self._document(
            "PUT",
            path_of("channels", name),
            body=self._resource("Channel", name, spec),
            headers=if_match(resource_version),
        )

    async def delete_channel(self, name: str, *, namespace: str | None = None) -> None:
        """Refused while a subscription delivers there."""
        await self._call("DELETE", path_of("channels", name), params=_in(namespace))

    async def pause_channel(self, name: str, *, namespace: str | None = None) -> Resource:
        return await self._act("channels", name, "pause", namespace)

    async def resume_channel(self, name: str, *, namespace: str | None = None) -> Resource:
        """Go on, whatever stopped it: a pause, an open circuit, an endpoint that was gone."""
        return await self._act("channels", name, "resume", namespace)

    async def test_channel(self, name: str, *, namespace: str | None = None) -> Resource:
        """What became of one test message, sent as deliveries are."""
        return await self._act("channels", name, "test", namespace, is_repeatable=False)

    async def channel_attempts(
        self,
        name: str,
        *,
        limit: int = 100,
        status: int | None = None,
        error: str | None = None,
        since: str | None = None,
        namespace: str | None = None,
    ) -> Sequence[Resource]:
        """Attempts that failed, the newest first."""
        params = {
            "status": None if status is None else str(status),
            "error": error,
            "since": since,
            "page_size": str(min(limit, 500)),
        }
        path = path_of("channels", name, "attempts")
        return await up_to(self._pages(path, params | _in(namespace)), limit)

    async def channel_stats(self, name: str, *, namespace: str | None = None) -> Resource:
        """How deliveries went since the broker started."""
        path = path_of("channels", name, "stats")
        return await self._document("GET", path, params=_in(namespace))

    # --- subscriptions ----------------------------------------------------------------------------

    async def subscriptions(
        self, *, topic: str | None = None, namespace: str | None = None
    ) -> list[Resource]:
        """Subscriptions as resources, by name; all, or those of a topic."""
        params = {"topic": topic, "namespace": namespace}
        return [found async for found in self._pages("/v1/subscriptions", params)]

    async def subscription(self, name: str, *, namespace: str | None = None) -> Resource:
        return await self._document("GET", path_of("subscriptions", name), params=_in(namespace))

    async def create_subscription(self, name: str, spec: Mapping[str, Any]) -> Resource:
        """A new subscription; refused when there is another one of this name."""
        resource = self._resource("Subscription", name, spec)
        return await self._document("POST", "/v1/subscriptions", body=resource)

    async def replace_subscription(
        self, name: str, spec: Mapping[str, Any], *, resource_version: str | None = None
    ) -> Resource:
        """The subscription with this whole spec, made when missing."""
        return await self._document(
            "PUT",
            path_of("subscriptions", name),
            body=self._resource("Subscription", name, spec),
            headers=if_match(resource_version),
        )

    async def delete_subscription(
        self, name: str, *, policy: str | None = None, namespace: str | None = None
    ) -> str:
        """Delete by `policy`, or its own; `detached` (cursor kept) or `deleted`."""
        params = {"policy": policy} | _in(namespace)
        answer = await self._call("DELETE", path_of("subscriptions", name), params=params)
        return answer.headers.get("Ibrik-Subscription-State", "deleted")

    async def pause_subscription(self, name: str, *, namespace: str | None = None) -> Resource:
        return await self._act("subscriptions", name, "pause", namespace)

    async def resume_subscription(self, name: str, *, namespace: str | None = None) -> Resource:
        """Go on, whatever stopped it; a blocked message is tried again."""
        return await self._act("subscriptions", name, "resume", namespace)

    # --- publishers -------------------------------------------------------------------------------

    async def publishers(self, topic: str | None = None) -> list[Resource]:
        """Publishers of a topic, or of all; never with their tokens."""
        path = "/v1/publishers" if topic is None else path_of("topics", topic, "publishers")
        return [publisher async for publisher in self._pages(path)]

    async def register_publisher(self, topic: str, name: str) -> Resource:
        """A publisher; `token` is in the answer once, when it is new."""
        path = path_of("topics", topic, "publishers")
        return await self._document("POST", path, body={"name": name})

    async def rotate_publisher(self, topic: str, name: str) -> Resource:
        """The publisher with a new `token`; the old one counts no more."""
        path = path_of("topics", topic, "publishers", name)
        return await self._document("POST", f"{path}:rotate")

    async def remove_publisher(self, topic: str, name: str) -> None:
        await self._call("DELETE", path_of("topics", topic, "publishers", name))

    # --- subscribers ------------------------------------------------------------------------------

    async def subscribers(self, topic: str) -> list[Resource]:
        """Endpoints that registered for a topic."""
        path = path_of("topics", topic, "subscribers")
        return [subscriber async for subscriber in self._pages(path)]

    async def register_subscriber(
        self,
        topic: str,
        url: str,
        *,
        method: str = "POST",
        headers: Mapping[str, str] | None = None,
        fire_and_forget: bool = False,
    ) -> Resource:
        """Deliver a topic to an endpoint; the same again is the same registration."""
        body = {
            "url": url,
            "method": method,
            "headers": dict(headers or {}),
            "fire_and_forget": fire_and_forget,
        }
        return await self._document("POST", path_of("topics", topic, "subscribers"), body=body)

    async def remove_subscriber(self, topic: str, subscriber_id: str) -> None:
        await self._call("DELETE", path_of("topics", topic, "subscribers", subscriber_id))

    # --- parts ------------------------------------------------------------------------------------

    async def _act(
        self,
        collection: str,
        name: str,
        verb: str,
        namespace: str | None,
        *,
        is_repeatable: bool = True,
    ) -> Resource:
        return await self._document(
            "POST",
            f"{path_of(collection, name)}:{verb}",
            params=_in(namespace),
            is_repeatable=is_repeatable,
        )


def _in(namespace: str | None) -> dict[str, str | None]:
    return {"namespace": namespace}
