"""The webhook style: an endpoint asks for a topic's messages, and nothing else has a name.

An endpoint is a topic, a URL and a method. Its names are digests of the three, so that the same
endpoint again, also fifty times at once, is the same registration and never a second delivery.
"""

import hashlib
from collections.abc import Mapping
from typing import NamedTuple

from yarl import URL

from ibrik_api.errors import Refusal
from ibrik_api.resources.channel import ChannelSpec
from ibrik_api.resources.destination import Method
from ibrik_api.resources.destination_rules import check_destination
from ibrik_api.resources.subscription import (
    Guarantee,
    Mode,
    Subscription,
    SubscriptionDeletionPolicy,
    SubscriptionSpec,
)
from ibrik_api.resources.topic_rules import refuse_if
from ibrik_broker.metadata.resources import ResourceState
from ibrik_broker.metadata.rows import Origin
from ibrik_broker.registrations.channels import Channels
from ibrik_broker.registrations.subscriptions import Subscriptions
from ibrik_broker.registrations.turns import Turns

SUBSCRIPTION_PREFIX, CHANNEL_PREFIX = "sub-", "ch-"
DIGEST_CHARACTERS = 20


class Registered(NamedTuple):
    subscription: Subscription
    channel: str
    created: bool


class Names(NamedTuple):
    subscription: str
    channel: str


class Endpoints:
    def __init__(self, channels: Channels, subscriptions: Subscriptions, turns: Turns) -> None:
        self._channels = channels
        self._subscriptions = subscriptions
        self._turns = turns

    async def subscribe(
        self,
        topic: str,
        url: str,
        method: Method = Method.POST,
        headers: Mapping[str, str] | None = None,
        *,
        fire_and_forget: bool = False,
    ) -> Registered:
        """Deliver a topic's messages to an endpoint; the same endpoint again changes nothing.

        Raises Refusal: unknown-topic, invalid-destination, subscription-exists (other headers),
        shared-needs-pull …
        """
        channel = ChannelSpec.parse(
            {"http": {"url": url, "method": method, "headers": dict(headers or {})}}
        )
        refuse_if(check_destination(channel))
        names = names_of(topic, url, method)
        guarantee = Guarantee.FIRE_AND_FORGET if fire_and_forget else Guarantee.AT_LEAST_ONCE
        subscription = SubscriptionSpec.parse(
            {
                "topicRef": {"name": topic},
                "mode": Mode.PUSH,
                "channelRef": {"name": names.channel},
                "delivery": guarantee,
                "deletionPolicy": SubscriptionDeletionPolicy.DELETE,
            }
        )
        async with self._turns:
            return await self._subscribe(names, channel, subscription)

    async def unsubscribe(self, name: str) -> None:
        """De-register by the name that registering answered; raises `unknown-subscription`."""
        async with self._turns:
            try:
                entry = self._subscriptions.find(name)
            except Refusal:
                await self._drop_own_channel(name)  # what an earlier attempt may have left
                raise
            self._subscriptions.refuse_managed(entry)
            await self._subscriptions.remove(entry, is_kept=False)
            await self._drop_own_channel(name)

    async def unsubscribe_endpoint(
        self, topic: str, url: str, method: Method = Method.POST
    ) -> None:
        """De-register by what was registered; raises `unknown-subscription`."""
        await self.unsubscribe(names_of(topic, url, method).subscription)

    async def _subscribe(
        self, names: Names, channel: ChannelSpec, subscription: SubscriptionSpec
    ) -> Registered:
        namespace = self._subscriptions.namespace
        entry = self._subscriptions.entries.get((namespace, names.subscription))
        old = self._channels.entries.get((namespace, names.channel))
        if entry is not None and entry.row.state is ResourceState.READY and old is not None:
            _refuse_other_guarantee(names, self._subscriptions.stored(entry.row), subscription)
            _refuse_other_headers(names, self._channels.stored(old.row), channel)
            if entry.is_unfinished:
                await self._subscriptions.carry_out(entry)
            return Registered(self._subscriptions.view(entry), names.channel, False)
        await self._channels.put_now(names.channel, channel)
        try:
            entry, is_new = await self._subscriptions.put_now(names.subscription, subscription)
        except Refusal:
            if old is None:
                await self._drop_own_channel(names.subscription)
            raise
        return Registered(self._subscriptions.view(entry), names.channel, is_new)

    async def _drop_own_channel(self, subscription: str) -> None:
        """The channel that registering made, while nobody else names it."""
        if not subscription.startswith(SUBSCRIPTION_PREFIX):
            return
        channel = CHANNEL_PREFIX + subscription.removeprefix(SUBSCRIPTION_PREFIX)
        entry = self._channels.entries.get((self._channels.namespace, channel))
        if (
            entry is not None
            and entry.row.origin is Origin.API
            and not self._channels.is_used(entry)
        ):
            await self._channels.drop(entry)


def names_of(topic: str, url: str, method: Method) -> Names:
    identity = "\n".join((topic, normalised(url), method))
    digest = hashlib.sha256(identity.encode()).hexdigest()[:DIGEST_CHARACTERS]
    return Names(SUBSCRIPTION_PREFIX + digest, CHANNEL_PREFIX + digest)


def normalised(url: str) -> str:
    """One spelling of each URL: case of the host, default port, empty path, escapes, dots.

    Raises Refusal `invalid-destination`.
    """
    try:
        parsed = URL(url).with_fragment(None)
        if parsed.explicit_port is not None and parsed.is_default_port():
            parsed = parsed.with_port(None)
        return f"{parsed.origin()}{parsed.raw_path_qs}"
    except ValueError as error:
        raise Refusal("invalid-destination", f"{url[:100]!r} is no URL: {error}.") from error


def _refuse_other_guarantee(
    names: Names, old: SubscriptionSpec | None, new: SubscriptionSpec
) -> None:
    if old is None or old.delivery is not new.delivery:
        raise Refusal(
            "subscription-exists",
            "This endpoint is registered with another guarantee. Change spec.delivery with PUT "
            f"/v1/subscriptions/{names.subscription}, or delete that subscription first.",
            subscription=names.subscription,
        )


def _refuse_other_headers(names: Names, old: ChannelSpec | None, new: ChannelSpec) -> None:
    if old is None or _headers(old) != _headers(new):
        raise Refusal(
            "subscription-exists",
            "This endpoint is registered with other headers. Change them with PUT "
            f"/v1/channels/{names.channel}, or delete the subscription {names.subscription} first.",
            subscription=names.subscription,
            channel=names.channel,
        )


def _headers(channel: ChannelSpec) -> dict[str, str]:
    headers = {} if channel.http is None else channel.http.headers
    return {name.lower(): value for name, value in headers.items()}
