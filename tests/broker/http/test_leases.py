"""Leases over HTTP: handed out once, settled in any order, given back when the client goes."""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from ibrik_api.resources.subscription import GroupType, Mode
from tests.broker.http.consumers import ConsumerRig, running_consumers
from tests.broker.http.rig import TIMEOUT_S


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[ConsumerRig]:
    async with running_consumers(tmp_path) as rig:
        await rig.subscribe()
        yield rig


def values(messages: list[Any]) -> list[Any]:
    return [message["value"] for message in messages]


async def condition(is_met: Any) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while not is_met():
            await asyncio.sleep(0.002)


async def test_each_message_is_handed_out_once_and_is_gone_when_acknowledged(
    rig: ConsumerRig,
) -> None:
    await rig.publish_numbers(5)
    first, second = await rig.lease(max=3), await rig.lease()
    assert (values(first), values(second)) == ([0, 1, 2], [3, 4])
    assert await rig.ack(*first, *second) == {"acked": 5, "stale": []}
    assert await rig.lease() == []
    assert (await rig.look("lag"))["backlog"] == 0


async def test_a_leased_message_says_all_that_a_read_message_does(rig: ConsumerRig) -> None:
    await rig.publish(b'{"n": 1}', Ibrik_Key="k", Ibrik_Meta_a="b")
    reply = await rig.act("lease")
    assert (reply.status, reply.json["topic"]) == (200, "orders")
    (message,) = reply.json["messages"]
    read = (await rig.read()).json["messages"][0]
    lease, attempt, deadline = (message.pop(name) for name in ("lease", "attempt", "deadline"))
    assert message == read
    assert attempt == 1
    assert reply.json["deadline_ms"] == 30_000
    assert lease.isascii()
    assert rig.clocks is not None
    ends_ms = datetime.fromisoformat(deadline).timestamp() * 1_000
    assert 0 < ends_ms - rig.clocks.clock_ms() <= 30_000


async def test_a_wait_ends_with_the_message_that_comes(rig: ConsumerRig) -> None:
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(rig.lease(wait="20s"))
        await condition(lambda: rig.consumers.presence.waiting_count == 1)
        await rig.publish(b"1")
    assert values(waiting.result()) == [1]


async def test_a_wait_that_passes_empty_is_204(rig: ConsumerRig) -> None:
    reply = await rig.act("lease", {"wait": "10ms"})
    assert (reply.status, reply.body) == (204, b"")


async def test_acknowledgements_are_taken_in_any_order_and_twice(rig: ConsumerRig) -> None:
    await rig.publish_numbers(3)
    one, two, three = await rig.lease()
    assert (await rig.ack(three, one))["acked"] == 2
    assert (await rig.ack(one, three, two, two))["acked"] == 4
    assert (await rig.look("offsets"))["partitions"] == [{"partition": 0, "offset": 3}]


async def test_wrong_leases_are_listed_and_the_others_count(rig: ConsumerRig) -> None:
    await rig.subscribe("other")
    await rig.publish_numbers(2)
    one, two = await rig.lease()
    (foreign, *_) = await rig.lease("other")
    forged = one["lease"][:-1] + ("A" if one["lease"][-1] != "A" else "B")
    leases = [forged, one["lease"], "x" * 500, foreign["lease"], "", two["lease"]]
    result = (await rig.act("ack", {"leases": leases})).json
    assert result["acked"] == 2
    assert [(s["index"], s["code"]) for s in result["stale"]] == [
        (index, "invalid-lease") for index in (0, 2, 3, 4)
    ]
    assert all(len(s["lease"]) <= 100 and s["detail"] for s in result["stale"])
    assert await rig.ack(foreign, name="other") == {"acked": 1, "stale": []}


@pytest.mark.parametrize("verb", ["ack", "nack", "extend"])
async def test_a_lease_is_worth_nothing_after_its_deadline(rig: ConsumerRig, verb: str) -> None:
    await rig.publish(b"1")
    (late,) = await rig.lease()
    rig.forward(30_001)
    result = (await rig.act(verb, {"leases": [late["lease"]]})).json
    assert [stale["code"] for stale in result["stale"]] == ["lease-expired"]
    rig.delivery.alarms.ring()
    (again,) = await rig.lease(wait="20s")
    assert (again["offset"], again["attempt"]) == (0, 2)
    assert (await rig.ack(late))["acked"] == 0
    assert (await rig.ack(again))["acked"] == 1


async def test_an_extension_moves_the_deadline(rig: ConsumerRig) -> None:
    await rig.publish(b"1")
    (message,) = await rig.lease()
    body = {"leases": [message["lease"]], "deadline": "2m"}
    result = (await rig.act("extend", body)).json
    assert result == {"extended": 1, "deadline_ms": 120_000, "stale": []}
    rig.forward(119_000)
    assert (await rig.ack(message))["acked"] == 1


async def test_a_message_that_is_given_up_comes_again_after_the_delay(rig: ConsumerRig) -> None:
    await rig.publish_numbers(2)
    one, _two = await rig.lease()
    body = {"leases": [one["lease"]], "delay": "0s", "reason": "busy"}
    assert (await rig.act("nack", body)).json == {"nacked": 1, "stale": []}
    (again,) = await rig.lease()
    assert (again["offset"], again["attempt"]) == (one["offset"], 2)
    await rig.act("nack", {"leases": [again["lease"]], "delay": "1h"})
    assert await rig.lease() == []
    assert (await rig.look("lag"))["retrying"] == 1
    rig.forward(3_600_001)
    assert [m["attempt"] for m in await rig.lease()] == [3]


async def test_leases_are_good_after_a_restart(tmp_path: Path) -> None:
    async with running_consumers(tmp_path) as rig:
        await rig.subscribe()
        await rig.publish_numbers(2)
        messages = await rig.lease()
    async with running_consumers(tmp_path) as rig:
        await rig.subscribe()
        assert await rig.ack(*messages) == {"acked": 2, "stale": []}
        assert (await rig.look("lag"))["backlog"] == 0


# --- clients that go ------------------------------------------------------------------------------


def request_bytes(verb: str, body: Any) -> bytes:
    content = json.dumps(body).encode()
    head = f"POST /v1/subscriptions/billing:{verb} HTTP/1.1\r\nHost: x\r\n"
    return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content


@pytest.mark.parametrize("is_reset", [True, False])
async def test_a_client_that_goes_while_it_waits_leaves_the_message_to_others(
    rig: ConsumerRig, is_reset: bool
) -> None:
    _reader, writer = await asyncio.open_connection("127.0.0.1", rig.data_port)
    writer.write(request_bytes("lease", {"wait": "60s"}))
    await condition(lambda: rig.consumers.presence.waiting_count == 1)
    if is_reset:
        writer.transport.abort()
    else:
        writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()
    await condition(lambda: rig.consumers.presence.waiting_count == 0)
    await rig.publish(b"1")
    (message,) = await rig.lease()
    assert message["attempt"] == 1


async def test_a_client_that_goes_before_its_answer_gives_the_messages_back(
    rig: ConsumerRig,
) -> None:
    """It reads nothing: the answer, larger than what the sockets hold, is stuck when it goes."""
    for _ in range(12):
        await rig.publish(b'"' + b"x" * 1_000_000 + b'"')
    reader, writer = await asyncio.open_connection("127.0.0.1", rig.data_port, limit=2**10)
    writer.write(request_bytes("lease", {"max_bytes": 16 * 2**20}))
    await reader.readuntil(b"\r\n\r\n")
    assert await rig.lease(max_bytes=1) == []
    writer.transport.abort()
    with suppress(ConnectionError):
        await writer.wait_closed()
    leases = rig.delivery.leases("id-of-billing")
    await condition(lambda: leases.flow.in_flight_count == 0)
    again = await rig.lease(max_bytes=16 * 2**20)
    assert [message["attempt"] for message in again] == [1] * 12


async def test_who_ends_its_side_before_the_answer_is_taken_for_gone(rig: ConsumerRig) -> None:
    await rig.publish(b"1")
    reader, writer = await asyncio.open_connection("127.0.0.1", rig.data_port)
    writer.write(request_bytes("lease", {}))
    writer.write_eof()
    answer = await asyncio.wait_for(reader.read(), TIMEOUT_S)
    assert answer.startswith(b"HTTP/1.1 204 ")
    writer.close()
    assert [message["attempt"] for message in await rig.lease()] == [1]


async def test_a_door_that_closes_lets_waiting_consumers_go(rig: ConsumerRig) -> None:
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(rig.act("lease", {"wait": "60s"}))
        await condition(lambda: rig.consumers.presence.waiting_count == 1)
        rig.consumers.close()
    waiting.result().refused("shutting-down")


# --- refusals -------------------------------------------------------------------------------------


WRONG: list[tuple[str, Any, str]] = [
    ("lease", {"max": -1}, "invalid-request"),
    ("lease", {"max": 0}, "invalid-request"),
    ("lease", {"max": 1001}, "invalid-request"),
    ("lease", {"max": "all"}, "invalid-request"),
    ("lease", {"wait": "61s"}, "invalid-request"),
    ("lease", {"wait": "soon"}, "invalid-request"),
    ("lease", {"wait": "-1s"}, "invalid-request"),
    ("lease", {"max_bytes": 0}, "invalid-request"),
    ("lease", {"max_bytes": 2**30}, "invalid-request"),
    ("lease", {"consumer": "x" * 254}, "invalid-request"),
    ("lease", {"count": 1}, "invalid-request"),
    ("lease", [], "invalid-request"),
    ("lease", b"{", "invalid-json"),
    ("lease", b"\xff", "invalid-json"),
    ("ack", b"", "invalid-json"),
    ("ack", b"{", "invalid-json"),
    ("ack", {}, "invalid-request"),
    ("ack", {"leases": []}, "invalid-request"),
    ("ack", {"leases": [1]}, "invalid-request"),
    ("ack", {"leases": "x"}, "invalid-request"),
    ("ack", {"leases": ["x"], "all": True}, "invalid-request"),
    ("ack", {"leases": ["x" * 56] * 10_001}, "invalid-request"),
    ("ack", {"leases": ["x" * 56] * 100_000}, "request-too-large"),
    ("nack", b'{"leases":[', "invalid-json"),
    ("nack", {"leases": ["x"], "delay": "8d"}, "invalid-request"),
    ("nack", {"leases": ["x"], "delay": 5}, "invalid-request"),
    ("nack", {"leases": ["x"], "reason": "x" * 1025}, "invalid-request"),
    ("extend", b"nothing", "invalid-json"),
    ("extend", {"leases": ["x"], "deadline": "0s"}, "invalid-request"),
    ("extend", {"leases": ["x"], "deadline": "13h"}, "invalid-request"),
]


async def test_a_wrong_request_is_refused_and_settles_nothing(rig: ConsumerRig) -> None:
    await rig.publish(b"1")
    for verb, body, code in WRONG:
        (await rig.act(verb, body)).refused(code)
    assert len(await rig.lease()) == 1


@pytest.mark.parametrize("verb", ["lease", "ack", "nack", "extend"])
async def test_a_subscription_that_is_none_is_refused(rig: ConsumerRig, verb: str) -> None:
    body = {} if verb == "lease" else {"leases": ["x"]}
    (await rig.act(verb, body, "biling")).refused("unknown-subscription")
    (await rig.act(verb, body, "Billing")).refused("invalid-name")
    await rig.subscribe("pushed", mode=Mode.PUSH)
    (await rig.act(verb, body, "pushed")).refused("wrong-mode")


async def test_a_paused_subscription_hands_nothing_out_but_takes_acknowledgements(
    rig: ConsumerRig,
) -> None:
    await rig.publish_numbers(2)
    (message,) = await rig.lease(max=1)
    rig.delivery.flow("id-of-billing").halt = "paused"
    problem = (await rig.act("lease")).refused("subscription-paused")
    assert ":resume" in problem["detail"]
    assert (await rig.ack(message))["acked"] == 1


async def test_an_exclusive_subscription_serves_one_consumer_at_a_time(rig: ConsumerRig) -> None:
    await rig.subscribe("ledger", type=GroupType.EXCLUSIVE)
    await rig.publish_numbers(2)
    (message,) = await rig.lease("ledger", max=1, consumer="one")
    (await rig.act("lease", {"consumer": "two"}, "ledger")).refused("consumer-conflict")
    (second,) = await rig.lease("ledger", consumer="one")
    await rig.ack(message, second, name="ledger")
    assert await rig.lease("ledger", consumer="two") == []


async def test_a_subscription_of_a_topic_that_went_says_so(rig: ConsumerRig) -> None:
    await rig.call("DELETE", "/v1/topics/orders?policy=Delete")
    (await rig.act("lease")).refused("unknown-topic")


async def test_nothing_is_leased_that_the_database_does_not_know(
    rig: ConsumerRig, tmp_path: Path
) -> None:
    await rig.publish(b"1")
    with closing(sqlite3.connect(tmp_path / "metadata.db")) as database:
        database.execute("ALTER TABLE cursors RENAME TO away")
        (await rig.act("lease")).refused("metadata-unavailable")
        database.execute("ALTER TABLE away RENAME TO cursors")
    (message,) = await rig.lease()
    assert message["attempt"] == 1
