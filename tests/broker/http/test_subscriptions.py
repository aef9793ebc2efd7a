"""Subscriptions over HTTP: create, list, change, delete, pause and resume."""

from typing import Any

import pytest

from tests.broker.http.receiver import receiving
from tests.broker.http.rig import Reply, Rig

SUBSCRIPTIONS = "/v1/subscriptions"
METADATA = {"http": {"url": "http://169.254.169.254/latest"}}
HOOK = {"http": {"url": "http://127.0.0.1:9/hook"}}


def resource(name: str, topic: str = "orders", **spec: Any) -> dict[str, Any]:
    return {
        "kind": "Subscription",
        "metadata": {"name": name},
        "spec": {"topicRef": {"name": topic}} | spec,
    }


async def put(rig: Rig, name: str, *, headers: Any = None, **spec: Any) -> Reply:
    path = f"{SUBSCRIPTIONS}/{name}"
    return await rig.call("PUT", path, resource(name, **spec), headers=headers)


async def test_a_subscription_is_created_once(rig: Rig) -> None:
    created = await rig.call("POST", SUBSCRIPTIONS, resource("billing"))
    assert (created.status, created.headers["Location"]) == (201, f"{SUBSCRIPTIONS}/billing")
    assert created.json["status"]["topic"] == "orders"
    again = await rig.call("POST", SUBSCRIPTIONS, resource("billing"))
    assert (again.status, again.headers["ETag"]) == (200, created.headers["ETag"])
    other = await rig.call("POST", SUBSCRIPTIONS, resource("billing", filter="true"))
    other.refused("subscription-exists")
    assert (await rig.call("GET", f"{SUBSCRIPTIONS}/billing")).json["spec"] == again.json["spec"]


async def test_a_change_can_depend_on_what_was_read(rig: Rig) -> None:
    (await put(rig, "billing", headers={"If-Match": '"1"'})).refused("precondition-failed")
    first = await put(rig, "billing", headers={"If-None-Match": "*"})
    (await put(rig, "billing", headers={"If-None-Match": "*"})).refused("precondition-failed")
    etag = first.headers["ETag"]
    changed = await put(rig, "billing", rateLimit=5, headers={"If-Match": etag})
    assert changed.status == 200
    (await put(rig, "billing", rateLimit=6, headers={"If-Match": etag})).refused(
        "precondition-failed"
    )
    path = f"{SUBSCRIPTIONS}/billing"
    known = {"If-None-Match": changed.headers["ETag"]}
    assert (await rig.call("GET", path, headers=known)).status == 304
    (await rig.call("DELETE", path, headers={"If-Match": etag})).refused("precondition-failed")


async def test_subscriptions_are_listed_page_by_page_and_by_topic(rig: Rig) -> None:
    await rig.create("bills")
    for name, topic in (("c", "orders"), ("a", "orders"), ("b", "bills")):
        await put(rig, name, topic=topic)
    assert await names(rig, "page_size=2") == ["a", "b", "c"]
    assert await names(rig, "topic=orders&page_size=1") == ["a", "c"]
    assert await names(rig, "topic=nothing") == []
    (await rig.call("GET", f"{SUBSCRIPTIONS}?topic=No%20Name")).refused("invalid-name")
    (await rig.call("GET", f"{SUBSCRIPTIONS}?topik=orders")).refused("invalid-request")


async def names(rig: Rig, query: str) -> list[str]:
    found: list[str] = []
    token = ""
    while True:
        page = (await rig.call("GET", f"{SUBSCRIPTIONS}?{query}&page_token={token}")).json
        found += [item["metadata"]["name"] for item in page["items"]]
        if "nextPageToken" not in page:
            return found
        token = page["nextPageToken"]


async def test_deleting_detaches_and_creating_brings_back(rig: Rig) -> None:
    first = await put(rig, "billing")
    path = f"{SUBSCRIPTIONS}/billing"
    deleted = await rig.call("DELETE", path)
    assert (deleted.status, deleted.headers["Ibrik-Subscription-State"]) == (204, "detached")
    for method, verb in (("GET", ""), ("DELETE", ""), ("POST", ":pause"), ("POST", ":resume")):
        (await rig.call(method, path + verb)).refused("subscription-detached")
    assert (await rig.call("GET", SUBSCRIPTIONS)).json["items"] == []
    back = await put(rig, "billing")
    assert back.json["status"]["subscriptionId"] == first.json["status"]["subscriptionId"]


async def test_a_policy_can_be_given_with_the_deletion(rig: Rig) -> None:
    first = await put(rig, "billing")
    path = f"{SUBSCRIPTIONS}/billing"
    (await rig.call("DELETE", f"{path}?policy=Vanish")).refused("invalid-request")
    await rig.call("DELETE", path)
    deleted = await rig.call("DELETE", f"{path}?policy=Delete")
    assert (deleted.status, deleted.headers["Ibrik-Subscription-State"]) == (204, "deleted")
    (await rig.call("DELETE", f"{path}?policy=Delete")).refused("unknown-subscription")
    again = await put(rig, "billing")
    assert again.json["status"]["subscriptionId"] != first.json["status"]["subscriptionId"]


async def test_a_paused_subscription_holds_back_until_it_is_resumed(rig: Rig) -> None:
    async with receiving() as receiver:
        await put(rig, "billing", mode="push", push={"http": {"url": receiver.url}})
        path = f"{SUBSCRIPTIONS}/billing"
        paused = await rig.call("POST", f"{path}:pause")
        assert paused.json["status"]["state"] == "paused"
        await rig.publish(b"1")
        assert (await rig.call("GET", path)).json["status"]["backlog"] == 1
        resumed = await rig.call("POST", f"{path}:resume")
        assert resumed.json["status"]["state"] != "paused"
        await receiver.until(lambda: receiver.bodies == [b"1"])


async def test_a_wish_for_pause_is_not_resumed_by_an_action(rig: Rig) -> None:
    await put(rig, "billing", paused=True)
    (await rig.call("POST", f"{SUBSCRIPTIONS}/billing:resume")).refused("subscription-paused")
    assert (await put(rig, "billing", paused=False)).json["status"]["state"] == "active"


async def test_what_is_fixed_stays(rig: Rig) -> None:
    await put(rig, "billing")
    await rig.create("bills")
    (await put(rig, "billing", topic="bills")).refused("immutable-field")
    assert (await rig.call("GET", f"{SUBSCRIPTIONS}/billing")).json["status"]["topic"] == "orders"


async def test_a_queue_topic_has_one_push_subscription(rig: Rig) -> None:
    await rig.create("jobs", dispatch="queue")
    assert (await put(rig, "first", topic="jobs", mode="push", push=HOOK)).status == 201
    (await put(rig, "second", topic="jobs", mode="push", push=HOOK)).refused("shared-needs-pull")
    assert (await put(rig, "third", topic="jobs", mode="pull")).status == 201


async def test_a_subscription_to_a_detached_topic_is_refused(rig: Rig) -> None:
    await rig.call("DELETE", "/v1/topics/orders")
    (await put(rig, "billing")).refused("topic-detached")


async def test_a_subscription_of_a_resource_is_read_only(rig: Rig) -> None:
    document = resource("billing") | {"apiVersion": "ibrik.dev/v1beta1"}
    topic = {"apiVersion": "ibrik.dev/v1beta1", "kind": "Topic", "metadata": {"name": "orders"}}
    outcomes = await rig.catalogue.desired.apply([topic | {"spec": {}}, document])
    assert outcomes[1].result == "applied", outcomes
    (await put(rig, "billing", rateLimit=5)).refused("managed-by-resource")
    (await rig.call("DELETE", f"{SUBSCRIPTIONS}/billing")).refused("managed-by-resource")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "invalid-json"),
        (b"{", "invalid-json"),
        ([], "invalid-resource"),
        ({"metadata": {"name": "billing"}, "spec": {}}, "invalid-resource"),
        (resource("other"), "invalid-request"),
        (resource("billing", "ordres"), "unknown-topic"),
        (resource("billing", "No Name"), "invalid-resource"),
        (resource("billing", colour="red"), "invalid-resource"),
        (resource("billing", mode="fax"), "invalid-resource"),
        (resource("billing", mode="push"), "invalid-resource"),
        (resource("billing", mode="push", channelRef={"name": "nowhere"}), "unknown-channel"),
        (
            resource("billing", mode="push", push={"http": {"url": "ftp://x.y"}}),
            "invalid-destination",
        ),
        (resource("billing", mode="push", push=METADATA), "egress-denied"),
        (resource("billing", filter="event.type =="), "invalid-filter"),
        (resource("billing", filter="x" * 4_097), "invalid-resource"),
        (resource("billing", ack={"deadline": "13h"}), "invalid-resource"),
        (resource("billing", replay={"requestId": "1", "from": "0"}), "unsupported-field"),
    ],
)
async def test_a_wrong_subscription_changes_nothing(rig: Rig, body: Any, code: str) -> None:
    (await rig.call("PUT", f"{SUBSCRIPTIONS}/billing", body)).refused(code)
    (await rig.call("GET", f"{SUBSCRIPTIONS}/billing")).refused("unknown-subscription")
    assert (await rig.call("GET", SUBSCRIPTIONS)).json["items"] == []
