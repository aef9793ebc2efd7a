"""Many messages in one request: four forms, all or nothing, or one result each."""

import asyncio
import json
from typing import Any

import pytest

from ibrik_log.batch import Producer, decode, encode
from ibrik_log.record import Record
from tests.broker.http.rig import RAW, Rig
from tests.broker.http.wrong import WRONG

NDJSON = "application/x-ndjson"
EVENTS = "application/cloudevents-batch+json"


async def records(rig: Rig) -> list[Any]:
    partition = rig.parts.engine.topic("orders").partitions[0]
    found: list[Any] = []
    while frames := await partition.read(found[-1].offset + 1 if found else 0, 2**20):
        for frame in frames:
            found += decode(frame)
    return found


async def test_values_are_kept_byte_for_byte(rig: Rig) -> None:
    body = b'{"messages":[{"value": {"n": 1.10, "big": 12345678901234567890123}},{"value":"x"}]}'
    reply = await rig.batch(body)
    assert reply.status == 201
    assert reply.json == {
        "topic": "orders",
        "durability": "flushed",
        "count": 2,
        "messages": [
            {"index": 0, "partition": 0, "offset": 0, "timestamp": "2026-11-27T10:00:00.000Z"},
            {"index": 1, "partition": 0, "offset": 1, "timestamp": "2026-11-27T10:00:00.000Z"},
        ],
    }
    first, second = await records(rig)
    assert first.value == b'{"n": 1.10, "big": 12345678901234567890123}'
    assert first.headers == [("content-type", b"application/json")]
    assert second.value == b'"x"'


async def test_every_field_of_an_envelope_is_kept(rig: Rig) -> None:
    envelope = {
        "key": "caf\u00e9",
        "value_base64": "AP8=",
        "headers": {"a": "b", "nothing": None},
        "headers_base64": {"c": "/w=="},
        "id": "m1",
        "partition": 0,
    }
    assert (await rig.batch({"messages": [envelope]})).status == 201
    (record,) = await records(rig)
    assert (record.key, record.value) == ("café".encode(), b"\x00\xff")
    assert record.headers == [
        ("a", b"b"),
        ("nothing", None),
        ("c", b"\xff"),
        ("ibrik-id", b"m1"),
    ]


@pytest.mark.parametrize(
    ("envelope", "key"),
    [
        ({"key": "7"}, b"7"),
        ({"key": 7}, b"7"),
        ({"key": None}, None),
        ({"key": 'a"b'}, b'a"b'),
        ({"key_base64": "/w=="}, b"\xff"),
        ({}, None),
    ],
)
async def test_a_key_is_its_text(rig: Rig, envelope: dict[str, Any], key: bytes | None) -> None:
    await rig.batch({"messages": [envelope | {"value": 1}]})
    assert (await records(rig))[0].key == key


async def test_a_message_without_a_value_has_none(rig: Rig) -> None:
    await rig.batch({"messages": [{"key": "7"}, {"key": "7", "value": None}]})
    assert [record.value for record in await records(rig)] == [None, b"null"]


async def test_repeats_are_told_apart(rig: Rig) -> None:
    body = {"messages": [{"value": 1, "id": "a"}, {"value": 2, "id": "b"}]}
    await rig.batch({"messages": body["messages"][:1]})
    reply = await rig.batch(body)
    assert reply.status == 201
    assert [m.get("duplicate") for m in reply.json["messages"]] == [True, None]
    again = await rig.batch(body)
    assert (again.status, again.headers["Ibrik-Duplicate"]) == (200, "true")
    assert [m["offset"] for m in again.json["messages"]] == [0, 1]


async def test_nobody_waits_with_acks_none(rig: Rig) -> None:
    reply = await rig.batch({"messages": [{"value": 1}]}, query="?acks=none")
    assert reply.status == 202
    assert reply.json["durability"] == "none"
    assert reply.json["messages"] == [{"index": 0, "partition": 0, "offset": -1}]


@pytest.mark.parametrize(("envelope", "code"), WRONG)
async def test_a_wrong_message_has_its_own_result_when_that_is_wished(
    rig: Rig, envelope: Any, code: str
) -> None:
    body = {"messages": [{"value": 1}, envelope, {"value": 2}]}
    reply = await rig.batch(body, query="?partial=true")
    assert (reply.status, reply.json["count"], reply.json["failed"]) == (200, 3, 1)
    first, wrong, last = reply.json["messages"]
    assert (first["offset"], last["offset"]) == (0, 1)
    assert (wrong["index"], wrong["code"]) == (1, code)
    assert "offset" not in wrong


async def test_what_the_engine_refuses_of_a_partial_batch_stands_alone(rig: Rig) -> None:
    await rig.publish(b"1", Idempotency_Key="a")
    body = {"messages": [{"value": 5}, {"value": 2, "id": "a"}, {"value": 6}]}
    (await rig.batch(body)).refused("idempotency-mismatch")
    reply = await rig.batch(body, query="?partial=true")
    assert reply.json["messages"][1]["code"] == "idempotency-mismatch"
    assert [record.value for record in await records(rig)] == [b"1", b"5", b"6"]


async def test_lines_are_messages(rig: Rig) -> None:
    body = b'{"value":1}\n\n{"value":{"a":2}}\r\n{"value":3}'
    assert (await rig.batch(body, NDJSON)).json["count"] == 3
    assert [record.value for record in await records(rig)] == [b"1", b'{"a":2}', b"3"]


async def test_broken_json_in_the_middle_of_lines_refuses_all(rig: Rig) -> None:
    body = b'{"value":1}\n{"value":\n{"value":"\xff"}\n{"value":4}\n'
    problem = (await rig.batch(body, NDJSON)).refused("invalid-messages")
    assert [error["index"] for error in problem["errors"]] == [1, 2]
    assert await records(rig) == []


async def test_lines_are_published_while_they_come(rig: Rig) -> None:
    """Over 1 MiB has arrived and is published before the body ends."""
    line = json.dumps({"value": "x" * 1000}).encode() + b"\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", rig.data_port)
    writer.write(
        b"POST /v1/topics/orders/batch?partial=true HTTP/1.1\r\nHost: x\r\n"
        b"Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    chunk = line * 100
    for _ in range(12):
        writer.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        await writer.drain()
    partition = rig.parts.engine.topic("orders").partitions[0]
    async with asyncio.timeout(20):
        await partition.wait(0, 20)
    writer.write(b"9\r\n{broken}\n\r\n0\r\n\r\n")
    head = await reader.readuntil(b"\r\n\r\n")
    assert b" 200 OK" in head
    length = int(head.split(b"Content-Length: ")[1].split(b"\r\n")[0])
    answer = json.loads(await reader.readexactly(length))
    writer.close()
    assert (answer["count"], answer["failed"]) == (1201, 1)
    assert answer["messages"][1200]["code"] == "invalid-json"


async def test_what_was_published_of_a_broken_stream_is_told(rig: Rig) -> None:
    line = json.dumps({"value": "x" * 1000}).encode() + b"\n"
    body = line * 1200 + b'{"value":"' + b"y" * 4_000_000
    reply = await rig.batch(body, NDJSON, "?partial=true")
    assert reply.status == 200
    assert reply.json["stopped"]["code"] == "message-too-large"
    assert reply.json["count"] == len(await records(rig)) > 1000


async def test_a_batch_of_cloudevents(rig: Rig) -> None:
    event = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t", "data": {"a": 1}}
    assert (await rig.batch([event, event | {"id": "2"}], EVENTS)).status == 201
    assert [record.value for record in await records(rig)] == [b'{"a": 1}'] * 2
    problem = (await rig.batch([event, {"id": "3"}], EVENTS)).refused("invalid-messages")
    assert problem["errors"][0]["code"] == "invalid-cloudevent"
    (await rig.batch({}, EVENTS)).refused("invalid-request")
    (await rig.batch(b"[", EVENTS)).refused("invalid-json")


async def test_raw_batches_are_appended_as_they_are(rig: Rig) -> None:
    frame = bytes(encode([Record(b"k", b"a", [("h", None)]), Record(None, b"b", [])]))
    reply = await rig.batch(frame + frame, RAW, Ibrik_Partition="0")
    assert reply.status == 201
    assert [(b["offset"], b["count"], b["duplicate"]) for b in reply.json["batches"]] == [
        (0, 2, False),
        (2, 2, False),
    ]
    assert [r.value for r in await records(rig)] == [b"a", b"b"] * 2


async def test_sequences_find_repeats_and_gaps(rig: Rig) -> None:
    created = await rig.call("POST", "/v1/producers")
    assert created.status == 201
    producer_id = created.json["id"]

    async def send(sequence: int, epoch: int = 0) -> Any:
        producer = Producer(producer_id, epoch, sequence)
        return await rig.batch(bytes(encode([Record(None, b"a", [])], producer=producer)), RAW)

    assert (await send(0)).status == 201
    repeat = await send(0)
    assert (repeat.status, repeat.json["batches"][0]["duplicate"]) == (200, True)
    (await send(5)).refused("out-of-order-sequence")
    assert (await send(0, epoch=1)).status == 201
    (await send(1, epoch=0)).refused("producer-fenced")
    producer_id += 1
    (await send(3)).refused("unknown-producer")
    assert len(await records(rig)) == 2


async def test_raw_batches_know_no_options(rig: Rig) -> None:
    frame = bytes(encode([Record(None, b"abc", [])]))
    (await rig.batch(frame, RAW, "?acks=none")).refused("invalid-request")
    (await rig.batch(frame, RAW, "?partial=true")).refused("invalid-request")
    (await rig.batch(frame, RAW, Ibrik_Partition="7")).refused("unknown-partition")


async def test_a_flag_is_true_or_false(rig: Rig) -> None:
    (await rig.batch({"messages": []}, query="?partial=1")).refused("invalid-request")


async def test_too_many_messages_are_refused(rig: Rig) -> None:
    (await rig.batch(b"{}\n" * 100_001, NDJSON)).refused("request-too-large")
    (await rig.batch(b"{}\n" * 400_000, NDJSON, "?partial=true")).refused("request-too-large")
    assert await records(rig) == []
