"""Subscriptions over HTTP: what is wished, what the dispatcher is told, what is refused."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ibrik_api.errors import Refusal
from ibrik_api.resources.subscription import GroupType, Mode, OnExhausted, StartFrom
from ibrik_api.resources.subscription import SubscriptionDeletionPolicy as Policy
from ibrik_api.resources.topic import DeletionPolicy, Ordering, TopicSpec
from tests.broker.registrations.rig import (
    HOOK,
    Rig,
    channel,
    conditions,
    open_catalogue,
    pushed,
    subscription,
)


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with open_catalogue(tmp_path) as opened:
        await opened.topic("orders")
        await opened.catalogue.channels.put("hooks", channel())
        opened.calls()
        yield opened


async def refused(attempt: Any) -> Refusal:
    with pytest.raises(Refusal) as caught:
        await attempt
    return caught.value


async def test_what_is_left_out_comes_from_the_topic(rig: Rig) -> None:
    delivery = {"ackDeadline": "5m", "ordering": "key", "retryPreset": "webhook"}
    await rig.topic("jobs", dispatch="queue", delivery=delivery)
    view, is_new = await rig.catalogue.subscriptions.put("work", subscription("jobs"))
    assert is_new
    wish = rig.dispatcher.wish("work")
    assert (wish.topic, wish.type, wish.ordering) == ("jobs", GroupType.SHARED, Ordering.KEY)
    assert (wish.ack_deadline_ms, wish.retry.max_attempts) == (300_000, 10)
    assert view.status is not None
    assert (view.status.topic, view.status.state, view.status.backlog) == ("jobs", "active", 3)
    assert (view.status.in_flight, view.status.retrying, view.status.dead_lettered) == (2, 1, 4)
    assert conditions(view) == {
        "Ready": ("True", "Ready"),
        "TopicResolved": ("True", "AsWished"),
        "DestinationResolved": ("True", "AsWished"),
        "DataPlaneReady": ("True", "AsWished"),
    }


async def test_what_is_said_wins_over_the_topic(rig: Rig) -> None:
    spec = subscription(
        "orders",
        type="shared",
        ordering="strict",
        start={"from": "offset", "value": "3,7"},
        ack={"deadline": "1m", "maxInFlight": 5},
        retry={"maxAttempts": 2, "onExhausted": "block"},
        filter="event.type == 'paid'",
        rateLimit=10,
    )
    await rig.catalogue.subscriptions.put("billing", spec)
    wish = rig.dispatcher.wish("billing")
    assert (wish.type, wish.ordering, wish.rate) == (GroupType.SHARED, Ordering.STRICT, 10)
    assert (wish.start.origin, wish.start.offsets) == (StartFrom.OFFSET, (3, 7))
    assert (wish.ack_deadline_ms, wish.max_in_flight) == (60_000, 5)
    assert (wish.retry.max_attempts, wish.retry.on_exhausted) == (2, OnExhausted.BLOCK)
    assert wish.filter is not None
    assert wish.filter.text == "event.type == 'paid'"


async def test_new_defaults_of_the_topic_reach_only_whom_they_concern(rig: Rig) -> None:
    await rig.catalogue.subscriptions.put("says", subscription("orders", ordering="none"))
    await rig.catalogue.subscriptions.put("asks", subscription("orders"))
    rig.calls()
    spec = TopicSpec.parse({"delivery": {"ordering": "strict"}})
    await rig.parts.registry.put_topic("orders", spec)
    await rig.settle()
    assert rig.calls() == [("change", "asks")]
    assert rig.dispatcher.wish("asks").ordering is Ordering.STRICT


async def test_the_same_again_changes_nothing_and_other_settings_are_a_conflict(rig: Rig) -> None:
    subscriptions = rig.catalogue.subscriptions
    made, is_new = await subscriptions.create("billing", subscription("orders"))
    again, is_new_again = await subscriptions.create("billing", subscription("orders"))
    assert (is_new, is_new_again) == (True, False)
    assert made == again
    assert rig.calls() == [("open", "billing")]
    other = await refused(subscriptions.create("billing", subscription("orders", rateLimit=1)))
    assert other.code == "subscription-exists"
    replaced, _ = await subscriptions.put("billing", subscription("orders", rateLimit=1))
    assert replaced.metadata.generation == 2
    assert rig.calls() == [("change", "billing")]


async def test_preconditions_are_held(rig: Rig) -> None:
    subscriptions = rig.catalogue.subscriptions
    absent = subscriptions.put("billing", subscription("orders"), if_match=1)
    assert (await refused(absent)).code == "precondition-failed"
    view, _ = await subscriptions.put("billing", subscription("orders"), if_none_match=True)
    revision = int(view.metadata.resource_version or 0)
    for attempt in (
        subscriptions.put("billing", subscription("orders"), if_none_match=True),
        subscriptions.put("billing", subscription("orders", rateLimit=2), if_match=revision + 1),
        subscriptions.delete("billing", if_match=revision + 1),
    ):
        assert (await refused(attempt)).code == "precondition-failed"
    await subscriptions.put("billing", subscription("orders", rateLimit=2), if_match=revision)


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        ({"mode": "push"}, "invalid-resource"),
        ({"mode": "push", "channelRef": {"name": "nowhere"}}, "unknown-channel"),
        ({"mode": "push", "push": {"http": {"url": "ftp://example"}}}, "invalid-destination"),
        ({"filter": "event.type =="}, "invalid-filter"),
        ({"topicRef": {"name": "ordres"}}, "unknown-topic"),
        ({"deadLetter": {"topicRef": {"name": "morgue"}}}, "unknown-topic"),
        ({"replay": {"requestId": "1", "from": "0"}}, "unsupported-field"),
    ],
)
async def test_what_cannot_be_is_refused_and_leaves_nothing(
    rig: Rig, spec: dict[str, Any], code: str
) -> None:
    subscriptions = rig.catalogue.subscriptions
    refusal = await refused(subscriptions.put("billing", subscription("orders", **spec)))
    assert refusal.code == code
    assert rig.calls() == []
    assert (await refused(_describe(rig, "billing"))).code == "unknown-subscription"


async def _describe(rig: Rig, name: str) -> None:
    rig.catalogue.subscriptions.describe(name)


async def test_a_typo_in_the_topic_is_told_with_what_was_meant(rig: Rig) -> None:
    refusal = await refused(rig.catalogue.subscriptions.put("b", subscription("ordres")))
    assert "Did you mean 'orders'?" in refusal.detail
    assert "ibrik topic create ordres" in refusal.detail


async def test_the_topic_is_fixed_and_all_else_may_change(rig: Rig) -> None:
    await rig.topic("payments")
    subscriptions = rig.catalogue.subscriptions
    await subscriptions.put("billing", subscription("orders"))
    moved = await refused(subscriptions.put("billing", subscription("payments")))
    assert moved.code == "immutable-field"
    view, _ = await subscriptions.put("billing", pushed("orders"))
    assert view.status is not None
    assert view.status.destination == "channel/hooks"
    assert rig.dispatcher.wish("billing").channel_id == rig.dispatcher.channel("hooks").id


async def test_an_inline_destination_is_a_channel_of_its_own(rig: Rig) -> None:
    subscriptions = rig.catalogue.subscriptions
    spec = subscription("orders", mode="push", push={"http": HOOK})
    view, _ = await subscriptions.put("billing", spec)
    wish = rig.dispatcher.wish("billing")
    assert wish.channel_id == wish.id
    assert rig.dispatcher.channels[wish.id].destination == spec.push
    assert rig.calls() == [("put_channel", "billing"), ("open", "billing")]
    assert view.status is not None
    assert view.status.destination == f"POST {HOOK['url']}"
    await subscriptions.put("billing", pushed("orders"))
    assert rig.calls() == [("change", "billing"), ("drop_channel", "billing")]


async def test_retain_detaches_and_the_next_put_goes_on(rig: Rig) -> None:
    subscriptions = rig.catalogue.subscriptions
    made, _ = await subscriptions.put("billing", subscription("orders"))
    assert await subscriptions.delete("billing") is True
    assert rig.calls()[-1] == ("close", "billing")
    refusal = await refused(_describe(rig, "billing"))
    assert (refusal.code, refusal.status) == ("subscription-detached", 404)
    assert subscriptions.page() == []
    back, is_new = await subscriptions.put("billing", subscription("orders", rateLimit=3))
    assert made.status is not None
    assert back.status is not None
    assert (back.status.subscription_id, is_new) == (made.status.subscription_id, False)
    assert rig.calls() == [("open", "billing")]


async def test_delete_forgets_also_what_was_detached(rig: Rig) -> None:
    subscriptions = rig.catalogue.subscriptions
    await subscriptions.put("one", subscription("orders", deletionPolicy="Delete"))
    await subscriptions.put("two", subscription("orders"))
    ids = [rig.dispatcher.wish(name).id for name in ("one", "two")]
    assert await subscriptions.delete("one") is False
    await subscriptions.delete("two")
    assert await subscriptions.delete("two", policy=Policy.DELETE) is False
    assert rig.dispatcher.forgotten == ids
    for name in ("one", "two"):
        assert (await refused(_describe(rig, name))).code == "unknown-subscription"


async def test_pause_and_resume_hold_and_free_it(rig: Rig) -> None:
    subscriptions = rig.catalogue.subscriptions
    await subscriptions.put("billing", subscription("orders"))
    for _ in range(2):
        await subscriptions.pause("billing")
        assert rig.dispatcher.wish("billing").halt == "paused"
    rig.calls()
    for _ in range(2):  # also of one that only has blocked messages
        await subscriptions.resume("billing")
        assert rig.dispatcher.wish("billing").halt is None
        assert rig.calls() == [("change", "billing")]


async def test_a_wish_to_pause_is_not_resumed_behind_its_back(rig: Rig) -> None:
    subscriptions = rig.catalogue.subscriptions
    await subscriptions.put("billing", subscription("orders", paused=True))
    assert rig.dispatcher.wish("billing").halt == "paused"
    refusal = await refused(subscriptions.resume("billing"))
    assert refusal.code == "subscription-paused"
    assert "spec.paused" in refusal.detail
    await subscriptions.put("billing", subscription("orders"))
    assert rig.dispatcher.wish("billing").halt is None


async def test_a_second_push_on_a_queue_topic_needs_pull(rig: Rig) -> None:
    await rig.topic("jobs", dispatch="queue")
    subscriptions = rig.catalogue.subscriptions
    await subscriptions.put("one", pushed("jobs"))
    refusal = await refused(subscriptions.put("two", pushed("jobs")))
    assert refusal.code == "shared-needs-pull"
    assert "'one'" in refusal.detail
    await subscriptions.put("one", pushed("jobs", rateLimit=5))
    await subscriptions.put("two", subscription("jobs"))
    refusal = await refused(subscriptions.put("two", pushed("jobs")))
    assert refusal.code == "shared-needs-pull"


async def test_a_topic_that_goes_and_comes_back_is_told_in_the_status(rig: Rig) -> None:
    subscriptions = rig.catalogue.subscriptions
    await subscriptions.put("billing", subscription("orders"))
    for policy, reason in (
        (DeletionPolicy.RETAIN, "TopicNotServed"),
        (DeletionPolicy.DELETE, "TopicNotFound"),
    ):
        await rig.parts.registry.delete_topic("orders", policy=policy)
        await rig.settle()
        view = subscriptions.describe("billing")
        assert conditions(view)["TopicResolved"] == ("False", reason)
        assert conditions(view)["Ready"] == ("False", reason)
        await rig.topic("orders")
        await rig.settle()
        assert conditions(subscriptions.describe("billing"))["Ready"] == ("True", "Ready")


async def test_a_lost_topic_forbids_no_other_change(rig: Rig) -> None:
    subscriptions = rig.catalogue.subscriptions
    await subscriptions.put("billing", subscription("orders"))
    await rig.parts.registry.delete_topic("orders", policy=DeletionPolicy.DELETE)
    view, _ = await subscriptions.put("billing", subscription("orders", paused=True))
    assert conditions(view)["TopicResolved"] == ("False", "TopicNotFound")
    assert rig.dispatcher.wish("billing").halt == "paused"


async def test_a_named_dead_letter_topic_is_used(rig: Rig) -> None:
    await rig.topic("morgue")
    spec = subscription("orders", deadLetter={"topicRef": {"name": "morgue"}})
    await rig.catalogue.subscriptions.put("billing", spec)
    assert rig.dispatcher.wish("billing").dead_letter_topic == "morgue"
    await rig.parts.registry.delete_topic("morgue", policy=DeletionPolicy.DELETE)
    await rig.settle()
    told = conditions(rig.catalogue.subscriptions.describe("billing"))
    assert told["TopicResolved"] == ("False", "DeadLetterTopicNotFound")


async def test_pages_go_by_name_and_are_narrowed_by_topic(rig: Rig) -> None:
    await rig.topic("payments")
    subscriptions = rig.catalogue.subscriptions
    for name, topic in (("c", "orders"), ("a", "payments"), ("b", "orders"), ("b.x", "orders")):
        await subscriptions.put(name, subscription(topic))

    def names(**look: Any) -> list[str]:
        return [view.metadata.name for view in subscriptions.page(**look)]

    assert names() == ["a", "b", "b.x", "c"]
    assert names(limit=2) == ["a", "b"]
    assert names(after="b/default") == ["b.x", "c"]
    assert names(after="b") == ["b.x", "c"]
    assert names(keep=subscriptions.matching(topic="orders"), limit=2) == ["b", "b.x"]
    assert names(keep=subscriptions.matching(name_prefix="b")) == ["b", "b.x"]
    await subscriptions.put("d", pushed("orders"))
    assert names(keep=subscriptions.matching(mode=Mode.PUSH)) == ["d"]
    assert names(keep=subscriptions.matching(mode=Mode.PULL)) == ["a", "b", "b.x", "c"]
    assert names(keep=subscriptions.matching(channel="hooks", topic="orders")) == ["d"]
    assert names(keep=subscriptions.matching(channel="hooks", topic="payments")) == []
    assert names(namespace="elsewhere") == []


async def test_the_filter_of_a_served_subscription_keeps_its_counts(rig: Rig) -> None:
    subscriptions = rig.catalogue.subscriptions
    await subscriptions.put("billing", subscription("orders", filter="key == 'a'"))
    before = rig.dispatcher.wish("billing").filter
    await subscriptions.put("billing", subscription("orders", filter="key == 'a'", rateLimit=2))
    assert rig.dispatcher.wish("billing").filter is before
    await subscriptions.put("billing", subscription("orders", filter="key == 'b'"))
    assert rig.dispatcher.wish("billing").filter is not before


async def test_a_start_by_time_is_understood(rig: Rig) -> None:
    spec = subscription("orders", start={"from": "timestamp", "value": "1970-01-01T00:00:07Z"})
    await rig.catalogue.subscriptions.put("billing", spec)
    assert rig.dispatcher.wish("billing").start.timestamp_ms == 7_000
    await rig.catalogue.subscriptions.put(
        "latest", subscription("orders", start={"from": "latest"})
    )
    assert rig.dispatcher.wish("latest").start.origin is StartFrom.LATEST
