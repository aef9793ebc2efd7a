"""A database that fails in the middle of a change: refused, and mended by a retry or by itself."""

from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from ibrik_api.errors import Refusal
from ibrik_broker.metadata.deliveries import FlowState
from ibrik_broker.metadata.resources import ResourceKind, ResourceRows
from ibrik_broker.registrations.collection import stored_document
from tests.broker.registrations.rig import (
    Rig,
    channel,
    conditions,
    open_catalogue,
    pushed,
    resource,
    subscription,
)
from tests.support.registry import NOW_MS

DOWN = Refusal("metadata-unavailable", "The metadata database does not answer.")


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with open_catalogue(tmp_path) as opened:
        await opened.topic("orders")
        await opened.catalogue.channels.put("hooks", channel())
        opened.calls()
        yield opened


async def unavailable(attempt: Any) -> None:
    with pytest.raises(Refusal) as caught:
        await attempt
    assert caught.value.code == "metadata-unavailable"


async def test_without_a_database_everything_is_refused_and_nothing_half_done(rig: Rig) -> None:
    channels, subscriptions = rig.catalogue.channels, rig.catalogue.subscriptions
    await subscriptions.put("billing", pushed("orders"))
    rig.calls()
    for table in ("channels", "subscriptions"):
        await rig.execute(f"ALTER TABLE {table} RENAME TO {table}_away")
    for attempt in (
        channels.put("new", channel()),
        channels.put("hooks", channel(timeout="1s")),
        channels.pause("hooks"),
        subscriptions.put("new", subscription("orders")),
        subscriptions.put("billing", pushed("orders", rateLimit=1)),
        subscriptions.pause("billing"),
        subscriptions.delete("billing"),
        rig.catalogue.endpoints.subscribe("orders", "http://127.0.0.1:1/"),
        rig.apply(resource("Channel", "x", tcp={"host": "plc", "port": 1})),
        rig.dispatcher.on_halt("channel", rig.dispatcher.channel("hooks").id, "gone"),
    ):
        await unavailable(attempt)
    assert rig.calls() == []
    for table in ("channels", "subscriptions"):
        await rig.execute(f"ALTER TABLE {table}_away RENAME TO {table}")
    for attempt in (
        channels.put("hooks", channel(timeout="1s")),
        subscriptions.put("billing", pushed("orders", rateLimit=1)),
        subscriptions.delete("billing"),
    ):
        await attempt
    assert rig.calls() == [("put_channel", "hooks"), ("change", "billing"), ("close", "billing")]


async def test_an_opening_that_failed_is_finished_by_the_same_wish(rig: Rig) -> None:
    subscriptions = rig.catalogue.subscriptions
    rig.dispatcher.refusal = DOWN
    await unavailable(subscriptions.put("billing", subscription("orders")))
    view = subscriptions.describe("billing")
    assert conditions(view)["DataPlaneReady"] == ("False", "NotConfirmed")
    assert view.status is not None
    assert view.status.state == "stopped"
    rig.dispatcher.refusal = None
    view, is_new = await subscriptions.put("billing", subscription("orders"))
    assert not is_new
    assert conditions(view)["Ready"] == ("True", "Ready")
    # It may have been open half way.
    assert [call for call, _ in rig.calls()] == ["open", "close", "open"]


async def test_what_failed_is_tried_again_without_another_wish(rig: Rig) -> None:
    subscriptions = rig.catalogue.subscriptions
    await subscriptions.put("one", subscription("orders", deletionPolicy="Delete"))
    await subscriptions.put("two", pushed("orders"))
    rig.dispatcher.refusal = DOWN
    await unavailable(subscriptions.delete("one"))
    await unavailable(subscriptions.put("two", pushed("orders", rateLimit=4)))
    await unavailable(rig.catalogue.channels.put("hooks", channel(timeout="2s")))
    await rig.settle()
    assert rig.dispatcher.forgotten == []
    rig.dispatcher.refusal = None
    await rig.settle()
    assert len(rig.dispatcher.forgotten) == 1
    assert rig.dispatcher.wish("two").rate == 4
    assert rig.dispatcher.channel("hooks").destination.timeout_ms == 2_000
    rig.calls()
    await rig.settle()
    assert rig.calls() == []


async def test_what_was_not_closed_yet_is_closed_before_it_is_opened_again(rig: Rig) -> None:
    subscriptions = rig.catalogue.subscriptions
    await subscriptions.put("billing", subscription("orders"))
    rig.dispatcher.refusal = DOWN
    await unavailable(subscriptions.delete("billing"))
    rig.dispatcher.refusal = None
    rig.calls()
    await subscriptions.put("billing", subscription("orders"))
    assert [call for call, _ in rig.calls()] == ["close", "open"]


async def test_a_start_that_is_refused_for_good_makes_no_row(rig: Rig) -> None:
    rig.dispatcher.refusal = Refusal("offset-above-end", "Offset 9 is not there yet.")
    spec = subscription("orders", start={"from": "offset", "value": "9"})
    with pytest.raises(Refusal):
        await rig.catalogue.subscriptions.put("billing", spec)
    rig.dispatcher.refusal = None
    rows = ResourceRows(rig.parts.database, ResourceKind.SUBSCRIPTION)
    assert await rows.all() == []
    _, is_new = await rig.catalogue.subscriptions.put("billing", subscription("orders"))
    assert is_new


async def test_a_row_that_changed_behind_the_broker_is_read_anew(rig: Rig) -> None:
    rows = ResourceRows(rig.parts.database, ResourceKind.CHANNEL)
    (row,) = await rows.all()
    await rows.update(row, now_ms=NOW_MS, resource_uid="elsewhere")
    with pytest.raises(Refusal) as caught:
        await rig.catalogue.channels.put("hooks", channel(timeout="3s"))
    assert caught.value.code == "precondition-failed"
    await rig.catalogue.channels.put("hooks", channel(timeout="3s"))


async def test_a_halt_beside_a_change_is_no_conflict(rig: Rig) -> None:
    rows = ResourceRows(rig.parts.database, ResourceKind.CHANNEL)
    (row,) = await rows.all()
    await rows.set_halt(row.id, "gone", NOW_MS)
    await rig.catalogue.channels.put("hooks", channel(timeout="3s"))
    assert rig.dispatcher.channel("hooks").halt == "gone"


async def test_what_was_made_though_its_answer_was_lost_is_found_by_the_retry(
    tmp_path: Path,
) -> None:
    async with open_catalogue(tmp_path) as rig:
        await rig.catalogue.channels.put("hooks", channel())
        await rig.catalogue.channels.put("other", channel())
    # Not loaded: the database knows of two channels that the broker never heard of.
    async with open_catalogue(tmp_path, load=False) as rig:
        await rig.catalogue.channels.put("hooks", channel())
        assert rig.calls() == [("put_channel", "hooks")]
        with pytest.raises(Refusal, match="GET /v1/channels/other") as caught:
            await rig.catalogue.channels.put("other", channel(timeout="9s"))
        assert caught.value.code == "channel-exists"
        await rig.settle()
        assert rig.calls() == [("put_channel", "other")]
        await rig.catalogue.channels.put("other", channel(timeout="9s"))


async def test_what_was_changed_though_its_answer_was_lost_is_carried_out(rig: Rig) -> None:
    rows = ResourceRows(rig.parts.database, ResourceKind.CHANNEL)
    (row,) = await rows.all()
    wish = channel(timeout="7s")
    await rows.update(row, now_ms=NOW_MS, spec=stored_document(wish))
    with pytest.raises(Refusal):
        await rig.catalogue.channels.put("hooks", wish)
    await rig.catalogue.channels.put("hooks", wish)
    assert rig.dispatcher.channel("hooks").destination == wish


async def test_what_was_deleted_though_its_answer_was_lost_can_be_deleted(rig: Rig) -> None:
    rows = ResourceRows(rig.parts.database, ResourceKind.CHANNEL)
    (row,) = await rows.all()
    await rows.delete(row)
    await rig.catalogue.channels.delete("hooks")
    assert rig.dispatcher.channels == {}


async def test_a_row_of_another_version_is_kept_told_and_replaceable(tmp_path: Path) -> None:
    async with open_catalogue(tmp_path) as rig:
        await rig.topic("orders")
        await rig.catalogue.subscriptions.put("billing", subscription("orders"))
        await rig.catalogue.subscriptions.put("other", subscription("orders"))
        async with rig.parts.database.transaction() as connection:
            await connection.execute(
                text("UPDATE subscriptions SET spec = '{\"later\": 1}' WHERE name = 'billing'")
            )
    async with open_catalogue(tmp_path) as rig:
        subscriptions = rig.catalogue.subscriptions
        assert [view.metadata.name for view in subscriptions.page()] == ["other"]
        await subscriptions.put("billing", subscription("orders"))
        assert [view.metadata.name for view in subscriptions.page()] == ["billing", "other"]


async def test_the_states_that_were_read_at_the_start_are_handed_over(tmp_path: Path) -> None:
    async with open_catalogue(tmp_path) as rig:
        await rig.topic("orders")
        for name in ("one", "two"):
            await rig.catalogue.subscriptions.put(name, subscription("orders"))
        identity = rig.dispatcher.wish("one").id
    state = FlowState()
    async with open_catalogue(tmp_path, states={identity: state}) as rig:
        assert rig.dispatcher.states["one"] is state
        assert rig.dispatcher.states["two"] == FlowState()


async def test_only_the_first_attempt_knows_that_there_is_no_state(tmp_path: Path) -> None:
    async with open_catalogue(tmp_path) as rig:
        await rig.topic("orders")
        subscriptions = rig.catalogue.subscriptions
        await subscriptions.put("one", subscription("orders"))
        assert rig.dispatcher.states["one"] == FlowState()
        rig.dispatcher.refusal = DOWN
        with pytest.raises(Refusal):
            await subscriptions.put("two", subscription("orders"))
        rig.dispatcher.refusal = None
        await subscriptions.put("two", subscription("orders"))
        assert rig.dispatcher.states["two"] is None


@pytest.mark.parametrize("table", ["channels", "subscriptions"])
async def test_an_endpoint_that_half_registered_or_half_left_is_mended_by_a_retry(
    rig: Rig, table: str
) -> None:
    endpoints, url = rig.catalogue.endpoints, "http://127.0.0.1:1/"
    break_it = "BEGIN SELECT json('{'); END"
    await rig.execute(f"CREATE TRIGGER no_insert BEFORE INSERT ON {table} {break_it}")
    await unavailable(endpoints.subscribe("orders", url))
    assert [wish.name for wish in rig.dispatcher.channels.values()] == ["hooks"]
    await rig.execute("DROP TRIGGER no_insert")
    made = await endpoints.subscribe("orders", url)
    assert made.created
    await rig.execute(f"CREATE TRIGGER no_delete BEFORE DELETE ON {table} {break_it}")
    name = made.subscription.metadata.name
    await unavailable(endpoints.unsubscribe(name))
    await rig.execute("DROP TRIGGER no_delete")
    with suppress(Refusal):
        await endpoints.unsubscribe(name)
    assert rig.dispatcher.subscriptions == {}
    assert [wish.name for wish in rig.dispatcher.channels.values()] == ["hooks"]
