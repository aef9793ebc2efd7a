"""What is registered and recovered over the client, against a real broker."""

import asyncio

import pytest

import ibrik_client
from ibrik_client import InvalidRequest, ServerFailed
from ibrik_client.leasing import decode_leases
from tests.client.scripted import Reply, scripted_server

pytestmark = pytest.mark.slow

NOBODY = {"http": {"url": "http://127.0.0.1:9/hook"}}


async def test_a_channel_lives(ibrik: ibrik_client.Client) -> None:
    admin = ibrik.admin
    made = await admin.create_channel("hook", NOBODY)
    assert (await admin.create_channel("hook", NOBODY))["metadata"] == made["metadata"]
    with pytest.raises(InvalidRequest) as refused:
        await admin.create_channel("hook", {"topic": {"name": "x"}})
    assert refused.value.code == "channel-exists"
    version = made["metadata"]["resourceVersion"]
    changed = await admin.replace_channel("hook", NOBODY | {"timeout": "2s"})
    assert changed["spec"]["timeout"] == "2s"
    with pytest.raises(InvalidRequest) as stale:
        await admin.replace_channel("hook", NOBODY, resource_version=version)
    assert stale.value.code == "precondition-failed"
    assert (await admin.pause_channel("hook"))["status"]["circuit"] == "paused"
    assert (await admin.resume_channel("hook"))["status"]["circuit"] == "closed"
    assert (await admin.test_channel("hook"))["delivered"] is False
    assert await admin.channel_attempts("hook", limit=3) == []
    assert (await admin.channel_stats("hook"))["channel"] == "hook"
    await admin.delete_channel("hook")
    with pytest.raises(InvalidRequest) as gone:
        await admin.channel("hook")
    assert gone.value.code == "unknown-channel"


async def test_lists_go_over_all_pages(ibrik: ibrik_client.Client) -> None:
    for number in range(103):
        await ibrik.admin.create_channel(f"many-{number:03}", NOBODY)
    found = await ibrik.admin.channels(name_prefix="many-", kind="http", host="127.0.0.1")
    assert [channel["metadata"]["name"] for channel in found] == [
        f"many-{number:03}" for number in range(103)
    ]
    assert await ibrik.admin.channels(name_prefix="many-", kind="tcp") == []


async def test_a_subscription_lives(ibrik: ibrik_client.Client) -> None:
    admin = ibrik.admin
    await admin.create_topic("lived")
    await admin.create_subscription("reader", {"topicRef": {"name": "lived"}})
    await ibrik.publish_many("lived", [b"a", b"b"])
    assert [s["metadata"]["name"] for s in await admin.subscriptions(topic="lived")] == ["reader"]
    assert (await admin.lag("reader"))["backlog"] == 2
    planned = await admin.seek("reader", {"from": "latest"}, dry_run=True)
    assert planned["partitions"][0]["skipped"] == 2
    await admin.seek("reader", {"offset": 1}, partitions=[0])
    assert (await admin.lag("reader"))["partitions"][0]["next_offset"] == 1
    assert (await admin.pause_subscription("reader"))["status"]["state"] == "paused"
    assert (await admin.resume_subscription("reader"))["status"]["state"] == "active"
    spec = {"topicRef": {"name": "lived"}, "ack": {"deadline": "5s"}}
    replaced = await admin.replace_subscription("reader", spec)
    assert replaced["spec"]["ack"]["deadline"] == "5s"
    assert await admin.delete_subscription("reader") == "detached"
    await admin.create_subscription("reader", spec)
    assert (await admin.lag("reader"))["partitions"][0]["next_offset"] == 1
    assert await admin.delete_subscription("reader", policy="Delete") == "deleted"


async def test_leases_are_settled_one_way_or_the_other(ibrik: ibrik_client.Client) -> None:
    admin = ibrik.admin
    await admin.create_topic("leased")
    await admin.create_subscription("worker", {"topicRef": {"name": "leased"}, "type": "shared"})
    assert await admin.lease("worker") == []
    waiting = asyncio.ensure_future(admin.lease("worker", wait_s=10))
    await ibrik.publish_many("leased", [{"n": 1}], key="k")
    (first,) = await waiting
    assert (first.message.json(), first.message.key, first.attempt) == ({"n": 1}, b"k", 1)
    assert (first.message.topic, first.message.partition) == ("leased", 0)
    assert await admin.nack("worker", [first.token], delay="0s", reason="busy") == []
    (second,) = await admin.lease("worker", wait_s=10, max_messages=1)
    assert (second.message.offset, second.attempt) == (0, 2)
    (stale,) = await admin.ack("worker", [first.token, second.token])
    assert (stale["index"], stale["code"]) == (0, "lease-expired")


async def test_publishers_and_subscribers_register(ibrik: ibrik_client.Client) -> None:
    admin = ibrik.admin
    await admin.create_topic("open")
    made = await admin.register_publisher("open", "shop")
    assert made["created"]
    assert made["token"]
    assert "token" not in await admin.register_publisher("open", "shop")
    rotated = await admin.rotate_publisher("open", "shop")
    assert rotated["token"] != made["token"]
    assert [p["name"] for p in await admin.publishers("open")] == ["shop"]
    assert "shop" in [p["name"] for p in await admin.publishers()]
    await admin.remove_publisher("open", "shop")
    assert await admin.publishers("open") == []
    url = "http://127.0.0.1:9/hook"
    first = await admin.register_subscriber("open", url, method="PUT", headers={"x": "y"})
    again = await admin.register_subscriber("open", url, method="PUT", headers={"x": "y"})
    assert (first["created"], again["created"], again["id"]) == (True, False, first["id"])
    assert [s["url"] for s in await admin.subscribers("open")] == [url]
    await admin.remove_subscriber("open", first["id"])
    assert await admin.subscribers("open") == []


async def test_a_test_message_is_sent_once_even_when_the_answer_is_lost() -> None:
    lost = Reply(503, b'{"code":"not-ready","status":503,"retryable":true,"detail":"later"}')
    async with scripted_server([lost]) as server, ibrik_client.connect(server.url) as client:
        with pytest.raises(ibrik_client.Unavailable):
            await client.admin.test_channel("a/b")
        assert [r[:2] for r in server.requests] == [("POST", "/v1/channels/a%2Fb:test")]


def test_leases_that_are_none_are_a_failure_of_the_broker() -> None:
    with pytest.raises(ServerFailed, match="leases that are not understood"):
        decode_leases(b'{"topic":"a","messages":[{"offset":1}]}')
