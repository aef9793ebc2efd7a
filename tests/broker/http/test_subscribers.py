"""The webhook way: an endpoint registers for a topic, and gets its messages once."""

import asyncio
from typing import Any
from urllib.parse import quote

import pytest

from tests.broker.http.receiver import receiving
from tests.broker.http.rig import Reply, Rig

SUBSCRIBERS = "/v1/topics/orders/subscribers"
URL = "http://127.0.0.1:9/hook"


async def register(rig: Rig, url: str = URL, **body: Any) -> Reply:
    return await rig.call("POST", SUBSCRIBERS, {"url": url} | body)


async def listed(rig: Rig, topic: str = "orders") -> list[str]:
    page = (await rig.call("GET", f"/v1/topics/{topic}/subscribers")).json
    return [item["url"] for item in page["items"]]


async def test_an_endpoint_gets_the_messages_of_a_topic(rig: Rig) -> None:
    async with receiving() as receiver:
        reply = await register(rig, receiver.url, method="PUT", headers={"X-Shop": "7"})
        assert reply.status == 201
        made = reply.json
        assert made == {
            "id": made["id"],
            "channel": made["channel"],
            "created": True,
            "topic": "orders",
            "url": receiver.url,
            "method": "PUT",
        }
        assert reply.headers["Location"] == f"{SUBSCRIBERS}/{made['id']}"
        await rig.publish(b"1")
        await receiver.until(lambda: receiver.bodies == [b"1"])
        assert receiver.requests[0].method == "PUT"
        assert receiver.requests[0].headers["X-Shop"] == "7"


async def test_fifty_registrations_at_once_are_one(rig: Rig) -> None:
    async with receiving() as receiver:
        replies = await asyncio.gather(*(register(rig, receiver.url) for _ in range(50)))
        assert sorted(reply.status for reply in replies) == [200] * 49 + [201]
        assert len({reply.json["id"] for reply in replies}) == 1
        assert [r.json["created"] for r in replies].count(True) == 1
        assert await listed(rig) == [receiver.url]
        await rig.publish(b"1")
        await rig.publish(b"2")
        await receiver.until(lambda: b"2" in receiver.bodies)
        assert sorted(receiver.bodies) == [b"1", b"2"], "each message came once"


async def test_one_endpoint_is_one_however_it_is_spelt(rig: Rig) -> None:
    first = (await register(rig, "http://shop.example:80")).json["id"]
    assert (await register(rig, "http://SHOP.example/")).json["id"] == first
    assert (await register(rig, "http://shop.example/", method="PUT")).json["id"] != first
    assert (await register(rig, "http://shop.example/?a=1")).json["id"] != first


async def test_the_same_endpoint_with_other_wishes_is_a_conflict(rig: Rig) -> None:
    await register(rig, headers={"A": "1"})
    (await register(rig, headers={"A": "2"})).refused("subscription-exists")
    (await register(rig, headers={"A": "1"}, fire_and_forget=True)).refused("subscription-exists")
    assert await listed(rig) == [URL]


async def test_fire_and_forget_tries_once(rig: Rig) -> None:
    async with receiving() as receiver:
        receiver.status = 503
        made = await register(rig, receiver.url, fire_and_forget=True)
        await rig.publish(b"1")
        await rig.publish(b"2")
        await receiver.until(lambda: receiver.bodies == [b"1", b"2"])
        path = f"/v1/subscriptions/{made.json['id']}"
        assert (await rig.call("GET", path)).json["spec"]["delivery"] == "fireAndForget"


async def test_an_endpoint_is_removed_by_its_id(rig: Rig) -> None:
    made = (await register(rig)).json
    path = f"{SUBSCRIBERS}/{made['id']}"
    assert (await rig.call("DELETE", path)).status == 204
    assert await listed(rig) == []
    (await rig.call("GET", f"/v1/channels/{made['channel']}")).refused("unknown-channel")
    (await rig.call("DELETE", path)).refused("unknown-subscription")
    assert (await register(rig)).status == 201


async def test_an_endpoint_is_removed_by_its_url_and_method(rig: Rig) -> None:
    await register(rig, method="PUT")
    await register(rig)
    query = f"?url={quote(URL, safe='')}"
    assert (await rig.call("DELETE", f"{SUBSCRIBERS}{query}&method=PUT")).status == 204
    assert await listed(rig) == [URL]
    assert (await rig.call("DELETE", SUBSCRIBERS + query)).status == 204
    (await rig.call("DELETE", SUBSCRIBERS + query)).refused("unknown-subscription")
    assert await listed(rig) == []
    for wrong in ("", "?method=PUT", f"{query}&method=GET"):
        (await rig.call("DELETE", SUBSCRIBERS + wrong)).refused("invalid-request")
    (await rig.call("DELETE", f"{SUBSCRIBERS}?url=http%3A%2F%2F%5B")).refused("invalid-destination")


async def test_only_what_was_registered_so_is_removed_so(rig: Rig) -> None:
    await rig.create("bills")
    made = (await register(rig)).json["id"]
    body = {"metadata": {"name": "reader"}, "spec": {"topicRef": {"name": "orders"}}}
    await rig.call("PUT", "/v1/subscriptions/reader", body)
    assert await listed(rig) == [URL]
    assert await listed(rig, "bills") == []
    for path in (f"{SUBSCRIBERS}/reader", f"/v1/topics/bills/subscribers/{made}"):
        (await rig.call("DELETE", path)).refused("unknown-subscription")
    assert (await rig.call("GET", "/v1/subscriptions/reader")).status == 200
    assert await listed(rig) == [URL]


async def test_endpoints_are_listed_page_by_page(rig: Rig) -> None:
    wanted = sorted([(await register(rig, f"{URL}/{n}")).json["id"] for n in range(5)])
    found: list[str] = []
    query = "?page_size=2"
    while True:
        page = (await rig.call("GET", SUBSCRIBERS + query)).json
        found += [item["id"] for item in page["items"]]
        if "next_page_token" not in page:
            break
        query = f"?page_size=2&page_token={page['next_page_token']}"
    assert found == wanted


async def test_a_queue_topic_has_one_endpoint(rig: Rig) -> None:
    await rig.create("jobs", dispatch="queue")
    path = "/v1/topics/jobs/subscribers"
    assert (await rig.call("POST", path, {"url": URL})).status == 201
    (await rig.call("POST", path, {"url": URL + "s"})).refused("shared-needs-pull")
    assert (await rig.call("POST", path, {"url": URL})).status == 200
    assert len((await rig.call("GET", "/v1/channels")).json["items"]) == 1, "nothing half made"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "invalid-json"),
        ([], "invalid-request"),
        ({}, "invalid-request"),
        ({"url": URL, "fireAndForget": True}, "invalid-request"),
        ({"url": URL, "method": "GET"}, "invalid-request"),
        ({"url": URL, "headers": {"A": 1}}, "invalid-request"),
        ({"url": URL, "headers": {"Host": "x"}}, "invalid-destination"),
        ({"url": URL, "headers": {f"A{n}": "" for n in range(33)}}, "invalid-resource"),
        ({"url": URL, "headers": {"A": "x" * 4_097}}, "invalid-resource"),
        ({"url": ""}, "invalid-resource"),
        ({"url": "http://169.254.169.254/latest"}, "egress-denied"),
        ({"url": "http://["}, "invalid-destination"),
        ({"url": "file:///etc/passwd"}, "invalid-destination"),
        ({"url": "http://shop.example/" + "x" * 2_048}, "invalid-request"),
    ],
)
async def test_a_wrong_endpoint_changes_nothing(rig: Rig, body: Any, code: str) -> None:
    (await rig.call("POST", SUBSCRIBERS, body)).refused(code)
    for path in (SUBSCRIBERS, "/v1/channels", "/v1/subscriptions"):
        assert (await rig.call("GET", path)).json["items"] == []


async def test_the_topic_has_to_be_there(rig: Rig) -> None:
    for method, body in (("POST", {"url": URL}), ("GET", None)):
        path = "/v1/topics/ordres/subscribers"
        (await rig.call(method, path, body)).refused("unknown-topic")
        (await rig.call(method, "/v1/topics/No/subscribers", body)).refused("invalid-name")
