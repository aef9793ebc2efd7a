"""What the doors refuse, on one broker for all: a refusal changes nothing, so they cannot meet."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from ibrik_log.batch import encode
from ibrik_log.record import Record
from tests.broker.http.rig import RAW, Rig, running_doors
from tests.broker.http.wrong import WRONG

pytestmark = pytest.mark.asyncio(loop_scope="module")

GET = b"GET /v1/topics HTTP/1.1\r\nHost: x\r\n"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rig(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Rig]:
    async with running_doors(tmp_path_factory.mktemp("refusals")) as rig:
        yield rig


@pytest.mark.parametrize(
    "headers",
    [
        {"ce-id": "1"},
        {"ce-specversion": "0.3", "ce-id": "1", "ce-source": "s", "ce-type": "t"},
        {"ce-specversion": "1.0", "ce-id": "", "ce-source": "s", "ce-type": "t"},
        {"ce-Not_A_Name": "1"},
        {"ce-specversion": "1.0", "ce-id": "%ff", "ce-source": "s", "ce-type": "t"},
    ],
)
async def test_half_a_cloudevent_is_refused(rig: Rig, headers: dict[str, str]) -> None:
    (await rig.publish(**headers)).refused("invalid-cloudevent")
    assert await rig.values_or_nothing() == []


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"specversion":"1.0"}',
        b'{"specversion":"1.0","id":"1","source":"s","type":"t","data":1,"data_base64":""}',
        b'{"specversion":"1.0","id":"1","source":"s","type":"t","data_base64":"!"}',
        b'{"specversion":"1.0","id":"1","source":"s","type":"t","data_base64":7}',
        b'{"specversion":"1.0","id":"1","source":"s","type":"t","nested":{}}',
        b'{"specversion":"1.0","id":"1","source":"s","type":"t","Upper":"x"}',
        b'{"specversion":"1.0","id":"1","source":"s","type":"t","data":"\xff"}',
        b"[" * 100_000,
    ],
)
async def test_a_broken_structured_event_is_refused(rig: Rig, body: bytes) -> None:
    reply = await rig.publish(body, Content_Type="application/cloudevents+json")
    reply.refused("invalid-cloudevent")


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"Ibrik-Partition": "1"}, "unknown-partition"),
        ({"Ibrik-Partition": "-1"}, "invalid-request"),
        ({"Ibrik-Partition": "00000"}, "invalid-request"),
        ({"Ibrik-Kye": "7"}, "invalid-request"),
        ({"Ibrik-Meta-": "7"}, "invalid-request"),
        ({"Ibrik-Meta-ce_id": "7"}, "invalid-request"),
        ({"Ibrik-Meta-content-type": "7"}, "invalid-request"),
        ({"Idempotency-Key": ""}, "invalid-request"),
        ({"Idempotency-Key": "x" * 1025}, "invalid-request"),
        ({"Content-Encoding": "br"}, "unsupported-encoding"),
    ],
)
async def test_a_wrong_header_is_refused(rig: Rig, headers: dict[str, str], code: str) -> None:
    (await rig.publish(**headers)).refused(code)
    assert await rig.values_or_nothing() == []


@pytest.mark.parametrize("name", ["Ibrik-Key", "Idempotency-Key", "Ibrik-Meta-a"])
async def test_a_header_given_twice_is_refused(rig: Rig, name: str) -> None:
    head = f"POST /v1/topics/orders/messages HTTP/1.1\r\nHost: x\r\n{name}: 1\r\n{name}: 2\r\n\r\n"
    (await rig.raw(head.encode())).refused("invalid-request")


@pytest.mark.parametrize(
    ("query", "code"),
    [("?acks=all", "invalid-request"), ("?ack=none", "invalid-request")],
)
async def test_a_wrong_query_is_refused(rig: Rig, query: str, code: str) -> None:
    problem = (await rig.call("POST", f"/v1/topics/orders/messages{query}", b"x")).refused(code)
    assert "acks" in problem["detail"]


@pytest.mark.parametrize("name", ["Orders", "a%2Fb", "-a", "%00", "x" * 254])
async def test_what_no_topic_can_be_called_is_refused(rig: Rig, name: str) -> None:
    (await rig.publish(topic=name)).refused("invalid-name")


@pytest.mark.parametrize(
    ("path", "expect", "code"),
    [
        ("ordres/messages", "100-continue", "unknown-topic"),
        ("ordres/batch", "100-continue", "unknown-topic"),
        ("orders/batch", "100-continue", "unsupported-media-type"),
        ("orders/messages", "200-ok", "expectation-failed"),
    ],
)
async def test_what_the_head_says_is_refused_instead_of_continued(
    rig: Rig, path: str, expect: str, code: str
) -> None:
    head = (
        f"POST /v1/topics/{path} HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: {expect}\r\n"
        "Content-Type: text/plain\r\n\r\n"
    )
    (await rig.raw(head.encode())).refused(code)


@pytest.mark.parametrize(("envelope", "code"), WRONG)
async def test_a_wrong_message_refuses_all_and_is_named(rig: Rig, envelope: Any, code: str) -> None:
    reply = await rig.batch({"messages": [{"value": 1}, envelope, {"value": 2}, envelope]})
    problem = reply.refused("invalid-messages")
    assert [(e["index"], e["code"]) for e in problem["errors"]] == [(1, code), (3, code)]
    assert problem["errors"][0]["pointer"] == "/messages/1"
    assert problem["invalid_count"] == 2
    assert await rig.values_or_nothing() == []


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "invalid-json"),
        (b"{", "invalid-json"),
        (b'{"messages":[{"value":1},}', "invalid-json"),
        (b'{"messages":[{"value":"\xff"}]}', "invalid-messages"),
        (b"[" * 100_000, "invalid-request"),
        (b'{"messages":' + b"[" * 100_000, "invalid-json"),
        (b"[]", "invalid-request"),
        (b'{"messages":{}}', "invalid-request"),
        (b'{"massages":[]}', "invalid-request"),
        (b'{"messages":[]}', "invalid-request"),
    ],
)
async def test_what_is_no_batch_is_refused(rig: Rig, body: bytes, code: str) -> None:
    (await rig.batch(body)).refused(code)
    assert await rig.values_or_nothing() == []


@pytest.mark.parametrize("media_type", ["text/plain", "application/xml", ""])
async def test_another_content_type_is_refused(rig: Rig, media_type: str) -> None:
    (await rig.batch(b"{}", media_type)).refused("unsupported-media-type")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda frame: b"", "invalid-batch"),
        (lambda frame: frame[:60], "invalid-batch"),
        (lambda frame: frame[:-1], "invalid-batch"),
        (lambda frame: frame + b"x", "invalid-batch"),
        (lambda frame: frame[:22] + b"\x01" + frame[23:], "batch-compressed"),
        (lambda frame: frame[:22] + b"\x10" + frame[23:], "invalid-batch"),
        (lambda frame: frame[:22] + b"\x20" + frame[23:], "invalid-batch"),
        (lambda frame: frame[:-1] + bytes([frame[-1] ^ 1]), "invalid-batch"),
    ],
)
async def test_a_broken_raw_batch_changes_nothing(rig: Rig, change: Any, code: str) -> None:
    frame = bytes(encode([Record(None, b"abc", [])]))
    (await rig.batch(frame + change(frame) if change(frame) else b"", RAW)).refused(code)
    assert await rig.values_or_nothing() == []


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", "invalid-json"),
        (b"", "invalid-json"),
        (b"\xff", "invalid-json"),
        (b"[]", "invalid-resource"),
        ({"metadata": {"name": "Bills"}}, "invalid-resource"),
        ({"metadata": {"name": "bills"}, "spec": {"partition": 2}}, "invalid-resource"),
        ({"metadata": {"name": "bills"}, "spec": {"partitions": 0}}, "invalid-resource"),
        ({"metadata": {"name": "bills"}, "spec": {"retention": {"time": 5}}}, "invalid-resource"),
        ({"metadata": {"name": "bills"}, "spec": {"cleanup": "compact"}}, "unsupported-field"),
        ({"metadata": {"name": "other"}}, "invalid-request"),
    ],
)
async def test_a_wrong_resource_changes_nothing(rig: Rig, body: Any, code: str) -> None:
    (await rig.call("PUT", "/v1/topics/bills", body)).refused(code)
    (await rig.call("GET", "/v1/topics/bills")).refused("unknown-topic")


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_a_name_that_is_none_is_refused(rig: Rig, method: str) -> None:
    body = {"metadata": {"name": "x"}} if method == "PUT" else None
    (await rig.call(method, "/v1/topics/No%20Name", body)).refused("invalid-name")


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\x00\x01\x02\x03\r\n\r\n",
        b"PUB orders 5\r\nhello\r\n",
        b"GET /v1/topics HTTP/1.1\r\nno colon\r\n\r\n",
        GET + b"Content-Length: x\r\n\r\n",
        GET + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
        GET + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        GET + b"A: \x00\r\n\r\n",
    ],
)
async def test_what_is_no_http_is_a_problem_document(rig: Rig, request_bytes: bytes) -> None:
    reply = await rig.raw(request_bytes)
    reply.refused("invalid-request")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", "/v1/topics", "GET, POST"),
        ("GET", "/v1/topics/orders/messages", "POST"),
        ("PATCH", "/v1/topics/orders", "DELETE, GET, PUT"),
        ("TRACE", "/v1/topics/orders/stream", "GET"),
        ("OPTIONS", "/v1/topics", "GET, POST"),
    ],
)
async def test_another_method_is_refused_with_those_that_are_served(
    rig: Rig, method: str, path: str, allowed: str
) -> None:
    reply = await rig.call(method, path)
    reply.refused("method-not-allowed")
    assert reply.headers["Allow"] == allowed


@pytest.mark.parametrize(
    ("query", "last_id", "code"),
    [
        ("?from=now", "", "invalid-request"),
        ("?from=latest&offset=0", "", "invalid-request"),
        ("?offset=x", "", "invalid-offset"),
        ("?offset=0,0", "", "invalid-offset"),
        ("?offset=1", "", "offset-above-end"),
        ("?filter=x", "", "unsupported-field"),
        ("?form=latest", "", "invalid-request"),
        ("", "!", "invalid-request"),
        ("", "AAAA", "invalid-request"),
    ],
)
async def test_a_wrong_beginning_is_refused(rig: Rig, query: str, last_id: str, code: str) -> None:
    headers = {"Last-Event-ID": last_id} if last_id else {}
    reply = await rig.call("GET", f"/v1/topics/orders/stream{query}", headers=headers)
    reply.refused(code)


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("?offset=-1", "invalid-offset"),
        ("?offset=", "invalid-offset"),
        ("?offset=x", "invalid-offset"),
        ("?offset=9223372036854775808", "invalid-offset"),
        ("?offset=%D9%A3", "invalid-offset"),
        ("?offset=0&from=latest", "invalid-request"),
        ("?from=newest", "invalid-request"),
        ("?timestamp=yesterday", "invalid-request"),
        ("?timestamp=2026-13-01T00:00:00Z", "invalid-request"),
        ("?max=0", "invalid-request"),
        ("?max=10001", "invalid-request"),
        ("?max_bytes=x", "invalid-request"),
        ("?wait=5", "invalid-request"),
        ("?wait=2h", "invalid-request"),
        ("?ofset=1", "invalid-request"),
        ("?filter=true", "unsupported-field"),
    ],
)
async def test_a_wrong_question_is_refused(rig: Rig, query: str, code: str) -> None:
    (await rig.read(query)).refused(code)


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("ordres/partitions", "unknown-topic"),
        ("orders/partitions/1/messages", "unknown-partition"),
        ("orders/partitions/x/messages", "invalid-request"),
        ("orders/partitions/1/messages/0", "unknown-partition"),
        ("orders/partitions/0/messages/x", "invalid-offset"),
        ("Orders/stream", "invalid-name"),
    ],
)
async def test_a_place_that_is_none_is_refused(rig: Rig, path: str, code: str) -> None:
    (await rig.call("GET", f"/v1/topics/{path}")).refused(code)


@pytest.mark.parametrize("origin", ["https://elsewhere.example", "null", "http://127.0.0.1:1"])
async def test_a_page_of_another_site_changes_nothing(rig: Rig, origin: str) -> None:
    (await rig.publish(Origin=origin)).refused("foreign-origin")
    assert await rig.values_or_nothing() == []


async def test_a_page_of_this_door_and_any_reader_may_ask(rig: Rig) -> None:
    own = f"http://127.0.0.1:{rig.data_port}"
    made = await rig.call("POST", "/v1/producers", headers={"Origin": own})
    assert made.status == 201
    read = await rig.call("GET", "/v1/topics", headers={"Origin": "https://elsewhere.example"})
    assert read.status == 200
