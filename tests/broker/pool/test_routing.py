"""Any broker serves any request: real brokers, a real Postgres."""

import http.client
import json
import socket
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest

from tests.support.pool import PoolOfBrokers, resource, topic

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

BROKERS = (0, 1, 2)


def other(owner: int) -> int:
    return (owner + 1) % 3


def test_topics_are_spread_evenly_and_each_has_one_owner(pool: PoolOfBrokers) -> None:
    names = [f"spread-{n}" for n in range(9)]
    for n, name in enumerate(names):
        assert pool.topic(n % 3, name).status == 201
    owners = [pool.owner(name) for name in names]
    assert sorted(owners) == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_what_is_published_through_any_broker_is_read_through_any_other(
    pool: PoolOfBrokers,
) -> None:
    assert pool.topic(0, "orders").status == 201
    for number in BROKERS:
        answer = pool.publish(number, "orders", f"by {number}".encode())
        assert (answer.status, answer.json["offset"]) == (201, number)
    for number in BROKERS:
        assert pool.values(number, "orders") == ["by 0", "by 1", "by 2"]


def test_a_repeat_through_another_broker_is_answered_with_the_first(pool: PoolOfBrokers) -> None:
    assert pool.topic(1, "once").status == 201
    first = pool.publish(0, "once", b"x", **{"Idempotency-Key": "k"})
    again = pool.publish(1, "once", b"x", **{"Idempotency-Key": "k"})
    assert (first.status, again.status) == (201, 200)
    assert again.json["offset"] == first.json["offset"]


def test_a_large_body_goes_through_as_it_comes(pool: PoolOfBrokers) -> None:
    assert pool.topic(0, "large", maxMessageBytes="8Mi").status == 201
    value = bytes(range(256)) * 4 * 4096
    answer = pool.publish(other(pool.owner("large")), "large", value)
    assert answer.status == 201, answer
    refused = pool.publish(other(pool.owner("large")), "large", value * 3)
    assert refused.json["code"] == "message-too-large"


def test_the_admin_door_tells_of_its_own_archives_only(pool: PoolOfBrokers) -> None:
    assert pool.topic(0, "kept").status == 201
    owner, path = pool.owner("kept"), "/admin/v1/topics/kept/archive"
    assert pool.request(owner, "GET", path, is_admin=True).json["topic"] == "kept"
    refused = pool.request(other(owner), "GET", path, is_admin=True)
    assert (refused.status, refused.json["code"]) == (421, "owner-elsewhere")
    assert pool.name(owner) in refused.json["detail"]


def test_refusals_of_the_owner_come_through(pool: PoolOfBrokers) -> None:
    for number in BROKERS:
        answer = pool.publish(number, "nowhere", b"x")
        assert (answer.status, answer.json["code"]) == (404, "unknown-topic")
    assert pool.topic(0, "refusing", maxMessageBytes="1Ki").status == 201
    answer = pool.publish(other(pool.owner("refusing")), "refusing", b"x" * 2000)
    assert answer.json["code"] == "message-too-large"


@pytest.mark.parametrize("size", [100, 2000])
def test_a_client_that_asks_first_hears_the_owner(pool: PoolOfBrokers, size: int) -> None:
    pool.topic(0, "asking", maxMessageBytes="1Ki")
    place = urlsplit(pool.brokers[other(pool.owner("asking"))].http_url)
    head = (
        f"POST /v1/topics/asking/messages HTTP/1.1\r\nHost: {place.netloc}\r\n"
        f"Content-Type: text/plain\r\nContent-Length: {size}\r\nExpect: 100-continue\r\n\r\n"
    )
    assert place.hostname is not None
    with socket.create_connection((place.hostname, place.port or 0), timeout=20) as connection:
        connection.sendall(head.encode())
        first = connection.recv(65_536)
        if size > 1024:
            assert first.startswith(b"HTTP/1.1 413 ")
            return
        assert first == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(b"x" * size)
        assert connection.recv(65_536).startswith(b"HTTP/1.1 201 ")


def test_a_live_stream_comes_through_another_broker(pool: PoolOfBrokers) -> None:
    pool.topic(0, "live")
    place = urlsplit(pool.brokers[other(pool.owner("live"))].http_url)
    assert place.hostname is not None
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=20)
    connection.request("GET", "/v1/topics/live/stream?from=earliest")
    answer = connection.getresponse()
    assert answer.status == 200
    assert answer.headers["Content-Type"].startswith("text/event-stream")
    for value in (b"one", b"two"):
        assert pool.publish(pool.owner("live"), "live", value).status == 201
        while not (line := answer.readline()).startswith(b"data:"):
            assert line, "the stream goes on"
    connection.close()


def test_the_tcp_door_names_the_owner(pool: PoolOfBrokers) -> None:
    pool.topic(0, "wired")
    owner = pool.owner("wired")
    assert pool.exchange(owner, b"PUB wired 1\r\nx") == b"OK 0\r\n"
    answer = pool.exchange(other(owner), b"PUB wired 1\r\nxFETCH wired 0\r\n")
    lines = answer.decode().splitlines()
    assert [line.split()[:2] for line in lines] == [["ERR", "owner-elsewhere"]] * 2
    assert f"served by broker {pool.name(owner)}." in lines[0]


def test_topics_are_changed_and_deleted_through_any_broker(pool: PoolOfBrokers) -> None:
    assert pool.request(2, "POST", "/v1/topics", topic("changing")).status == 201
    away = other(pool.owner("changing"))
    known = pool.request(away, "GET", "/v1/topics/changing")
    assert known.status == 200
    changed = pool.request(
        away,
        "PUT",
        "/v1/topics/changing",
        topic("changing", partitions=3, deletionPolicy="Delete"),
        headers={"If-Match": known.headers["Etag"]},
    )
    assert (changed.status, changed.json["spec"]["partitions"]) == (200, 3)
    assert pool.request(away, "DELETE", "/v1/topics/changing").status == 204
    for number in BROKERS:
        assert pool.request(number, "GET", "/v1/topics/changing").status == 404
    assert pool.topic(away, "changing").status == 201


def test_messages_are_leased_and_settled_through_any_broker(pool: PoolOfBrokers) -> None:
    pool.topic(0, "work")
    wish = resource("Subscription", "workers", topicRef={"name": "work"}, mode="pull")
    assert pool.request(1, "POST", "/v1/subscriptions", wish).status == 201
    for n in range(3):
        pool.publish(n, "work", b"%d" % n)
    path = "/v1/subscriptions/workers"
    for number in BROKERS:
        leased = pool.request(number, "POST", f"{path}:lease", {"max": 1})
        assert leased.status == 200, leased
        (message,) = leased.json["messages"]
        assert message["offset"] == number
        token = {"leases": [message["lease"]]}
        settled = pool.request(other(number), "POST", f"{path}:ack", token)
        assert settled.status == 200, settled
    assert pool.request(0, "GET", f"{path}/lag").json["backlog"] == 0
    for number in BROKERS:
        seen = pool.request(number, "GET", path)
        assert (seen.status, seen.json["status"]["backlog"]) == (200, 0)


def test_a_stranger_is_not_believed_to_be_a_broker(pool: PoolOfBrokers) -> None:
    pool.topic(0, "strange")
    away = other(pool.owner("strange"))
    answer = pool.publish(away, "strange", b"x", **{"Pool-Token": "guessed", "Pool-Client": "::1"})
    assert answer.status == 201
    refused = pool.request(0, "POST", "/admin/v1/pool:refresh", b"", is_admin=True)
    assert (refused.status, refused.json["code"]) == (401, "unauthorized")


def test_producers_through_any_broker_get_ids_of_their_own(pool: PoolOfBrokers) -> None:
    ids = [pool.request(n, "POST", "/v1/producers").json["id"] for n in BROKERS]
    assert len(set(ids)) == 3


def test_replays_run_at_the_owner_and_are_seen_from_any_broker(pool: PoolOfBrokers) -> None:
    pool.topic(0, "original")
    owner = pool.owner("original")
    n = 0
    while pool.topic(0, f"copy-{n}") and pool.owner(f"copy-{n}") == owner:
        n += 1
    for value in (b"a", b"b"):  # Of one key: others have no order.
        pool.publish(0, "original", value, **{"Ibrik-Key": "k"})
    wish = {
        "source": {"topic": "original", "from": {"offset": 0}},
        "target": {"topic": f"copy-{n}"},
    }
    begun = pool.request(other(owner), "POST", "/v1/replays", wish)
    assert begun.status == 202, begun
    path = f"/v1/replays/{begun.json['id']}"
    while (seen := pool.request(other(owner), "GET", path).json)["state"] == "running":
        pass
    assert seen["state"] == "done", json.dumps(seen)
    assert pool.values(2, f"copy-{n}") == ["a", "b"]


def test_a_topic_that_is_made_through_all_brokers_at_once_has_one_owner(
    pool: PoolOfBrokers,
) -> None:
    for n in range(4):
        name = f"raced-{n}"
        with ThreadPoolExecutor(3) as threads:
            answers = list(threads.map(pool.topic, BROKERS, [name] * 3))
        # Who came second while it was being made is told to send the request again.
        assert {answer.status for answer in answers} <= {200, 201, 503}, answers
        assert 201 in {answer.status for answer in answers}
        assert pool.owner(name) in BROKERS
        assert [pool.publish(number, name, b"x").json["offset"] for number in BROKERS] == [0, 1, 2]
