"""Topics over HTTP: create, list, read, replace, delete, purge."""

from typing import Any

from tests.broker.http.rig import Rig


def resource(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "ibrik.dev/v1beta1",
        "kind": "Topic",
        "metadata": {"name": name},
        "spec": spec,
    }


async def put(rig: Rig, name: str, headers: dict[str, str] | None = None, **spec: Any) -> Any:
    return await rig.call("PUT", f"/v1/topics/{name}", resource(name, **spec), headers=headers)


async def test_a_topic_is_created_once(rig: Rig) -> None:
    created = await rig.call("POST", "/v1/topics", resource("bills", partitions=2))
    assert created.status == 201
    assert created.headers["Location"] == "/v1/topics/bills"
    assert created.json["spec"]["partitions"] == 2
    assert created.json["status"]["origin"] == "api"
    again = await rig.call("POST", "/v1/topics", resource("bills", partitions=2))
    assert again.status == 200
    assert again.json["status"]["topicId"] == created.json["status"]["topicId"]
    (await rig.call("POST", "/v1/topics", resource("bills"))).refused("topic-exists")


async def test_topics_are_listed_page_by_page(rig: Rig) -> None:
    for name in ("a", "b", "c"):
        await rig.create(name)
    names: list[str] = []
    token = ""
    while True:
        page = (await rig.call("GET", f"/v1/topics?page_size=3&page_token={token}")).json
        names += [item["metadata"]["name"] for item in page["items"]]
        if "nextPageToken" not in page:
            break
        token = page["nextPageToken"]
    assert names == ["a", "b", "c", "orders"]
    for query in ("page_size=0", "page_size=501", "page_token=!", "page_token=_w"):
        (await rig.call("GET", f"/v1/topics?{query}")).refused("invalid-request")


async def test_a_put_is_idempotent(rig: Rig) -> None:
    first = await put(rig, "bills", partitions=2)
    second = await put(rig, "bills", partitions=2)
    assert (first.status, second.status) == (201, 200)
    assert second.headers["ETag"] == first.headers["ETag"]
    third = await put(rig, "bills", partitions=3)
    assert third.headers["ETag"] != first.headers["ETag"]
    assert (await rig.call("GET", "/v1/topics/bills")).json == third.json


async def test_a_change_can_depend_on_what_was_read(rig: Rig) -> None:
    etag = (await rig.call("GET", "/v1/topics/orders")).headers["ETag"]
    assert (await put(rig, "orders", {"If-Match": etag}, partitions=2)).status == 200
    (await put(rig, "orders", {"If-Match": etag}, partitions=3)).refused("precondition-failed")
    (await put(rig, "orders", {"If-Match": '"x"'}, partitions=3)).refused("precondition-failed")
    (await put(rig, "other", {"If-Match": "*"})).refused("precondition-failed")
    (await put(rig, "other", {"If-Match": '"1"'})).refused("precondition-failed")
    (await put(rig, "orders", {"If-None-Match": "*"})).refused("precondition-failed")
    (await put(rig, "orders", {"If-None-Match": '"1"'})).refused("invalid-request")
    assert (await put(rig, "orders", {"If-Match": "*"}, partitions=3)).status == 200
    reply = await rig.call("DELETE", "/v1/topics/orders", headers={"If-Match": etag})
    reply.refused("precondition-failed")


async def test_what_is_known_is_not_sent_again(rig: Rig) -> None:
    etag = (await rig.call("GET", "/v1/topics/orders")).headers["ETag"]
    reply = await rig.call("GET", "/v1/topics/orders", headers={"If-None-Match": etag})
    assert (reply.status, reply.body) == (304, b"")


async def test_a_topic_never_shrinks(rig: Rig) -> None:
    await put(rig, "bills", partitions=2)
    (await put(rig, "bills", partitions=1)).refused("partitions-shrink")


async def test_deleting_detaches_and_creating_brings_back(rig: Rig) -> None:
    await rig.publish(b"1")
    deleted = await rig.call("DELETE", "/v1/topics/orders")
    assert (deleted.status, deleted.headers["Ibrik-Topic-State"]) == (204, "detached")
    (await rig.call("GET", "/v1/topics/orders")).refused("topic-detached")
    (await rig.publish(b"2")).refused("topic-detached")
    assert (await rig.call("POST", "/v1/topics", resource("orders"))).status in (200, 201)
    assert await rig.values() == [1]


async def test_a_policy_can_be_given_with_the_deletion(rig: Rig) -> None:
    await rig.publish(b"1")
    path = "/v1/topics/orders?policy="
    (await rig.call("DELETE", path + "Vanish")).refused("invalid-request")
    (await rig.call("DELETE", path + "DeleteIfEmpty")).refused("topic-not-empty")
    deleted = await rig.call("DELETE", path + "Delete")
    assert deleted.headers["Ibrik-Topic-State"] == "deleted"
    (await rig.call("DELETE", path + "Delete")).refused("unknown-topic")


async def test_purging_leaves_the_offsets_where_they_are(rig: Rig) -> None:
    await rig.publish(b"1")
    purged = await rig.call("POST", "/v1/topics/orders:purge")
    assert (purged.json["partitions"][0]["earliest"], purged.status) == (1, 200)
    assert (await rig.publish(b"2")).json["offset"] == 1
    (await rig.call("POST", "/v1/topics/ordres:purge")).refused("unknown-topic")


async def test_producer_ids_are_given_once(rig: Rig) -> None:
    first = (await rig.call("POST", "/v1/producers")).json
    second = (await rig.call("POST", "/v1/producers")).json
    assert first["epoch"] == 0
    assert first["id"] != second["id"]


async def test_an_expectation_is_answered_here_too(rig: Rig) -> None:
    head = b"POST /v1/topics HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: "
    (await rig.raw(head + b"miracles\r\n\r\n")).refused("expectation-failed")
    assert (await rig.raw(head + b"100-continue\r\n\r\n")).status == 100
