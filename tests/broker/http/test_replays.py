"""Replays over HTTP: what is answered, and what is refused."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ibrik_api.recovering import ReplayDryRun, ReplayList, ReplayView
from ibrik_api.registering import AttemptList
from ibrik_broker.delivery.answers import Answer
from ibrik_broker.delivery.replays import RUNNING_MAX
from ibrik_broker.delivery.senders.parcel import Parcel
from tests.broker.http.recovering import RecoveryRig, running_recovery
from tests.support.delivery import OK, status

FROM_START: dict[str, Any] = {"topic": "orders", "from": "earliest"}
TO_CHANNEL = {"channel": "ch"}


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[RecoveryRig]:
    async with running_recovery(tmp_path) as rig:
        await rig.publish_numbers(5)
        yield rig


async def replay(rig: RecoveryRig, **body: Any) -> Any:
    reply = await rig.call("POST", "/v1/replays", {"target": TO_CHANNEL} | body)
    assert reply.status == 202, reply
    assert reply.headers["Location"] == f"/v1/replays/{reply.json['id']}"
    return reply.json


async def ended(rig: RecoveryRig, replay_id: str) -> Any:
    await rig.made.ended(rig.made.replays.get(replay_id))
    reply = await rig.call("GET", f"/v1/replays/{replay_id}")
    assert reply.status == 200
    msgspec.json.decode(reply.body, type=ReplayView)
    return reply.json


async def test_a_replay_from_begin_to_end(rig: RecoveryRig) -> None:
    source = FROM_START | {"from": {"offset": 1}, "to": {"offset": 4}}
    begun = await replay(rig, source=source, rate=100)
    assert (begun["total"], begun["target"], begun["rate"]) == (3, TO_CHANNEL, 100)
    done = await ended(rig, begun["id"])
    assert (done["state"], done["delivered"], done["remaining"]) == ("done", 3, 0)
    assert done["partitions"] == [
        {"partition": 0, "from": 1, "to": 4, "count": 3, "next_offset": 4}
    ]
    assert done["ended"] >= done["started"]
    assert sorted(rig.parts.sender.values) == [b"1", b"2", b"3"]


async def test_a_dry_run_makes_nothing(rig: RecoveryRig) -> None:
    body = {"source": FROM_START, "target": TO_CHANNEL, "dry_run": True}
    reply = await rig.call("POST", "/v1/replays", body)
    assert reply.status == 200
    msgspec.json.decode(reply.body, type=ReplayDryRun)
    assert reply.json == {
        "topic": "orders",
        "total": 5,
        "partitions": [{"partition": 0, "from": 0, "to": 5, "count": 5}],
    }
    assert (await rig.call("GET", "/v1/replays")).json == {"items": []}
    assert rig.parts.sender.parcels == []


async def test_into_a_topic_with_a_filter(rig: RecoveryRig) -> None:
    await rig.parts.topic("copy")
    source = FROM_START | {"filter": "data >= 3"}
    done = await ended(rig, (await replay(rig, source=source, target={"topic": "copy"}))["id"])
    assert (done["delivered"], done["filtered"], done["filter"]) == (2, 3, "data >= 3")
    assert len(await rig.parts.records("copy")) == 2


async def test_every_place_can_be_named(rig: RecoveryRig) -> None:
    topic_id = rig.parts.engine.topic("orders").id
    for place, count in (
        ("earliest", 5),
        ("latest", 0),
        ({"offset": 2}, 3),
        ({"offsets": [4]}, 1),
        ({"timestamp": "2020-01-01T00:00:00Z"}, 5),
        ({"id": f"{topic_id}-0-1"}, 3),
    ):
        body = {"source": {"topic": "orders", "from": place}, "target": TO_CHANNEL}
        reply = await rig.call("POST", "/v1/replays", body | {"dry_run": True})
        assert reply.json["total"] == count, place


async def test_replays_are_listed_newest_first_in_pages(rig: RecoveryRig) -> None:
    ids = []
    for _ in range(3):
        ids.append((await replay(rig, source=FROM_START))["id"])
        rig.parts.clock.ms += 1
    first = await rig.call("GET", "/v1/replays?page_size=2")
    msgspec.json.decode(first.body, type=ReplayList)
    assert [item["id"] for item in first.json["items"]] == ids[:0:-1]
    token = first.json["next_page_token"]
    second = (await rig.call("GET", f"/v1/replays?page_size=2&page_token={token}")).json
    assert ([item["id"] for item in second["items"]], "next_page_token" in second) == (
        ids[:1],
        False,
    )


async def test_attempts_that_failed_are_told(rig: RecoveryRig) -> None:
    rig.parts.sender.answer = lambda p: status(400) if p.record.value in (b"1", b"3") else OK
    done = await ended(rig, (await replay(rig, source=FROM_START))["id"])
    assert (done["state"], done["delivered"], done["failed"]) == ("done", 3, 2)
    path = f"/v1/replays/{done['id']}/attempts"
    page = await rig.call("GET", f"{path}?page_size=1")
    msgspec.json.decode(page.body, type=AttemptList)
    token = page.json["next_page_token"]
    rest = (await rig.call("GET", f"{path}?page_token={token}")).json
    found = page.json["items"] + rest["items"]
    assert sorted((item["offset"], item["status"]) for item in found) == [(1, 400), (3, 400)]
    (await rig.call("GET", f"{path}?page_token=%21")).refused("invalid-request")


async def test_a_cancelled_replay_stays_cancelled(rig: RecoveryRig) -> None:
    begun = await replay(rig, source=FROM_START, rate=1)
    path = f"/v1/replays/{begun['id']}"
    await rig.parts.until(lambda: len(rig.parts.sender.parcels) == 1)
    reply = await rig.call("DELETE", path)
    assert (reply.status, reply.json["state"]) == (200, "cancelled")
    assert (await rig.call("DELETE", path)).json["state"] == "cancelled"
    await rig.parts.advance(60_000)
    assert (await rig.call("GET", path)).json["remaining"] == 4
    assert len(rig.parts.sender.parcels) == 1


async def test_what_cannot_be_replayed_is_refused(rig: RecoveryRig) -> None:
    for body, code in (
        (b"{", "invalid-json"),
        ({}, "invalid-request"),
        ({"source": FROM_START, "target": {}}, "invalid-request"),
        ({"source": FROM_START, "target": TO_CHANNEL | {"topic": "orders"}}, "invalid-request"),
        ({"source": FROM_START, "target": TO_CHANNEL, "rate": 0}, "invalid-request"),
        ({"source": FROM_START, "target": {"channel": "nobody"}}, "unknown-channel"),
        ({"source": FROM_START, "target": {"topic": "nothing"}}, "unknown-topic"),
        ({"source": FROM_START, "target": {"topic": "No"}}, "invalid-name"),
    ):
        (await rig.call("POST", "/v1/replays", body)).refused(code)
    for source, code in (
        ({"topic": "nothing"}, "unknown-topic"),
        ({"from": {}}, "invalid-request"),
        ({"from": {"offset": 1, "id": "x"}}, "invalid-request"),
        ({"from": {"id": "order-7"}}, "invalid-request"),
        ({"from": {"timestamp": "yesterday"}}, "invalid-request"),
        ({"from": {"offsets": [1, 2]}}, "invalid-offset"),
        ({"from": {"offset": 3}, "to": {"offset": 2}}, "invalid-offset"),
        ({"from": {"offset": 9}}, "offset-above-end"),
        ({"partitions": [7]}, "unknown-partition"),
        ({"partitions": [0, 0]}, "invalid-request"),
        ({"filter": "data >"}, "invalid-filter"),
    ):
        body = {"source": FROM_START | source, "target": TO_CHANNEL}
        (await rig.call("POST", "/v1/replays", body)).refused(code)
    for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/attempts")):
        (await rig.call(method, f"/v1/replays/nobody{path}")).refused("unknown-replay")
    assert rig.made.replays.all() == []


async def test_a_range_that_is_gone_says_what_is_left(rig: RecoveryRig) -> None:
    await rig.parts.registry.purge("orders")
    body = {"source": FROM_START | {"from": {"offset": 0}}, "target": TO_CHANNEL}
    problem = (await rig.call("POST", "/v1/replays", body)).refused("offset-below-start")
    assert (problem["earliest"], problem["latest"]) == (5, 5)


async def test_too_many_at_once_are_refused(rig: RecoveryRig) -> None:
    gate = asyncio.Event()

    async def hold(_parcel: Parcel) -> Answer:
        await gate.wait()
        return OK

    rig.parts.sender.answer = hold
    for _ in range(RUNNING_MAX):
        await replay(rig, source=FROM_START)
    body = {"source": FROM_START, "target": TO_CHANNEL}
    (await rig.call("POST", "/v1/replays", body)).refused("too-many-replays")
    gate.set()
