"""Channels over HTTP: create, list, change, delete, pause, test, and how deliveries went."""

import asyncio
import base64
import hmac
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ibrik_api.resources.channel import ChannelSpec
from tests.broker.http.receiver import Receiver, receiving
from tests.broker.http.rig import Reply, Rig

CHANNELS = "/v1/channels"
HOOK = "http://127.0.0.1:9/hook"


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as receiver:
        yield receiver


def resource(name: str, url: str = HOOK, **spec: Any) -> dict[str, Any]:
    kind = {} if {"tcp", "topic", "service", "http"} & spec.keys() else {"http": {"url": url}}
    return {"kind": "Channel", "metadata": {"name": name}, "spec": kind | spec}


async def put(rig: Rig, name: str, url: str = HOOK, *, headers: Any = None, **spec: Any) -> Reply:
    return await rig.call("PUT", f"{CHANNELS}/{name}", resource(name, url, **spec), headers=headers)


async def subscribe(rig: Rig, name: str, channel: str, **spec: Any) -> None:
    wish = {"topicRef": {"name": "orders"}, "mode": "push", "channelRef": {"name": channel}}
    body = {"metadata": {"name": name}, "spec": wish | spec}
    reply = await rig.call("PUT", f"/v1/subscriptions/{name}", body)
    assert reply.status == 201, reply


async def test_a_channel_is_created_once(rig: Rig) -> None:
    created = await rig.call("POST", CHANNELS, resource("billing"))
    assert (created.status, created.headers["Location"]) == (201, f"{CHANNELS}/billing")
    assert created.json["status"]["kind"] == "http"
    assert created.json["status"]["circuit"] == "closed"
    again = await rig.call("POST", CHANNELS, resource("billing"))
    assert (again.status, again.headers["ETag"]) == (200, created.headers["ETag"])
    other = await rig.call("POST", CHANNELS, resource("billing", HOOK + "s"))
    other.refused("channel-exists")


async def test_a_put_is_idempotent_and_can_depend_on_what_was_read(rig: Rig) -> None:
    (await put(rig, "billing", headers={"If-Match": "*"})).refused("precondition-failed")
    first = await put(rig, "billing", headers={"If-None-Match": "*"})
    assert first.status == 201
    (await put(rig, "billing", headers={"If-None-Match": "*"})).refused("precondition-failed")
    etag = first.headers["ETag"]
    assert (await put(rig, "billing")).headers["ETag"] == etag
    changed = await put(rig, "billing", HOOK + "s", headers={"If-Match": etag})
    assert (changed.status, changed.headers["ETag"] != etag) == (200, True)
    (await put(rig, "billing", headers={"If-Match": etag})).refused("precondition-failed")
    path = f"{CHANNELS}/billing"
    known = {"If-None-Match": changed.headers["ETag"]}
    assert (await rig.call("GET", path, headers=known)).status == 304
    gone = await rig.call("DELETE", path, headers={"If-Match": etag})
    gone.refused("precondition-failed")
    assert (await rig.call("GET", path)).json["spec"]["http"]["url"] == HOOK + "s"


async def test_of_many_that_want_it_new_one_gets_it(rig: Rig) -> None:
    wishes = [put(rig, "billing", f"{HOOK}{n}", headers={"If-None-Match": "*"}) for n in range(10)]
    replies = await asyncio.gather(*wishes)
    assert sorted(reply.status for reply in replies) == [201] + [412] * 9


async def test_channels_are_listed_page_by_page_and_filtered(rig: Rig) -> None:
    await put(rig, "b.http", "https://shop.example/hooks")
    await put(rig, "a.http", "http://shop.example:8080/hooks")
    await put(rig, "c.tcp", tcp={"host": "till.example", "port": 7070})
    await put(rig, "d.topic", topic={"name": "orders"})
    assert await names(rig, "page_size=3") == ["a.http", "b.http", "c.tcp", "d.topic"]
    for query, wanted in (
        ("kind=http", ["a.http", "b.http"]),
        ("kind=tcp", ["c.tcp"]),
        ("host=shop.example", ["a.http", "b.http"]),
        ("host=till.example&kind=http", []),
        ("name_prefix=b", ["b.http"]),
        ("namespace=default&kind=topic", ["d.topic"]),
        ("namespace=other", []),
    ):
        assert await names(rig, query) == wanted, query
    for query in ("kind=fax", "page_size=0", "page_token=!", "view=full&view=plain", "view=long"):
        (await rig.call("GET", f"{CHANNELS}?{query}")).refused("invalid-request")


async def names(rig: Rig, query: str) -> list[str]:
    found: list[str] = []
    token = ""
    while True:
        page = (await rig.call("GET", f"{CHANNELS}?{query}&page_token={token}")).json
        found += [item["metadata"]["name"] for item in page["items"]]
        if "nextPageToken" not in page:
            return found
        token = page["nextPageToken"]


async def test_a_channel_is_a_plain_record_of_four_fields(rig: Rig) -> None:
    made = await put(rig, "a", "http://shop.example:8080/hooks")
    await put(rig, "b", topic={"name": "orders"})
    channel_id = made.json["status"]["channelId"]
    plain = {
        "id": channel_id,
        "name": "a",
        "destination_host": "shop.example",
        "destination_port": 8080,
    }
    one = await rig.call("GET", f"{CHANNELS}/a?view=plain")
    assert (one.json, one.headers["ETag"]) == (plain, made.headers["ETag"])
    page = (await rig.call("GET", f"{CHANNELS}?view=plain&page_size=1")).json
    assert page["items"] == [plain]
    query = f"view=plain&page_token={page['next_page_token']}"
    rest = (await rig.call("GET", f"{CHANNELS}?{query}")).json
    assert [item["destination_host"] for item in rest["items"]] == ["orders"]
    assert rest["items"][0]["destination_port"] is None
    assert "next_page_token" not in rest


async def test_a_channel_that_is_used_stays(rig: Rig) -> None:
    await put(rig, "billing")
    await subscribe(rig, "reader", "billing")
    problem = (await rig.call("DELETE", f"{CHANNELS}/billing")).refused("channel-in-use")
    assert problem["subscriptions"] == ["reader"]
    await rig.call("DELETE", "/v1/subscriptions/reader?policy=Delete")
    assert (await rig.call("DELETE", f"{CHANNELS}/billing")).status == 204
    (await rig.call("DELETE", f"{CHANNELS}/billing")).refused("unknown-channel")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", ""),
        ("GET", "/attempts"),
        ("GET", "/stats"),
        ("DELETE", ""),
        ("POST", ":pause"),
        ("POST", ":resume"),
        ("POST", ":test"),
    ],
)
async def test_an_unknown_channel_is_named(rig: Rig, method: str, path: str) -> None:
    (await rig.call(method, f"{CHANNELS}/billing{path}")).refused("unknown-channel")
    (await rig.call(method, f"{CHANNELS}/No%20Name{path}")).refused("invalid-name")


async def test_a_test_message_goes_the_way_of_all_deliveries(rig: Rig, receiver: Receiver) -> None:
    receiver.status, receiver.answer = 200, b"thanks"
    await put(rig, "billing", receiver.url, http={"url": receiver.url, "method": "PUT"})
    result = (await rig.call("POST", f"{CHANNELS}/billing:test")).json
    assert result["delivered"] is True
    assert (result["status"], result["error"], result["body"]) == (200, None, "thanks")
    (sent,) = receiver.requests
    assert (sent.method, sent.headers["ce-type"]) == ("PUT", "ibrik.test")
    assert sent.headers["webhook-id"]
    assert json.loads(sent.body)["message"]
    assert (await rig.call("GET", f"{CHANNELS}/billing/stats")).json["delivered"] == 0


async def test_a_test_message_says_what_went_wrong(rig: Rig, receiver: Receiver) -> None:
    receiver.status, receiver.answer = 503, b"\xff" * 5_000
    await put(rig, "busy", receiver.url)
    busy = (await rig.call("POST", f"{CHANNELS}/busy:test")).json
    assert (busy["delivered"], busy["status"], busy["error"]) == (False, 503, "status")
    assert len(busy["body_base64"]) == 1_368, "the first 1,024 bytes"
    spec = ChannelSpec.parse({"http": {"url": "http://169.254.169.254/latest"}})
    await rig.catalogue.channels.put("metadata", spec)  # as a resource can
    denied = (await rig.call("POST", f"{CHANNELS}/metadata:test")).json
    assert (denied["delivered"], denied["status"], denied["error"]) == (
        False,
        None,
        "egress-denied",
    )
    await put(rig, "local", topic={"name": "nowhere"})
    assert (await rig.call("POST", f"{CHANNELS}/local:test")).json["error"] == "unknown-topic"


async def test_a_test_message_reaches_a_topic(rig: Rig) -> None:
    await put(rig, "copy", topic={"name": "orders"})
    for count in (1, 2):
        assert (await rig.call("POST", f"{CHANNELS}/copy:test")).json["delivered"] is True
        assert len(await rig.values()) == count, "no test is a repeat of another"


async def test_secrets_never_appear(rig: Rig, receiver: Receiver, tmp_path: Path) -> None:
    reference = {"bearer": {"secretRef": {"file": "token"}}}
    await put(rig, "billing", receiver.url, auth=reference)
    missing = (await rig.call("POST", f"{CHANNELS}/billing:test")).json
    assert missing["error"] == "credential-missing"
    (tmp_path / "credentials").mkdir()
    (tmp_path / "credentials" / "token").write_text("s3cret\n")
    receiver.status, receiver.answer = 401, b"what is s3cret?"
    result = await rig.call("POST", f"{CHANNELS}/billing:test")
    assert receiver.requests[0].headers["Authorization"] == "Bearer s3cret"
    assert result.json["body"] == "what is [secret]?"
    for path in (f"{CHANNELS}/billing", CHANNELS, f"{CHANNELS}/billing/attempts"):
        assert b"s3cret" not in (await rig.call("GET", path)).body


async def test_a_test_message_is_signed(rig: Rig, receiver: Receiver, tmp_path: Path) -> None:
    secret = "whsec_" + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    (tmp_path / "credentials").mkdir()
    (tmp_path / "credentials" / "signing").write_text(secret + "\n")
    await put(rig, "billing", receiver.url, signing={"secretRef": {"file": "signing"}})
    assert (await rig.call("POST", f"{CHANNELS}/billing:test")).json["delivered"] is True
    headers = receiver.requests[0].headers
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode()
    key = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.digest(key, signed + receiver.bodies[0], "sha256")
    assert headers["webhook-signature"] == "v1," + base64.b64encode(digest).decode()


async def test_a_paused_channel_holds_back_until_it_is_resumed(
    rig: Rig, receiver: Receiver
) -> None:
    await put(rig, "billing", receiver.url)
    paused = await rig.call("POST", f"{CHANNELS}/billing:pause")
    assert paused.json["status"]["circuit"] == "paused"
    await subscribe(rig, "reader", "billing")
    await rig.publish(b"1")
    assert (await rig.call("GET", f"{CHANNELS}/billing/stats")).json["circuit"] == "paused"
    assert receiver.bodies == []
    resumed = await rig.call("POST", f"{CHANNELS}/billing:resume")
    assert resumed.json["status"]["circuit"] == "closed"
    await receiver.until(lambda: receiver.bodies == [b"1"])


async def test_failed_attempts_are_listed_newest_first(rig: Rig, receiver: Receiver) -> None:
    receiver.status = 503
    await put(rig, "billing", receiver.url)
    retry = {"maxAttempts": 3, "backoff": {"initial": "1ms", "max": "1ms", "jitter": "none"}}
    await subscribe(rig, "reader", "billing", retry=retry)
    await rig.publish(b"1")
    attempts = await until_attempts(rig, "", 3)
    assert [row["attempt"] for row in attempts] == [3, 2, 1]
    first = attempts[-1]
    assert (first["subscription"], first["partition"], first["offset"]) == ("reader", 0, 0)
    assert (first["status"], first["error"]) == (503, "status")
    assert attempts[0]["next"] is None or attempts[0]["next"] > first["at"]
    path = f"{CHANNELS}/billing/attempts"
    page = (await rig.call("GET", f"{path}?page_size=2")).json
    query = f"page_size=2&page_token={page['next_page_token']}"
    rest = (await rig.call("GET", f"{path}?{query}")).json
    assert page["items"] + rest["items"] == attempts
    for query, count in (
        ("status=503", 3),
        ("status=500", 0),
        ("error=status", 3),
        ("error=timeout", 0),
        (f"since={first['at']}", 3),
        ("since=2999-01-01T00:00:00Z", 0),
    ):
        found = (await rig.call("GET", f"{path}?{query}")).json["items"]
        assert len(found) == count, query
    for query in ("status=abc", "status=5", "since=yesterday", "page_token=YWJj"):
        (await rig.call("GET", f"{path}?{query}")).refused("invalid-request")
    stats = (await rig.call("GET", f"{CHANNELS}/billing/stats")).json
    assert (stats["failed"], stats["last_status"], stats["last_error"]) == (3, 503, "status")
    assert stats["latency_ms"] is not None


async def until_attempts(rig: Rig, query: str, count: int) -> list[Any]:
    async with asyncio.timeout(20):
        while True:
            page = (await rig.call("GET", f"{CHANNELS}/billing/attempts{query}")).json
            items: list[Any] = page["items"]
            if len(items) >= count:
                return items


async def test_stats_of_a_new_channel_are_empty(rig: Rig) -> None:
    await put(rig, "billing")
    stats = (await rig.call("GET", f"{CHANNELS}/billing/stats")).json
    assert stats == {
        "channel": "billing",
        "delivered": 0,
        "failed": 0,
        "in_flight": 0,
        "circuit": "closed",
        "paused_until": None,
        "last_status": None,
        "last_error": None,
        "last": None,
        "latency_ms": None,
    }


async def test_a_channel_of_a_resource_is_read_only(rig: Rig) -> None:
    document = resource("billing") | {"apiVersion": "ibrik.dev/v1beta1"}
    (outcome,) = await rig.catalogue.desired.apply([document])
    assert outcome.result == "applied"
    (await put(rig, "billing", HOOK + "s")).refused("managed-by-resource")
    (await rig.call("DELETE", f"{CHANNELS}/billing")).refused("managed-by-resource")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "invalid-json"),
        (b"{", "invalid-json"),
        ([], "invalid-resource"),
        ({"metadata": {"name": "billing"}}, "invalid-resource"),
        ({"metadata": {"name": "billing"}, "spec": {}}, "invalid-destination"),
        ({"metadata": {"name": "other"}, "spec": {"http": {"url": HOOK}}}, "invalid-request"),
        ({"metadata": {"name": "x" * 254}}, "invalid-resource"),
        (resource("billing", retries=3), "invalid-resource"),
        (
            resource("billing", topic={"name": "a"}, tcp={"host": "b", "port": 1}),
            "invalid-destination",
        ),
        (resource("billing", "ftp://shop.example"), "invalid-destination"),
        (resource("billing", "http://user:pass@shop.example"), "invalid-destination"),
        (resource("billing", "http://"), "invalid-resource"),
        (resource("billing", "http://169.254.169.254/latest"), "egress-denied"),
        (resource("billing", tcp={"host": "::ffff:a9fe:a9fe", "port": 80}), "egress-denied"),
        (resource("billing", "http://shop.example/" + "x" * 2_048), "invalid-resource"),
        (resource("billing", http={"url": HOOK, "method": "GET"}), "invalid-resource"),
        (resource("billing", http={"url": HOOK, "headers": {"Host": "x"}}), "invalid-destination"),
        (resource("billing", http={"url": HOOK, "headers": {"A": "\n"}}), "invalid-destination"),
        (resource("billing", tcp={"host": "b", "port": 0}), "invalid-resource"),
    ],
)
async def test_a_wrong_channel_changes_nothing(rig: Rig, body: Any, code: str) -> None:
    (await rig.call("PUT", f"{CHANNELS}/billing", body)).refused(code)
    assert (await rig.call("GET", CHANNELS)).json["items"] == []


async def test_other_methods_are_refused_with_those_that_are_served(rig: Rig) -> None:
    for path, allowed in (
        (CHANNELS, "GET, POST"),
        (f"{CHANNELS}/billing", "DELETE, GET, PUT"),
        (f"{CHANNELS}/billing/stats", "GET"),
    ):
        reply = await rig.call("PATCH", path)
        reply.refused("method-not-allowed")
        assert reply.headers["Allow"] == allowed
