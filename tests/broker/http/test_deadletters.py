"""Dead letters over HTTP: what is answered, and what is refused."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ibrik_api.recovering import DeadLetterList, PurgeResult, RedriveResult
from tests.broker.http.recovering import RecoveryRig, running_recovery
from tests.support.delivery import OK, status

BILLING = "/v1/deadletters/billing"


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[RecoveryRig]:
    """Five dead letters of `billing`; from now on every delivery succeeds."""
    async with running_recovery(tmp_path) as rig:
        rig.parts.sender.answer = lambda p: status(400 if (p.record.value or b"") < b"3" else 422)
        await rig.publish_numbers(5)
        await rig.subscribe()
        rig.parts.sender.answer = lambda _: OK
        rig.parts.sender.parcels.clear()
        rig.parts.clock.ms += 1_000
        yield rig


async def letters(rig: RecoveryRig, query: str = "") -> list[Any]:
    reply = await rig.call("GET", BILLING + query)
    assert reply.status == 200, reply
    msgspec.json.decode(reply.body, type=DeadLetterList)
    items: list[Any] = reply.json["items"]
    return items


async def redriven(rig: RecoveryRig, body: Any = None) -> Any:
    reply = await rig.call("POST", f"{BILLING}:redrive", body)
    assert reply.status == 200, reply
    msgspec.json.decode(reply.body, type=RedriveResult)
    return reply.json


async def test_a_dead_letter_shows_the_message_and_what_went_wrong(rig: RecoveryRig) -> None:
    letter = (await letters(rig))[3]
    assert (letter["value"], letter["reason"], letter["status"]) == (3, "status", 422)
    assert (letter["attempts"], letter["state"]) == (1, "dead")
    assert letter["origin"] == {"topic": "orders", "partition": 0, "offset": 3}
    assert letter["first_attempt"] <= letter["last_attempt"]


async def test_pages_and_filters(rig: RecoveryRig) -> None:
    first = (await rig.call("GET", f"{BILLING}?page_size=2")).json
    assert (first["subscription"], first["topic"]) == ("billing", "orders.billing.dlq")
    rest = await letters(rig, f"?page_token={first['next_page_token']}")
    assert [letter["value"] for letter in first["items"] + rest] == [0, 1, 2, 3, 4]
    assert len(await letters(rig, "?status=422")) == 2
    assert await letters(rig, "?reason=timeout") == []
    assert await letters(rig, "?state=redriven") == []
    assert [item["value"] for item in await letters(rig, "?filter=data%20%3E%203")] == [4]


async def test_without_dead_letters_the_list_is_empty(rig: RecoveryRig) -> None:
    await rig.subscribe("shipping")
    reply = await rig.call("GET", "/v1/deadletters/shipping")
    assert reply.json == {"subscription": "shipping", "topic": None, "items": []}
    for verb in ("redrive", "purge"):
        assert (await rig.call("POST", f"/v1/deadletters/shipping:{verb}")).status == 200


async def test_redriving_delivers_each_message_once(rig: RecoveryRig) -> None:
    some = {"offsets": [{"offset": 0}], "filter": "data == 0"}
    assert (await redriven(rig, some | {"dry_run": True}))["redriven"] == 1
    assert (await redriven(rig, some))["redriven"] == 1
    assert (await redriven(rig, some))["matched"] == 0
    rest = await redriven(rig)
    assert (rest["topic"], rest["redriven"], rest["complete"]) == ("orders.billing.dlq", 4, True)
    await rig.parts.until(lambda: len(rig.parts.sender.parcels) == 5)
    assert sorted(rig.parts.sender.values) == [b"0", b"1", b"2", b"3", b"4"]
    assert {letter["state"] for letter in await letters(rig)} == {"redriven"}


async def test_what_expired_is_told_with_the_next_step(rig: RecoveryRig) -> None:
    await rig.parts.registry.purge("orders")
    result = await redriven(rig, {"rate": 10})
    assert (result["redriven"], result["expired"]) == (0, 5)
    assert len(result["expired_letters"]) == 5
    assert "POST /v1/replays" in result["advice"]
    body = {
        "source": {"topic": result["topic"], "from": "earliest"},
        "target": {"channel": "ch"},
    }
    reply = await rig.call("POST", "/v1/replays", body)
    await rig.made.ended(rig.made.replays.get(reply.json["id"]))
    assert sorted(rig.parts.sender.values) == [b"0", b"1", b"2", b"3", b"4"]


async def test_a_purge_deletes_the_dead_letters_alone(rig: RecoveryRig) -> None:
    dry = (await rig.call("POST", f"{BILLING}:purge", {"dry_run": True})).json
    assert (dry["purged"], len(await letters(rig))) == (5, 5)
    reply = await rig.call("POST", f"{BILLING}:purge")
    msgspec.json.decode(reply.body, type=PurgeResult)
    assert reply.json == {"topic": "orders.billing.dlq", "dry_run": False, "purged": 5}
    assert await letters(rig) == []
    assert len(await rig.parts.records("orders")) == 5


async def test_what_makes_no_sense_is_refused(rig: RecoveryRig) -> None:
    for query, code in (
        ("?status=bad", "invalid-request"),
        ("?state=alive", "invalid-request"),
        ("?filter=data%20%3E", "invalid-filter"),
        ("?page_token=%21", "invalid-request"),
        ("?page_token=eA", "invalid-request"),
        ("?page_size=0", "invalid-request"),
    ):
        (await rig.call("GET", BILLING + query)).refused(code)
    for body, code in (
        (b"{", "invalid-json"),
        ({"colour": "red"}, "invalid-request"),
        ({"rate": 0}, "invalid-request"),
        ({"offsets": []}, "invalid-request"),
        ({"filter": "1 +"}, "invalid-filter"),
        ({"offsets": [{"offset": 5}]}, "offset-above-end"),
        ({"offsets": [{"offset": 0, "partition": 3}]}, "unknown-partition"),
    ):
        (await rig.call("POST", f"{BILLING}:redrive", body)).refused(code)
    await rig.parts.registry.purge("orders.billing.dlq")
    reply = await rig.call("POST", f"{BILLING}:redrive", {"offsets": [{"offset": 0}]})
    reply.refused("offset-below-start")
    (await rig.call("POST", f"{BILLING}:purge", {"dry_run": 1})).refused("invalid-request")
    for method, verb in (("GET", ""), ("POST", ":redrive"), ("POST", ":purge")):
        (await rig.call(method, f"/v1/deadletters/nobody{verb}")).refused("unknown-subscription")
        (await rig.call(method, f"/v1/deadletters/No{verb}")).refused("invalid-name")
    assert rig.parts.sender.parcels == []


async def test_a_topic_that_others_share_is_not_purged(rig: RecoveryRig) -> None:
    shared = {"dead_letter_topic": "orders.billing.dlq"}
    await rig.parts.subscribe("audit", "orders", halt="paused", **shared)
    reply = await rig.call("POST", f"{BILLING}:purge")
    assert (reply.status, reply.json["code"]) == (409, "resource-conflict")
    assert len(await letters(rig)) == 5
