"""Desired resources of all kinds: order, outcomes, generations, incarnations, adoption."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ibrik_api.desired import ApplyResult, Outcome
from ibrik_api.errors import Refusal
from ibrik_broker.metadata.resources import ResourceState
from tests.broker.registrations.rig import (
    DELETED,
    HOOK,
    Rig,
    channel,
    conditions,
    open_catalogue,
    pushed,
    resource,
    subscription,
)


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with open_catalogue(tmp_path) as opened:
        yield opened


def billing(*, metadata: Any = None, topic: str = "orders", **spec: Any) -> dict[str, Any]:
    return resource("Subscription", "billing", metadata=metadata, topicRef={"name": topic}, **spec)


def shown(outcome: Outcome) -> tuple[str, ApplyResult, str | None]:
    return outcome.name, outcome.result, outcome.code


def reasons(outcome: Outcome) -> dict[str, str]:
    assert outcome.observed is not None
    return {c["type"]: c["reason"] for c in outcome.observed["conditions"]}


async def test_topics_come_first_whatever_the_order_of_the_list(rig: Rig) -> None:
    outcomes = await rig.apply(
        billing(mode="push", channelRef={"name": "hooks"}),
        resource("Channel", "hooks", http=HOOK),
        resource("Topic", "orders"),
    )
    assert [shown(o) for o in outcomes] == [
        ("billing", ApplyResult.APPLIED, None),
        ("hooks", ApplyResult.APPLIED, None),
        ("orders", ApplyResult.APPLIED, None),
    ]
    assert reasons(outcomes[0])["Ready"] == "Ready"
    wish = rig.dispatcher.wish("billing")
    assert (wish.topic, wish.channel_id) == ("orders", rig.dispatcher.channel("hooks").id)


async def test_what_is_not_there_yet_is_waited_for(rig: Rig) -> None:
    (waits,) = await rig.apply(billing(mode="push", channelRef={"name": "hooks"}))
    assert waits.result is ApplyResult.APPLIED
    assert reasons(waits)["TopicResolved"] == "TopicNotFound"
    assert reasons(waits)["DestinationResolved"] == "DestinationNotFound"
    assert rig.dispatcher.wish("billing").channel_id is None
    await rig.apply(resource("Channel", "hooks", http=HOOK))
    assert rig.dispatcher.wish("billing").channel_id is not None
    await rig.apply(resource("Topic", "orders", topicName="shop-orders"))
    await rig.settle()
    assert rig.dispatcher.wish("billing").topic == "shop-orders"
    view = rig.catalogue.subscriptions.describe("billing", "shop")
    assert conditions(view)["Ready"] == ("True", "Ready")


async def test_a_resource_does_not_name_topics_of_other_namespaces(rig: Rig) -> None:
    await rig.topic("orders")
    (waits,) = await rig.apply(billing())
    assert reasons(waits)["TopicResolved"] == "TopicNotFound"
    (found,) = await rig.apply(billing(metadata={"namespace": "default"}))
    assert reasons(found)["TopicResolved"] == "AsWished"


async def test_a_deleted_channel_leaves_its_subscriptions_waiting(rig: Rig) -> None:
    hooks = resource("Channel", "hooks", http=HOOK)
    await rig.apply(resource("Topic", "orders"), hooks)
    await rig.apply(billing(mode="push", channelRef={"name": "hooks"}))
    rig.calls()
    hooks["metadata"]["deletionTimestamp"] = DELETED
    for _ in range(2):
        (gone,) = await rig.apply(hooks)
        assert gone.result is ApplyResult.DELETED
    assert rig.calls() == [("change", "billing"), ("drop_channel", "hooks")]
    view = rig.catalogue.subscriptions.describe("billing", "shop")
    assert conditions(view)["DestinationResolved"] == ("False", "DestinationNotFound")
    assert rig.dispatcher.wish("billing").channel_id is None


async def test_the_same_again_is_unchanged_and_a_change_is_applied(rig: Rig) -> None:
    await rig.apply(resource("Topic", "orders"))
    for document in (
        billing(metadata={"generation": 1}),
        resource("Channel", "hooks", metadata={"generation": 1}, http=HOOK),
    ):
        assert (await rig.apply(document))[0].result is ApplyResult.APPLIED
        rig.calls()
        assert (await rig.apply(document))[0].result is ApplyResult.UNCHANGED
        document["metadata"]["generation"] = 2
        (recorded,) = await rig.apply(document)
        assert recorded.result is ApplyResult.UNCHANGED
        assert recorded.observed is not None
        assert recorded.observed["observedGeneration"] == 2
        assert rig.calls() == []
    (changed,) = await rig.apply(billing(metadata={"generation": 3}, rateLimit=7))
    assert changed.result is ApplyResult.APPLIED
    assert rig.calls() == [("change", "billing")]


async def test_generations_and_incarnations_are_those_of_topics(rig: Rig) -> None:
    await rig.apply(resource("Topic", "orders"))
    await rig.apply(billing(metadata={"uid": "old", "generation": 9}, rateLimit=1))
    (late,) = await rig.apply(billing(metadata={"uid": "old", "generation": 8}))
    assert (late.result, late.code) == (ApplyResult.REFUSED, "stale-generation")
    (anew,) = await rig.apply(billing(metadata={"uid": "new", "generation": 1}))
    assert anew.result is ApplyResult.ADOPTED
    stale = billing(metadata={"uid": "old", "deletionTimestamp": DELETED})
    assert (await rig.apply(stale))[0].result is ApplyResult.DELETED
    assert rig.dispatcher.wish("billing").rate is None


@pytest.mark.parametrize("policy", ["Retain", "Delete"])
async def test_a_deletion_timestamp_deletes_by_policy(rig: Rig, policy: str) -> None:
    await rig.apply(resource("Topic", "orders"), billing(deletionPolicy=policy))
    wish = billing(deletionPolicy=policy, metadata={"deletionTimestamp": DELETED})
    for _ in range(2):
        assert (await rig.apply(wish))[0].result is ApplyResult.DELETED
    entries = list(rig.catalogue.subscriptions.entries)
    assert [e.row.state for e in entries] == (
        [ResourceState.DETACHED] if policy == "Retain" else []
    )
    assert rig.dispatcher.subscriptions == {}
    assert len(rig.dispatcher.forgotten) == (policy == "Delete")


async def test_a_detached_subscription_is_adopted_with_its_cursor(rig: Rig) -> None:
    await rig.apply(resource("Topic", "orders"), billing(metadata={"uid": "u1", "generation": 7}))
    identity = rig.dispatcher.wish("billing").id
    await rig.apply(billing(metadata={"uid": "u1", "deletionTimestamp": DELETED}))
    (other,) = await rig.apply(billing(topic="payments", metadata={"uid": "u2", "generation": 1}))
    assert other.code == "immutable-field"
    (back,) = await rig.apply(billing(metadata={"uid": "u2", "generation": 1}))
    assert back.result is ApplyResult.ADOPTED
    assert rig.dispatcher.wish("billing").id == identity
    assert rig.dispatcher.forgotten == []


async def test_a_broken_spec_can_still_be_deleted_by_the_stored_policy(rig: Rig) -> None:
    await rig.apply(resource("Topic", "orders"), billing(deletionPolicy="Delete"))
    broken = billing(mode="carrier-pigeon", metadata={"deletionTimestamp": DELETED})
    for _ in range(2):
        assert (await rig.apply(broken))[0].result is ApplyResult.DELETED
    assert len(rig.catalogue.subscriptions.entries) == 0


async def test_one_broken_item_does_not_stop_the_others(rig: Rig) -> None:
    outcomes = await rig.apply(
        {"apiVersion": "ibrik.dev/v1beta1", "kind": "Subscription"},
        billing(mode="pigeon"),
        resource("Channel", "c", tcp={"host": "plc", "port": 7070}),
        resource("Channel", "d", http=HOOK, tcp={"host": "plc", "port": 7070}),
        resource("BrokerPool", "default"),
        {"apiVersion": [], "kind": [], "metadata": {"name": {}, "generation": "x"}},
        resource("Topic", "orders", replicas=3),
        resource("Topic", "t"),
        {**resource("Channel", "e", http=HOOK), "apiVersion": "v1"},
    )
    assert [shown(o) for o in outcomes] == [
        ("", ApplyResult.REFUSED, "invalid-resource"),
        ("billing", ApplyResult.REFUSED, "invalid-resource"),
        ("c", ApplyResult.APPLIED, None),
        ("d", ApplyResult.REFUSED, "invalid-destination"),
        ("default", ApplyResult.REFUSED, "unsupported-kind"),
        ("", ApplyResult.REFUSED, "unsupported-kind"),
        ("orders", ApplyResult.REFUSED, "unsupported-field"),
        ("t", ApplyResult.APPLIED, None),
        ("e", ApplyResult.REFUSED, "unsupported-kind"),
    ]
    assert all(o.detail for o in outcomes if o.code)
    assert outcomes[4].detail is not None
    assert "Topic and Channel and Subscription" in outcomes[4].detail


async def test_what_comes_from_a_resource_is_read_only_over_http(rig: Rig) -> None:
    place = {"namespace": "default"}
    await rig.apply(
        resource("Topic", "orders", metadata=place),
        resource("Channel", "hooks", metadata=place, http=HOOK),
        billing(metadata=place),
    )
    channels, subscriptions = rig.catalogue.channels, rig.catalogue.subscriptions
    for attempt in (
        channels.put("hooks", channel(timeout="9s")),
        channels.delete("hooks"),
        subscriptions.put("billing", subscription("orders", rateLimit=1)),
        subscriptions.delete("billing"),
        rig.catalogue.endpoints.unsubscribe("billing"),
    ):
        with pytest.raises(Refusal, match=r"comes from \w+ default/\w+") as caught:
            await attempt
        assert caught.value.code == "managed-by-resource"
    view = await subscriptions.pause("billing")  # the wish stays as it is
    assert view.status is not None
    assert view.status.managed_by == "Subscription default/billing"


async def test_what_was_made_over_http_is_taken_over(rig: Rig) -> None:
    await rig.topic("orders")
    await rig.catalogue.channels.put("hooks", channel())
    await rig.catalogue.subscriptions.put("billing", pushed("orders"))
    (taken,) = await rig.apply(
        billing(metadata={"namespace": "default"}, mode="push", channelRef={"name": "hooks"})
    )
    assert taken.result is ApplyResult.UNCHANGED
    assert taken.observed is not None
    assert taken.observed["managedBy"] == "Subscription default/billing"


async def test_what_was_applied_is_there_after_a_restart(tmp_path: Path) -> None:
    documents = (
        resource("Topic", "orders", metadata={"uid": "t", "generation": 2}),
        resource("Channel", "hooks", metadata={"uid": "c", "generation": 3}, http=HOOK),
        billing(metadata={"uid": "s", "generation": 4}, mode="push", channelRef={"name": "hooks"}),
    )
    async with open_catalogue(tmp_path) as rig:
        await rig.apply(*documents)
    async with open_catalogue(tmp_path) as rig:
        assert rig.calls() == [("put_channel", "hooks"), ("open", "billing")]
        again = await rig.apply(*documents)
        assert [o.result for o in again] == [ApplyResult.UNCHANGED] * 3


async def test_a_second_push_on_a_queue_topic_is_refused_by_name(rig: Rig) -> None:
    push = {"topicRef": {"name": "jobs"}, "mode": "push", "push": {"http": HOOK}}
    outcomes = await rig.apply(
        resource("Topic", "jobs", dispatch="queue"),
        resource("Subscription", "one", **push),
        resource("Subscription", "two", **push),
    )
    assert [shown(o) for o in outcomes[1:]] == [
        ("one", ApplyResult.APPLIED, None),
        ("two", ApplyResult.REFUSED, "shared-needs-pull"),
    ]


async def test_a_topic_of_the_same_namespace_is_also_found_by_its_name_at_the_broker(
    rig: Rig,
) -> None:
    await rig.apply(resource("Topic", "orders", topicName="shop-orders"))
    (found,) = await rig.apply(billing(topic="shop-orders"))
    assert reasons(found)["TopicResolved"] == "AsWished"


async def test_the_same_again_finishes_what_failed(rig: Rig) -> None:
    await rig.apply(resource("Topic", "orders"))
    rig.dispatcher.refusal = Refusal("metadata-unavailable", "The database does not answer.")
    with pytest.raises(Refusal):
        await rig.apply(billing(metadata={"generation": 1}))
    rig.dispatcher.refusal = None
    (again,) = await rig.apply(billing(metadata={"generation": 1}))
    assert again.result is ApplyResult.UNCHANGED
    assert reasons(again)["Ready"] == "Ready"
    assert rig.dispatcher.wish("billing").topic == "orders"
