"""Where a subscription stands, how far it is behind, and moving it."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ibrik_api.resources.subscription import Mode
from ibrik_api.timestamps import format_timestamp
from tests.broker.http.consumers import ConsumerRig, running_consumers
from tests.broker.http.rig import Reply


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[ConsumerRig]:
    async with running_consumers(tmp_path) as rig:
        await rig.subscribe()
        yield rig


async def replace(rig: ConsumerRig, body: Any, if_match: str | None = None) -> Reply:
    headers = {} if if_match is None else {"If-Match": if_match}
    path = "/v1/subscriptions/billing/offsets"
    return await rig.call("PUT", path, body, headers=headers)


async def test_the_lag_counts_what_waits_what_is_leased_and_what_retries(rig: ConsumerRig) -> None:
    idle = await rig.look("lag")
    assert (idle["backlog"], idle["oldest"], idle["state"]) == (0, None, "active")
    await rig.publish_numbers(5)
    one, two, three = await rig.lease(max=3)
    await rig.ack(two)
    await rig.act("nack", {"leases": [three["lease"]], "delay": "1h"})
    lag = await rig.look("lag")
    assert (lag["subscription"], lag["topic"], lag["state"]) == ("billing", "orders", "retrying")
    assert (lag["backlog"], lag["in_flight"], lag["retrying"]) == (4, 1, 1)
    assert lag["oldest"] <= one["timestamp"]
    (partition,) = lag["partitions"]
    assert partition == {
        "partition": 0,
        "next_offset": 0,
        "earliest": 0,
        "latest": 5,
        "backlog": 4,
        "in_flight": 1,
        "retrying": 1,
    }


async def test_a_seek_to_the_begin_delivers_everything_again(rig: ConsumerRig) -> None:
    await rig.publish_numbers(3)
    await rig.ack(*await rig.lease())
    dry = (await rig.act("seek", {"to": {"from": "earliest"}, "dry_run": True})).json
    expected = [{"partition": 0, "from": 3, "to": 0, "redelivered": 3, "skipped": 0}]
    assert dry == {"epoch": 0, "dry_run": True, "partitions": expected}
    assert await rig.lease() == []
    moved = (await rig.act("seek", {"to": {"from": "earliest"}})).json
    assert moved == {"epoch": 1, "dry_run": False, "partitions": expected}
    assert [message["value"] for message in await rig.lease()] == [0, 1, 2]


async def test_a_seek_to_the_end_skips_what_waits(rig: ConsumerRig) -> None:
    await rig.publish_numbers(3)
    moved = (await rig.act("seek", {"to": {"from": "latest"}})).json
    assert moved["partitions"][0]["skipped"] == 3
    assert await rig.lease() == []
    await rig.publish_numbers(1, first=3)
    assert [message["value"] for message in await rig.lease()] == [3]


async def test_a_seek_makes_leases_in_hand_stale(rig: ConsumerRig) -> None:
    await rig.publish_numbers(2)
    one, _two = await rig.lease()
    await rig.act("seek", {"to": {"offset": 1}})
    assert [stale["code"] for stale in (await rig.ack(one))["stale"]] == ["lease-expired"]
    assert [message["offset"] for message in await rig.lease()] == [1]


async def test_a_seek_to_a_time_finds_the_first_message_from_then_on(rig: ConsumerRig) -> None:
    await rig.publish_numbers(1)
    (message,) = (await rig.read()).json["messages"]
    await rig.ack(*await rig.lease())
    moved = (await rig.act("seek", {"to": {"timestamp": message["timestamp"]}})).json
    assert moved["partitions"][0]["to"] == 0
    later = {"to": {"timestamp": format_timestamp(4_000_000_000_000)}}
    assert (await rig.act("seek", later)).json["partitions"][0]["to"] == 1


async def test_only_the_partitions_that_are_named_move(rig: ConsumerRig) -> None:
    await rig.create("many", partitions=3)
    await rig.subscribe("wide", topic="many")
    for partition in range(3):
        await rig.publish(b"1", topic="many", Ibrik_Partition=str(partition))
    body = {"to": {"offsets": [1, 1]}, "partitions": [2, 0]}
    moved = (await rig.act("seek", body, "wide")).json["partitions"]
    assert [(move["partition"], move["to"]) for move in moved] == [(2, 1), (0, 1)]
    assert [message["partition"] for message in await rig.lease("wide")] == [1]


async def test_offsets_that_were_read_can_be_put_back(rig: ConsumerRig) -> None:
    await rig.publish_numbers(3)
    path = "/v1/subscriptions/billing/offsets"
    read = await rig.call("GET", path)
    assert read.json == {
        "subscription": "billing",
        "topic": "orders",
        "epoch": 0,
        "partitions": [{"partition": 0, "offset": 0}],
    }
    await rig.ack(*await rig.lease())
    put = await replace(rig, {"partitions": read.json["partitions"]}, read.headers["ETag"])
    assert (put.status, put.json["epoch"], put.headers["ETag"]) == (200, 1, '"1"')
    assert len(await rig.lease()) == 3
    again = await replace(rig, {"partitions": read.json["partitions"]}, read.headers["ETag"])
    assert again.refused("precondition-failed")["epoch"] == 1
    assert (await replace(rig, {"partitions": read.json["partitions"]}, "*")).status == 200


@pytest.mark.parametrize(("offset", "code"), [(0, "offset-below-start"), (9, "offset-above-end")])
async def test_a_place_that_is_not_there_is_refused_with_the_range(
    rig: ConsumerRig, offset: int, code: str
) -> None:
    await rig.publish_numbers(2)
    await rig.call("POST", "/v1/topics/orders:purge")
    problem = (await rig.act("seek", {"to": {"offset": offset}})).refused(code)
    assert (problem["partition"], problem["earliest"], problem["latest"]) == (0, 2, 2)
    body = {"partitions": [{"partition": 0, "offset": offset}]}
    (await replace(rig, body)).refused(code)


WRONG_SEEKS: list[tuple[Any, str]] = [
    (b"{", "invalid-json"),
    ({}, "invalid-request"),
    ({"to": {}}, "invalid-request"),
    ({"to": {"from": "earliest", "offset": 0}}, "invalid-request"),
    ({"to": {"from": "middle"}}, "invalid-request"),
    ({"to": {"offset": -1}}, "invalid-request"),
    ({"to": {"offset": 2**63}}, "invalid-request"),
    ({"to": {"offsets": []}}, "invalid-request"),
    ({"to": {"offsets": [0, 0]}}, "invalid-offset"),
    ({"to": {"timestamp": "yesterday"}}, "invalid-request"),
    ({"to": {"offset": 0}, "partitions": []}, "invalid-request"),
    ({"to": {"offset": 0}, "partitions": [0, 0]}, "invalid-request"),
    ({"to": {"offset": 0}, "partitions": [1]}, "unknown-partition"),
    ({"to": {"offset": 0}, "dry": True}, "invalid-request"),
]


async def test_a_seek_that_says_no_place_is_refused(rig: ConsumerRig) -> None:
    for body, code in WRONG_SEEKS:
        (await rig.act("seek", body)).refused(code)
    assert (await rig.look("offsets"))["epoch"] == 0


WRONG_OFFSETS: list[tuple[Any, str]] = [
    (b"", "invalid-json"),
    ({"partitions": []}, "invalid-request"),
    ({"partitions": [{"partition": 0}]}, "invalid-request"),
    ({"partitions": [{"partition": 0, "offset": 0}] * 2}, "invalid-request"),
    ({"partitions": [{"partition": 7, "offset": 0}]}, "unknown-partition"),
]


async def test_wrong_offsets_are_refused(rig: ConsumerRig) -> None:
    for body, code in WRONG_OFFSETS:
        (await replace(rig, body)).refused(code)
    assert (await rig.look("offsets"))["epoch"] == 0


async def test_a_subscription_that_is_none_is_refused(rig: ConsumerRig) -> None:
    for name, code in (("biling", "unknown-subscription"), ("Billing", "invalid-name")):
        for what in ("lag", "offsets"):
            (await rig.call("GET", f"/v1/subscriptions/{name}/{what}")).refused(code)
        (await rig.act("seek", {"to": {"offset": 0}}, name)).refused(code)


async def test_a_pushed_subscription_can_be_looked_at_and_moved(rig: ConsumerRig) -> None:
    await rig.subscribe("pushed", mode=Mode.PUSH)
    await rig.publish_numbers(2)
    assert (await rig.look("lag", "pushed"))["backlog"] == 2
    assert (await rig.act("seek", {"to": {"from": "latest"}}, "pushed")).status == 200


async def test_without_its_topic_a_subscription_cannot_be_moved(rig: ConsumerRig) -> None:
    await rig.call("DELETE", "/v1/topics/orders?policy=Delete")
    (await rig.act("seek", {"to": {"from": "latest"}})).refused("unknown-topic")
    assert (await rig.look("lag"))["state"] == "stopped"


async def test_an_offset_that_was_told_is_durable(rig: ConsumerRig) -> None:
    await rig.publish_numbers(3)
    flow = rig.delivery.flow("id-of-billing")
    for delivery in await flow.take(3, 1_000, lambda _attempt, _first_ms: 60_000):
        flow.settle(delivery)
    (told,) = (await rig.look("offsets"))["partitions"]
    (stored,) = (await rig.delivery.ledger.store.load(flow.id)).cursors
    assert told["offset"] == stored.next_offset == 3
