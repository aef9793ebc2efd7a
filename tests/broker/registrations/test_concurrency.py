"""Many changes at once, and what happens beside them: one at a time, none lost."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ibrik_api.errors import Refusal
from ibrik_api.resources.topic import DeletionPolicy
from tests.broker.registrations.rig import (
    HOOK,
    Rig,
    channel,
    conditions,
    open_catalogue,
    pushed,
    resource,
    subscription,
)

PATIENCE_SECONDS = 10.0


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with open_catalogue(tmp_path) as opened:
        await opened.topic("orders")
        yield opened


async def test_of_many_that_want_a_name_to_be_new_one_gets_it(rig: Rig) -> None:
    attempts = [
        rig.catalogue.channels.put("hooks", channel(timeout=f"{n}s"), if_none_match=True)
        for n in range(1, 21)
    ]
    results = await asyncio.gather(*attempts, return_exceptions=True)
    codes = [result.code for result in results if isinstance(result, Refusal)]
    assert codes == ["precondition-failed"] * 19
    assert len(rig.dispatcher.channels) == 1


async def test_of_many_that_read_the_same_revision_one_changes_it(rig: Rig) -> None:
    view, _ = await rig.catalogue.subscriptions.put("billing", subscription("orders"))
    revision = int(view.metadata.resource_version or 0)
    attempts = [
        rig.catalogue.subscriptions.put(
            "billing", subscription("orders", rateLimit=n), if_match=revision
        )
        for n in range(1, 21)
    ]
    results = await asyncio.gather(*attempts, return_exceptions=True)
    changed = [result for result in results if not isinstance(result, BaseException)]
    assert len(changed) == 1
    assert rig.dispatcher.wish("billing").rate == changed[0][0].spec.rate_limit


async def test_a_channel_is_never_removed_under_a_new_subscription(rig: Rig) -> None:
    for _ in range(10):
        await rig.catalogue.channels.put("hooks", channel())
        named, removed = await asyncio.gather(
            rig.catalogue.subscriptions.put("billing", pushed("orders")),
            rig.catalogue.channels.delete("hooks"),
            return_exceptions=True,
        )
        assert isinstance(named, Refusal) != isinstance(removed, Refusal)
        if not isinstance(named, Refusal):
            assert rig.dispatcher.wish("billing").channel_id in rig.dispatcher.channels
            await rig.catalogue.subscriptions.delete("billing")


async def test_two_lists_of_desired_resources_at_once_end_whole(rig: Rig) -> None:
    documents = [
        resource("Topic", "t"),
        resource("Channel", "hooks", http=HOOK),
        *(
            resource(
                "Subscription",
                f"s{n}",
                topicRef={"name": "t"},
                mode="push",
                channelRef={"name": "hooks"},
            )
            for n in range(10)
        ),
    ]
    lists = await asyncio.gather(rig.apply(*documents), rig.apply(*reversed(documents)))
    assert all(outcome.code is None for outcomes in lists for outcome in outcomes)
    assert len(rig.dispatcher.subscriptions) == 10
    assert {wish.channel_id for wish in rig.dispatcher.subscriptions.values()} == set(
        rig.dispatcher.channels
    )


async def test_the_catalogue_follows_topics_by_itself_until_it_is_cancelled(rig: Rig) -> None:
    await rig.catalogue.subscriptions.put("billing", subscription("orders"))
    following = asyncio.ensure_future(rig.catalogue.run())
    await rig.parts.registry.delete_topic("orders", policy=DeletionPolicy.DELETE)

    def ready() -> tuple[str, str]:
        return conditions(rig.catalogue.subscriptions.describe("billing"))["Ready"]

    async with asyncio.timeout(PATIENCE_SECONDS):
        while ready() != ("False", "TopicNotFound"):
            await asyncio.sleep(0)
        await rig.topic("orders")
        while ready() != ("True", "Ready"):
            await asyncio.sleep(0)
    following.cancel()
    with pytest.raises(asyncio.CancelledError):
        await following


async def test_the_doors_go_on_while_many_subscriptions_follow_a_topic(rig: Rig) -> None:
    for number in range(250):
        await rig.catalogue.subscriptions.put(f"s{number}", subscription("orders"))
    await rig.parts.registry.delete_topic("orders", policy=DeletionPolicy.DELETE)
    following = asyncio.ensure_future(rig.settle())
    turns = 0
    while not following.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns > 2
    told = conditions(rig.catalogue.subscriptions.describe("s249"))
    assert told["Ready"] == ("False", "TopicNotFound")
