"""Channels: who may name one, when it may go, and what pausing and 410 do."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ibrik_api.errors import Refusal
from ibrik_api.resources.channel import Circuit
from ibrik_api.resources.destination import Destination
from tests.broker.registrations.rig import (
    HOOK,
    Rig,
    channel,
    conditions,
    open_catalogue,
    pushed,
    resource,
)


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with open_catalogue(tmp_path) as opened:
        await opened.topic("orders")
        yield opened


async def test_a_channel_is_served_and_described(rig: Rig) -> None:
    view, is_new = await rig.catalogue.channels.put("hooks", channel())
    assert is_new
    assert rig.dispatcher.channel("hooks").destination == channel()
    status = view.status
    assert status is not None
    assert (status.kind, status.destination_host, status.destination_port) == (
        "http",
        "127.0.0.1",
        9000,
    )
    assert (status.circuit, status.subscriptions) == (Circuit.CLOSED, 0)
    assert status.paused_until == "2026-11-27T10:00:01.000Z"
    assert conditions(view) == {
        "Ready": ("True", "Ready"),
        "Resolved": ("True", "AsWished"),
        "CredentialsValid": ("True", "AsWished"),
        "MetadataStored": ("True", "AsWished"),
    }


async def test_the_same_again_is_no_change(rig: Rig) -> None:
    channels = rig.catalogue.channels
    await channels.create("hooks", channel())
    _, is_new = await channels.create("hooks", channel())
    assert not is_new
    assert rig.calls() == [("put_channel", "hooks")]
    with pytest.raises(Refusal) as caught:
        await channels.create("hooks", channel(timeout="30s"))
    assert caught.value.code == "channel-exists"
    with pytest.raises(Refusal) as caught:
        await channels.create("bad", channel(http=HOOK | {"headers": {"Host": "x"}}))
    assert caught.value.code == "invalid-destination"
    with pytest.raises(Refusal) as caught:
        await channels.put("Bad Name", channel())
    assert caught.value.code == "invalid-name"


async def test_a_channel_in_use_is_kept_and_its_users_are_named(rig: Rig) -> None:
    channels, subscriptions = rig.catalogue.channels, rig.catalogue.subscriptions
    view, _ = await channels.put("hooks", channel())
    for name in ("b", "a"):
        await subscriptions.put(name, pushed("orders"))
    with pytest.raises(Refusal, match="named by the subscriptions a, b") as caught:
        await channels.delete("hooks")
    assert (caught.value.code, caught.value.facts["subscriptions"]) == (
        "channel-in-use",
        ["a", "b"],
    )
    described = channels.describe("hooks").status
    assert described is not None
    assert described.subscriptions == 2
    await subscriptions.delete("a")  # detached: it names nothing now
    await subscriptions.put("b", pushed("orders", to="hooks", deletionPolicy="Delete"))
    await subscriptions.delete("b")
    rig.calls()
    with pytest.raises(Refusal) as caught:
        await channels.delete("hooks", if_match=99)
    assert caught.value.code == "precondition-failed"
    await channels.delete("hooks", if_match=int(view.metadata.resource_version or 0))
    assert rig.calls() == [("drop_channel", "hooks")]
    with pytest.raises(Refusal) as caught:
        channels.describe("hooks")
    assert caught.value.code == "unknown-channel"


async def test_a_changed_destination_reaches_the_dispatcher_alone(rig: Rig) -> None:
    await rig.catalogue.channels.put("hooks", channel())
    await rig.catalogue.subscriptions.put("billing", pushed("orders"))
    rig.calls()
    await rig.catalogue.channels.put("hooks", channel(timeout="30s"))
    assert rig.calls() == [("put_channel", "hooks")]


async def test_only_a_channel_for_all_is_named_from_another_namespace(rig: Rig) -> None:
    await rig.apply(resource("Channel", "hooks", http=HOOK))
    spec = pushed("orders").model_copy(
        update={
            "channel_ref": pushed("orders").channel_ref.model_copy(  # type: ignore[union-attr]
                update={"namespace": "shop"}
            )
        }
    )
    with pytest.raises(Refusal, match=r"allowedNamespaces to All") as caught:
        await rig.catalogue.subscriptions.put("billing", spec)
    assert caught.value.code == "invalid-resource"
    await rig.apply(resource("Channel", "hooks", http=HOOK, allowedNamespaces="All"))
    view, _ = await rig.catalogue.subscriptions.put("billing", spec)
    assert view.status is not None
    assert view.status.destination == "channel/shop/hooks"
    assert rig.dispatcher.wish("billing").channel_id is not None
    # Taken back, it holds for those that name it already.
    await rig.apply(resource("Channel", "hooks", http=HOOK))
    assert rig.dispatcher.wish("billing").channel_id is None
    told = conditions(rig.catalogue.subscriptions.describe("billing"))
    assert told["DestinationResolved"] == ("False", "DestinationNotAllowed")


async def test_a_paused_channel_is_paused_after_a_restart(tmp_path: Path) -> None:
    async with open_catalogue(tmp_path) as rig:
        await rig.catalogue.channels.put("hooks", channel())
        view = await rig.catalogue.channels.pause("hooks")
        assert view.status is not None
        assert view.status.circuit is Circuit.PAUSED
    async with open_catalogue(tmp_path) as rig:
        assert rig.dispatcher.channel("hooks").halt == "paused"
        await rig.catalogue.channels.resume("hooks")
        assert rig.dispatcher.channel("hooks").halt is None


async def test_a_channel_that_is_gone_stays_so_until_it_is_resumed(tmp_path: Path) -> None:
    async with open_catalogue(tmp_path) as rig:
        await rig.catalogue.channels.put("hooks", channel())
        await rig.dispatcher.on_halt("channel", rig.dispatcher.channel("hooks").id, "gone")
    async with open_catalogue(tmp_path) as rig:
        view = rig.catalogue.channels.describe("hooks")
        assert view.status is not None
        assert view.status.circuit is Circuit.GONE
        await rig.catalogue.channels.resume("hooks")
        assert rig.dispatcher.channel("hooks").halt is None


async def test_what_stops_an_inline_destination_is_kept_with_the_subscription(
    tmp_path: Path,
) -> None:
    spec = {"mode": "push", "topicRef": {"name": "orders"}, "push": {"http": HOOK}}
    async with open_catalogue(tmp_path) as rig:
        await rig.topic("orders")
        await rig.apply(
            resource("Subscription", "billing", metadata={"namespace": "default"}, **spec)
        )
        await rig.dispatcher.on_halt("channel", rig.dispatcher.wish("billing").id, "gone")
    async with open_catalogue(tmp_path) as rig:
        assert rig.dispatcher.channel("billing").halt == "gone"
        assert rig.dispatcher.wish("billing").halt is None
        await rig.catalogue.subscriptions.resume("billing")
        assert rig.dispatcher.channel("billing").halt is None


async def test_a_gap_that_pauses_is_kept(tmp_path: Path) -> None:
    async with open_catalogue(tmp_path) as rig:
        await rig.topic("orders")
        await rig.catalogue.channels.put("hooks", channel())
        await rig.catalogue.subscriptions.put("billing", pushed("orders", onGap="pause"))
        await rig.dispatcher.on_halt("subscription", rig.dispatcher.wish("billing").id, "gap")
        assert rig.dispatcher.wish("billing").halt == "gap"
        await rig.dispatcher.on_halt("subscription", "deleted meanwhile", "gap")
    async with open_catalogue(tmp_path) as rig:
        assert rig.dispatcher.wish("billing").halt == "gap"


async def test_missing_secrets_are_told_and_looked_for_again(tmp_path: Path) -> None:
    missing: list[str] = ["the file token cannot be read. Put it there."]

    def fault(_destination: Destination, _namespace: str) -> str | None:
        return missing[0] if missing else None

    async with open_catalogue(tmp_path, credential_fault=fault) as rig:
        spec = channel(auth={"bearer": {"secretRef": {"file": "token"}}})
        view, _ = await rig.catalogue.channels.put("hooks", spec)
        plain, _ = await rig.catalogue.channels.put("plain", channel())
        assert conditions(view)["CredentialsValid"] == ("False", "CredentialsMissing")
        assert conditions(view)["Ready"] == ("False", "CredentialsMissing")
        assert conditions(plain)["Ready"] == ("True", "Ready")
        missing.clear()
        await rig.catalogue.channels.check_all_credentials()
        assert conditions(rig.catalogue.channels.describe("hooks"))["Ready"] == ("True", "Ready")


async def test_pages_are_narrowed_by_kind_and_host(rig: Rig) -> None:
    channels = rig.catalogue.channels
    await channels.put("hooks", channel())
    await channels.put("machine", channel(http=None, tcp={"host": "plc", "port": 7070}))
    matching = channels.matching
    for keep, names in (
        (matching(kind="tcp"), ["machine"]),
        (matching(host="127.0.0.1"), ["hooks"]),
        (matching(name_prefix="ma"), ["machine"]),
        (matching(), ["hooks", "machine"]),
    ):
        assert [view.metadata.name for view in channels.page(keep=keep)] == names
