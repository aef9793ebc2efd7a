"""One message over HTTP: what is kept, what is answered, what is refused."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from ibrik_log.batch import decode
from tests.broker.http.rig import Rig, read_reply, running_doors
from tests.broker.partitions.turning_disk import TurningDisk

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


async def stored(rig: Rig, offset: int = 0) -> Any:
    partition = rig.parts.engine.topic("orders").partitions[0]
    return decode((await partition.read(offset, 1))[0])[0]


async def test_a_message_is_answered_with_its_place(rig: Rig) -> None:
    reply = await rig.publish(b'{"order_id":101}', Ibrik_Key="7")
    assert reply.status == 201
    topic_id = rig.parts.engine.topic("orders").id
    assert reply.json == {
        "topic": "orders",
        "partition": 0,
        "offset": 0,
        "id": f"{topic_id}-0-0",
        "timestamp": "2026-11-27T10:00:00.000Z",
        "durability": "flushed",
    }
    assert reply.headers["Location"] == "/v1/topics/orders/partitions/0/messages/0"
    assert (await stored(rig))[2:] == (b"7", b'{"order_id":101}', [])


@pytest.mark.parametrize("body", [b"", b"\x00\xff\xfe", b"x" * 200_000])
async def test_any_bytes_are_a_payload(rig: Rig, body: bytes) -> None:
    assert (await rig.publish(body)).status == 201
    assert (await stored(rig)).value == body


async def test_headers_travel_with_the_message(rig: Rig) -> None:
    await rig.publish(
        Content_Type="text/plain",
        Ibrik_Key="caf%C3%A9",
        Ibrik_Meta_Region="n%C3%B6rd",
        Idempotency_Key="abc",
        traceparent=TRACE,
    )
    record = await stored(rig)
    assert record.key == "café".encode()
    assert record.headers == [
        ("content-type", b"text/plain"),
        ("ibrik-id", b"abc"),
        ("traceparent", TRACE.encode()),
        ("region", "nörd".encode()),
    ]


async def test_tracestate_travels_with_its_traceparent_only(rig: Rig) -> None:
    await rig.publish(traceparent=TRACE, tracestate="shop=1")
    kept = (await stored(rig)).headers
    assert kept == [("traceparent", TRACE.encode()), ("tracestate", b"shop=1")]
    await rig.publish(traceparent="nonsense", tracestate="shop=1")
    assert (await stored(rig, 1)).headers == []


async def test_a_malformed_traceparent_is_left_out(rig: Rig) -> None:
    assert (await rig.publish(traceparent="nonsense")).status == 201
    assert (await stored(rig)).headers == []


async def test_a_repeat_is_answered_with_the_place_of_the_first(rig: Rig) -> None:
    first = await rig.publish(b"a", Idempotency_Key='he said "1"')
    again = await rig.publish(b"a", Idempotency_Key='he said "1"')
    assert (first.status, again.status) == (201, 200)
    assert again.headers["Ibrik-Duplicate"] == "true"
    assert again.json == first.json | {"duplicate": True}
    assert first.json["id"] == 'he said "1"'
    assert len(await rig.values()) == 1


async def test_an_id_with_another_payload_is_refused(rig: Rig) -> None:
    await rig.publish(b"a", Idempotency_Key="1")
    (await rig.publish(b"b", Idempotency_Key="1")).refused("idempotency-mismatch")


async def test_who_does_not_wait_is_answered_at_once(rig: Rig) -> None:
    reply = await rig.call("POST", "/v1/topics/orders/messages?acks=none", b"x")
    assert reply.status == 202
    assert reply.json["durability"] == "none"
    assert "Location" not in reply.headers


async def test_a_binary_cloudevent_is_kept_as_record_headers(rig: Rig) -> None:
    event = {
        "ce-specversion": "1.0",
        "ce-id": "e1",
        "ce-source": "/shop",
        "ce-type": "order",
        "ce-partitionkey": "k",
        "ce-subject": "caf%C3%A9",
        "Content-Type": "application/json",
    }
    reply = await rig.publish(b"{}", **event)
    assert reply.json["id"] == "e1"
    record = await stored(rig)
    assert record.key == b"k"
    assert record.headers[0] == ("content-type", b"application/json")
    assert ("ce_subject", "café".encode()) in record.headers
    assert (await rig.publish(b"{}", **event)).status == 200
    other_source = event | {"ce-source": "/other"}
    assert (await rig.publish(b"{}", **other_source)).status == 201


async def test_a_structured_cloudevent_keeps_its_data_byte_for_byte(rig: Rig) -> None:
    body = (
        b'{"specversion":"1.0","id":"1","source":"/s","type":"t","n":5,"flag":true,"none":null,'
        b'"data":{"big": 12345678901234567890.10}}'
    )
    assert (await rig.publish(body, Content_Type="application/cloudevents+json")).status == 201
    record = await stored(rig)
    assert record.value == b'{"big": 12345678901234567890.10}'
    headers = dict(record.headers)
    assert headers["content-type"] == b"application/json"
    assert (headers["ce_n"], headers["ce_flag"]) == (b"5", b"true")
    assert "ce_none" not in headers


@pytest.mark.parametrize(
    ("members", "value"),
    [
        ({"data_base64": "AP8="}, b"\x00\xff"),
        ({"datacontenttype": "text/plain", "data": 'a "b"\n'}, b'a "b"\n'),
        ({}, None),
    ],
)
async def test_structured_data_comes_in_three_forms(
    rig: Rig, members: dict[str, str], value: bytes | None
) -> None:
    event = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"} | members
    body = json.dumps(event).encode()
    assert (await rig.publish(body, Content_Type="application/cloudevents+json")).status == 201
    assert (await stored(rig)).value == value


async def test_an_event_is_not_written_twice_over(rig: Rig) -> None:
    reply = await rig.publish(
        b"{}",
        Content_Type="application/cloudevents+json",
        **{"ce-specversion": "1.0", "ce-id": "1", "ce-source": "s", "ce-type": "t"},
    )
    reply.refused("invalid-cloudevent")


async def test_a_parameter_given_twice_is_refused(rig: Rig) -> None:
    path = "/v1/topics/orders/messages?acks=none&acks=durable"
    (await rig.call("POST", path, b"x")).refused("invalid-request")


async def test_an_unknown_topic_is_refused_with_the_next_step(rig: Rig) -> None:
    problem = (await rig.publish(topic="ordres")).refused("unknown-topic")
    assert "'orders'" in problem["detail"]
    assert "ibrik topic create ordres" in problem["detail"]


async def test_a_topic_is_made_on_first_use_when_that_is_wished(tmp_path: Path) -> None:
    async with running_doors(tmp_path, dev=True) as rig:
        assert (await rig.publish(topic="fresh")).json["offset"] == 0
        assert (await rig.publish(topic="fresh")).json["offset"] == 1
        (await rig.publish(topic="No")).refused("invalid-name")
        body = {"messages": [{"value": 1}]}
        reply = await rig.call(
            "POST", "/v1/topics/new/batch", body, headers={"Content-Type": "application/json"}
        )
        assert reply.status == 201


async def test_a_message_that_is_too_large_is_refused_before_it_is_sent(rig: Rig) -> None:
    await rig.create("small", max_message_bytes=1000)
    head = (
        b"POST /v1/topics/small/messages HTTP/1.1\r\nHost: x\r\n"
        b"Content-Length: 1001\r\nExpect: 100-continue\r\n\r\n"
    )
    (await rig.raw(head)).refused("message-too-large")
    (await rig.publish(b"x" * 1001, topic="small")).refused("message-too-large")
    (await rig.publish(b"x" * 1000, topic="small", Ibrik_Key="k")).refused("message-too-large")
    assert (await rig.publish(b"x" * 1000, topic="small")).status == 201


async def test_an_expectation_is_answered_before_the_body(rig: Rig) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", rig.data_port)
    writer.write(
        b"POST /v1/topics/orders/messages HTTP/1.1\r\nHost: x\r\n"
        b"Content-Length: 5\r\nExpect: 100-continue\r\n\r\n"
    )
    assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    writer.write(b"hello")
    assert (await read_reply(reader)).status == 201
    writer.close()


async def test_a_full_disk_refuses_before_the_body_and_reading_goes_on(tmp_path: Path) -> None:
    disk = TurningDisk()
    async with running_doors(tmp_path, disk=disk) as rig:
        await rig.publish(b"1")
        disk.free = -1
        rig.parts.engine.writer.look_for_room()
        (await rig.publish(b"2")).refused("storage-full")
        (await rig.batch({"messages": [{"value": 1}]})).refused("storage-full")
        assert await rig.values() == [1]
        ready = await rig.call("GET", "/readyz", port=rig.admin_port)
        assert ready.status == 200
        disk.free = None
        rig.parts.engine.writer.look_for_room()
        assert (await rig.publish(b"3")).status == 201


async def test_a_log_that_hangs_is_not_waited_for_without_end(tmp_path: Path) -> None:
    disk = TurningDisk()
    async with running_doors(tmp_path, disk=disk, request_timeout_ms=50) as rig:
        disk.may_flush.clear()
        (await rig.publish(b"1")).refused("not-ready")
        (await rig.batch({"messages": [{"value": 1}]})).refused("not-ready")
        disk.may_flush.set()
        assert (await rig.publish(b"3")).status == 201


async def test_a_topic_that_rejects_when_full_says_so(tmp_path: Path) -> None:
    disk = TurningDisk()
    async with running_doors(tmp_path, disk=disk) as rig:
        await rig.create("tight", buffer={"records": 1, "when_full": "reject"})
        disk.may_flush.clear()
        async with asyncio.TaskGroup() as tasks:
            first = tasks.create_task(rig.publish(topic="tight"))
            while not rig.parts.engine.topic("tight").partitions[0].buffer.pending_records:
                await asyncio.sleep(0)
            (await rig.publish(topic="tight")).refused("buffer-full")
            disk.may_flush.set()
        assert first.result().status == 201


async def test_a_failed_write_acknowledges_nothing(tmp_path: Path) -> None:
    disk = TurningDisk()
    failures: list[object] = []
    async with running_doors(tmp_path, disk=disk) as rig:
        rig.parts.engine._on_failure = failures.append
        disk.fails_flush = True
        (await rig.publish(b"1")).refused("storage-failed")
        (await rig.publish(b"2")).refused("storage-failed")
        disk.fails_flush = False
    assert len(failures) == 1
