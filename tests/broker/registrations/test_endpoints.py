"""The webhook style: the same endpoint again is the same registration, never a second delivery."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ibrik_api.errors import Refusal
from ibrik_api.resources.destination import Method
from ibrik_api.resources.subscription import Guarantee
from ibrik_broker.registrations.endpoints import names_of, normalised
from tests.broker.registrations.rig import HOOK, Rig, open_catalogue, pushed, resource

URL = HOOK["url"]


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with open_catalogue(tmp_path) as opened:
        await opened.topic("orders")
        yield opened


async def test_fifty_at_once_are_one_registration(rig: Rig) -> None:
    endpoints = rig.catalogue.endpoints
    made = await asyncio.gather(*(endpoints.subscribe("orders", URL) for _ in range(50)))
    assert sum(registered.created for registered in made) == 1
    names = {(registered.subscription.metadata.name, registered.channel) for registered in made}
    assert names == {names_of("orders", URL, Method.POST)}
    assert [call for call, _ in rig.calls()] == ["put_channel", "open"]


async def test_an_endpoint_registers_the_same_after_a_restart(tmp_path: Path) -> None:
    async with open_catalogue(tmp_path) as rig:
        await rig.topic("orders")
        made = await rig.catalogue.endpoints.subscribe("orders", URL, headers={"X-A": "1"})
    async with open_catalogue(tmp_path) as rig:
        again = await rig.catalogue.endpoints.subscribe("orders", URL, headers={"x-a": "1"})
        assert (again.created, again.channel) == (False, made.channel)
        assert len(rig.dispatcher.subscriptions) == 1


@pytest.mark.parametrize(
    "spelling",
    [
        "HTTP://Shop.example:80",
        "http://shop.example",
        "http://shop.example/x/..",
        "http://shop.example/",
    ],
)
def test_spellings_of_a_url_are_one_endpoint(spelling: str) -> None:
    assert normalised(spelling) == "http://shop.example/"


def test_other_urls_methods_and_topics_are_other_endpoints() -> None:
    endpoints = {
        names_of(topic, url, method).subscription
        for topic in ("orders", "payments")
        for url in ("http://a/", "https://a/", "http://a:81/", "http://a/?x=1", "http://a/x")
        for method in Method
    }
    assert len(endpoints) == 2 * 5 * 3


async def test_other_headers_are_told_how_to_be_changed(rig: Rig) -> None:
    endpoints = rig.catalogue.endpoints
    made = await endpoints.subscribe("orders", URL)
    for attempt in (
        endpoints.subscribe("orders", URL, headers={"X-A": "1"}),
        endpoints.subscribe("orders", URL, fire_and_forget=True),
    ):
        with pytest.raises(Refusal, match="PUT /v1/") as caught:
            await attempt
        assert caught.value.code == "subscription-exists"
        assert caught.value.facts["subscription"] == made.subscription.metadata.name


async def test_fire_and_forget_is_delivered_so(rig: Rig) -> None:
    made = await rig.catalogue.endpoints.subscribe("orders", URL, fire_and_forget=True)
    wish = rig.dispatcher.wish(made.subscription.metadata.name)
    assert wish.guarantee is Guarantee.FIRE_AND_FORGET
    assert wish.channel_id == rig.dispatcher.channel(made.channel).id


async def test_leaving_takes_the_channel_along(rig: Rig) -> None:
    endpoints = rig.catalogue.endpoints
    made = await endpoints.subscribe("orders", URL)
    await endpoints.unsubscribe(made.subscription.metadata.name)
    await endpoints.subscribe("orders", URL, Method.PUT)
    await endpoints.unsubscribe_endpoint("orders", URL, Method.PUT)
    assert len(rig.dispatcher.forgotten) == 2
    assert (rig.dispatcher.subscriptions, rig.dispatcher.channels) == ({}, {})
    for attempt in (
        endpoints.unsubscribe(made.subscription.metadata.name),
        endpoints.unsubscribe_endpoint("orders", URL, Method.PUT),
    ):
        with pytest.raises(Refusal) as caught:
            await attempt
        assert caught.value.code == "unknown-subscription"


async def test_leaving_with_what_is_no_url_is_refused(rig: Rig) -> None:
    with pytest.raises(Refusal) as caught:
        await rig.catalogue.endpoints.unsubscribe_endpoint("orders", "http://a:b/")
    assert caught.value.code == "invalid-destination"


async def test_a_channel_that_others_name_stays(rig: Rig) -> None:
    made = await rig.catalogue.endpoints.subscribe("orders", URL)
    await rig.catalogue.subscriptions.put("other", pushed("orders", to=made.channel))
    await rig.catalogue.endpoints.unsubscribe(made.subscription.metadata.name)
    assert [wish.name for wish in rig.dispatcher.channels.values()] == [made.channel]


@pytest.mark.parametrize(
    ("wish", "code"),
    [
        ({"topic": "nothing", "url": URL}, "unknown-topic"),
        ({"topic": "orders", "url": "ftp://example.org"}, "invalid-destination"),
        ({"topic": "orders", "url": "x"}, "invalid-resource"),
        ({"topic": "orders", "url": "http://a:b/hook"}, "invalid-destination"),
        ({"topic": "orders", "url": URL, "headers": {"Host": "x"}}, "invalid-destination"),
        ({"topic": "jobs", "url": URL}, "shared-needs-pull"),
    ],
)
async def test_a_refused_endpoint_leaves_nothing(rig: Rig, wish: Any, code: str) -> None:
    await rig.topic("jobs", dispatch="queue")
    await rig.catalogue.endpoints.subscribe("jobs", "http://127.0.0.1:1/first")
    channels = dict(rig.dispatcher.channels)
    with pytest.raises(Refusal) as caught:
        await rig.catalogue.endpoints.subscribe(**wish)
    assert caught.value.code == code
    assert rig.dispatcher.channels == channels


async def test_a_topic_is_named_as_at_the_broker(rig: Rig) -> None:
    other = resource("Topic", "orders", metadata={"namespace": "default"}, topicName="other")
    await rig.parts.registry.apply([other])
    made = await rig.catalogue.endpoints.subscribe("orders", URL)
    assert made.subscription.status is not None
    assert made.subscription.status.topic == "orders"
