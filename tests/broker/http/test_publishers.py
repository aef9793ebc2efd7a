"""Registered publishers over HTTP: who may publish, and what becomes of their ids."""

from collections.abc import AsyncIterator
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from ibrik_broker.auth.gatekeeper import Gatekeeper
from ibrik_log.batch import encode
from ibrik_log.record import Record
from tests.broker.http.rig import RAW, Reply, Rig, running_doors

PUBLISHERS = "/v1/topics/closed/publishers"


@pytest.fixture
async def closed(tmp_path: Path) -> AsyncIterator[Rig]:
    """With a topic `closed` that takes registered publishers only."""
    async with running_doors(tmp_path) as rig:
        await rig.create("closed", publishers="registered")
        yield rig


async def register(rig: Rig, name: str = "shop", topic: str = "closed") -> Any:
    reply = await rig.call("POST", f"/v1/topics/{topic}/publishers", {"name": name})
    assert reply.status == 201, reply
    return reply.json


async def publish(rig: Rig, token: str, value: bytes = b"1", **headers: str) -> Reply:
    return await rig.publish(value, topic="closed", Authorization=f"Bearer {token}", **headers)


async def read(rig: Rig, topic: str = "closed") -> Any:
    reply = await rig.call("GET", f"/v1/topics/{topic}/partitions/0/messages")
    return [] if reply.status == 204 else reply.json["messages"]


async def test_a_token_is_shown_once_and_never_cached(closed: Rig) -> None:
    first = await closed.call("POST", PUBLISHERS, {"name": "shop"})
    assert (first.status, first.json["created"]) == (201, True)
    assert first.json["token"].startswith("ibp_")
    assert first.headers["Cache-Control"] == "no-store"
    assert first.headers["Location"] == f"{PUBLISHERS}/shop"
    again = await closed.call("POST", PUBLISHERS, {"name": "shop"})
    assert (again.status, again.json["created"]) == (200, False)
    assert again.json["id"] == first.json["id"]
    one = await closed.call("GET", f"{PUBLISHERS}/shop")
    listed = await closed.call("GET", PUBLISHERS)
    for reply in (again, one, listed):
        assert b"token" not in reply.body
        assert b"ibp_" not in reply.body


async def test_a_database_never_holds_a_token(closed: Rig, tmp_path: Path) -> None:
    token = (await register(closed))["token"]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(b"shop" in path.read_bytes() for path in files)
    assert not any(token.encode() in path.read_bytes() for path in files)


async def test_publishers_are_read_page_by_page(closed: Rig) -> None:
    await closed.create("a.topic", publishers="registered")
    wanted = [("a.topic", "x"), ("closed", "a"), ("closed", "b"), ("closed", "c"), ("orders", "a")]
    for topic, name in wanted:
        await register(closed, name, topic)
    assert await pages(closed, "/v1/publishers") == wanted
    assert await pages(closed, PUBLISHERS) == wanted[1:4]


async def pages(rig: Rig, path: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    query = "?page_size=2"
    while True:
        page = (await rig.call("GET", path + query)).json
        found += [(item["topic"], item["name"]) for item in page["items"]]
        if "next_page_token" not in page:
            return found
        query = f"?page_size=2&page_token={page['next_page_token']}"


async def test_what_is_known_is_not_sent_again(closed: Rig) -> None:
    await register(closed)
    etag = (await closed.call("GET", f"{PUBLISHERS}/shop")).headers["ETag"]
    path, headers = f"{PUBLISHERS}/shop", {"If-None-Match": etag}
    assert (await closed.call("GET", path, headers=headers)).status == 304
    await closed.call("POST", f"{path}:rotate")
    assert (await closed.call("GET", path, headers=headers)).status == 200


async def test_only_a_registered_publisher_may_publish(closed: Rig) -> None:
    token = (await register(closed))["token"]
    other = (await register(closed, topic="orders"))["token"]
    assert (await publish(closed, token)).status == 201
    for wrong in ("", other, token[:-1], "ibp_" + "x" * 43, "x" * 8_000):
        problem = (await publish(closed, wrong)).refused("publisher-not-registered")
        assert "POST /v1/topics/closed/publishers" in problem["detail"]
    headers = {"Authorization": f"Basic {token}"}
    reply = await closed.call("POST", "/v1/topics/closed/messages", b"x", headers=headers)
    reply.refused("publisher-not-registered")
    assert [message["value"] for message in await read(closed)] == [1]


@pytest.mark.parametrize(
    ("path", "media_type"),
    [
        ("messages", "text/plain"),
        ("batch", "application/json"),
        ("batch?partial=true", "application/x-ndjson"),
        ("batch", RAW),
    ],
)
async def test_a_stranger_is_refused_before_the_body(
    closed: Rig, path: str, media_type: str
) -> None:
    head = (
        f"POST /v1/topics/closed/{path} HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n"
        f"Content-Type: {media_type}\r\n"
    )
    for more in ("\r\n", "Expect: 100-continue\r\n\r\n"):
        (await closed.raw((head + more).encode())).refused("publisher-not-registered")


async def test_every_form_of_publishing_takes_a_token(closed: Rig) -> None:
    token = (await register(closed))["token"]
    frame = bytes(encode([Record(None, b"5", [])]))
    for media_type, query, body in (
        ("application/json", "", b'{"messages":[{"value":1}]}'),
        ("application/json", "?partial=true", b'{"messages":[{"value":2}]}'),
        ("application/x-ndjson", "", b'{"value":3}\n'),
        ("application/x-ndjson", "?partial=true", b'{"value":4}\n'),
        (RAW, "", frame),
    ):
        headers = {"Authorization": f"bearer {token}", "Content-Type": media_type}
        path = f"/v1/topics/closed/batch{query}"
        reply = await closed.call("POST", path, body, headers=headers)
        assert reply.status in (200, 201), reply
    assert [message["value"] for message in await read(closed)] == [1, 2, 3, 4, 5]


async def test_a_rotated_or_removed_publisher_is_refused_at_once(closed: Rig) -> None:
    old = (await register(closed))["token"]
    rotated = await closed.call("POST", f"{PUBLISHERS}/shop:rotate")
    assert rotated.headers["Cache-Control"] == "no-store"
    new = rotated.json["token"]
    (await publish(closed, old)).refused("publisher-not-registered")
    assert (await publish(closed, new)).status == 201
    assert (await closed.call("DELETE", f"{PUBLISHERS}/shop")).status == 204
    (await publish(closed, new)).refused("publisher-not-registered")
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", ":rotate")):
        (await closed.call(method, f"{PUBLISHERS}/shop{path}")).refused("unknown-publisher")


async def test_a_topic_can_be_closed_and_opened_while_it_is_served(rig: Rig) -> None:
    token = (await register(rig, topic="orders"))["token"]
    await put_publishers(rig, "registered")
    (await rig.publish(b"1")).refused("publisher-not-registered")
    assert (await rig.publish(b"2", Authorization=f"Bearer {token}")).status == 201
    await put_publishers(rig, "anyone")
    assert (await rig.publish(b"3")).status == 201


async def put_publishers(rig: Rig, who: str) -> None:
    body = {"metadata": {"name": "orders"}, "spec": {"publishers": who}}
    assert (await rig.call("PUT", "/v1/topics/orders", body)).status == 200


async def test_ids_belong_to_the_publisher(closed: Rig) -> None:
    shop, till = (await register(closed, "shop")), (await register(closed, "till"))
    id_header = {"Idempotency-Key": "7"}
    assert (await publish(closed, shop["token"], **id_header)).status == 201
    assert (await publish(closed, till["token"], **id_header)).status == 201
    repeat = await publish(closed, shop["token"], **id_header)
    assert (repeat.status, repeat.json["offset"]) == (200, 0)
    senders = [message["headers"]["ibrik-publisher"] for message in await read(closed)]
    assert senders == [shop["id"], till["id"]]


async def test_ids_belong_to_the_publisher_after_a_restart_too(tmp_path: Path) -> None:
    async with running_doors(tmp_path) as rig:
        await rig.create("closed", publishers="registered")
        shop, till = (await register(rig, "shop")), (await register(rig, "till"))
        assert (await publish(rig, shop["token"], Idempotency_Key="7")).status == 201
    for snapshot in tmp_path.rglob("*.snapshot"):
        snapshot.unlink()  # so that the window is read from the log
    async with running_doors(tmp_path, creates=False) as rig:
        assert (await publish(rig, shop["token"], Idempotency_Key="7")).status == 200
        assert (await publish(rig, till["token"], Idempotency_Key="7")).status == 201


async def test_an_event_keeps_its_own_source(closed: Rig) -> None:
    token = (await register(closed))["token"]
    event = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/a", "ce-type": "t"}
    assert (await publish(closed, token, **event)).status == 201
    assert (await publish(closed, token, **event)).status == 200
    other = event | {"ce-source": "/b"}
    assert (await publish(closed, token, **other)).status == 201


async def test_nobody_writes_the_header_of_a_publisher(closed: Rig) -> None:
    shop = await register(closed)
    token = shop["token"]
    for headers in ("headers", "headers_base64"):
        body = {"messages": [{"value": 1, headers: {"ibrik-publisher": "eA=="}}]}
        named = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        reply = await closed.call("POST", "/v1/topics/closed/batch", body, headers=named)
        assert reply.status == 201
        assert (await closed.batch(body)).status == 201
    (await publish(closed, token, **{"Ibrik-Meta-ibrik-publisher": "x"})).refused("invalid-request")
    senders = [message["headers"]["ibrik-publisher"] for message in await read(closed)]
    assert senders == [shop["id"]] * 2
    assert all("ibrik-publisher" not in m["headers"] for m in await read(closed, "orders"))


async def test_a_deleted_topic_takes_its_publishers_with_it(closed: Rig) -> None:
    token = (await register(closed))["token"]
    await closed.call("DELETE", "/v1/topics/closed")
    (await closed.call("GET", PUBLISHERS)).refused("topic-detached")
    await closed.create("closed", publishers="registered")
    assert (await publish(closed, token)).status == 201, "a detached topic keeps them"
    await closed.call("DELETE", "/v1/topics/closed?policy=Delete")
    (await closed.call("POST", PUBLISHERS, {"name": "shop"})).refused("unknown-topic")
    await closed.create("closed", publishers="registered")
    (await publish(closed, token)).refused("publisher-not-registered")
    assert (await closed.call("GET", "/v1/publishers")).json["items"] == []


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "invalid-json"),
        (b"{", "invalid-json"),
        ([], "invalid-request"),
        ({}, "invalid-request"),
        ({"name": 7}, "invalid-request"),
        ({"name": "shop", "topic": "closed"}, "invalid-request"),
        ({"name": ""}, "invalid-name"),
        ({"name": "No Name"}, "invalid-name"),
        ({"name": "x" * 254}, "invalid-name"),
    ],
)
async def test_a_wrong_registration_changes_nothing(closed: Rig, body: Any, code: str) -> None:
    (await closed.call("POST", PUBLISHERS, body)).refused(code)
    assert (await closed.call("GET", PUBLISHERS)).json["items"] == []


async def test_a_registered_topic_is_not_made_on_first_use_for_strangers(tmp_path: Path) -> None:
    async with running_doors(tmp_path, dev=True) as rig:
        await rig.create("closed", publishers="registered")
        (await rig.publish(topic="closed")).refused("publisher-not-registered")
        assert (await rig.publish(topic="new")).status == 201


@pytest.mark.parametrize(
    ("network", "headers", "is_taken"),
    [
        ("127.0.0.0/8", {"X-Forwarded-User": "shop"}, True),
        ("127.0.0.0/8", {"x-forwarded-user": "shop"}, True),
        ("127.0.0.0/8", {"X-Forwarded-User": "till"}, False),
        ("127.0.0.0/8", {"X-Forwarded-User": ""}, False),
        ("127.0.0.0/8", {"X-Forwarded-For": "shop"}, False),
        ("127.0.0.0/8", {}, False),
        ("10.0.0.0/8", {"X-Forwarded-User": "shop"}, False),
        ("10.0.0.0/8", {"X-Forwarded-User": "shop", "X-Forwarded-For": "10.0.0.1"}, False),
    ],
)
async def test_a_gatekeeper_is_believed_from_its_own_address_only(
    tmp_path: Path, network: str, headers: dict[str, str], is_taken: bool
) -> None:
    gatekeeper = Gatekeeper("X-Forwarded-User", [ip_network(network)])
    async with running_doors(tmp_path, gatekeeper=gatekeeper) as rig:
        await rig.create("closed", publishers="registered")
        shop = await register(rig)
        reply = await rig.publish(topic="closed", **headers)
        if is_taken:
            assert (await read(rig))[0]["headers"]["ibrik-publisher"] == shop["id"]
        else:
            reply.refused("publisher-not-registered")


async def test_two_names_from_a_gatekeeper_are_none(tmp_path: Path) -> None:
    gatekeeper = Gatekeeper("X-Forwarded-User", [ip_network("127.0.0.1")])
    async with running_doors(tmp_path, gatekeeper=gatekeeper) as rig:
        await rig.create("closed", publishers="registered")
        token = (await register(rig))["token"]
        head = (
            "POST /v1/topics/closed/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n"
            f"X-Forwarded-User: shop\r\nX-Forwarded-User: till\r\nAuthorization: Bearer {token}"
            "\r\n\r\n"
        )
        (await rig.raw(head.encode())).refused("publisher-not-registered")
        assert (await publish(rig, token)).status == 201, "a token counts behind a gatekeeper too"
