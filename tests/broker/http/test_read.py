"""Reading over HTTP: places, forms, ends of the log, one message."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ibrik_log.batch import decode, encode, split
from ibrik_log.record import Record
from tests.broker.http.rig import RAW, Rig, running_doors

NDJSON = "application/x-ndjson"
EVENTS = "application/cloudevents-batch+json"
LINES = b'{"value":0}\n{"value":1}\n{"value":2}\n{"value":3}\n{"value":4}\n'


@pytest.fixture
async def five(rig: Rig) -> Rig:
    """orders/0 holds 0 to 4."""
    await rig.batch(LINES, NDJSON)
    return rig


async def test_the_ranges_of_all_partitions_are_listed(five: Rig) -> None:
    reply = await five.call("GET", "/v1/topics/orders/partitions")
    size = five.parts.engine.topic("orders").partitions[0].size_bytes
    assert reply.json == {
        "topic": "orders",
        "partitions": [{"partition": 0, "earliest": 0, "latest": 5, "bytes": size}],
    }


@pytest.mark.parametrize(
    ("query", "values"),
    [
        ("", [0, 1, 2, 3, 4]),
        ("?offset=3", [3, 4]),
        ("?offset=1&max=2", [1, 2]),
        ("?from=earliest&max=1", [0]),
        ("?timestamp=0", [0, 1, 2, 3, 4]),
        ("?timestamp=2026-11-27T10:00:00Z&max_bytes=1", [0, 1, 2, 3, 4]),
        ("?timestamp=2026-11-27T12:00:00+02:00", [0, 1, 2, 3, 4]),
    ],
)
async def test_reading_begins_where_it_is_told(five: Rig, query: str, values: list[int]) -> None:
    reply = await five.read(query)
    assert [message["value"] for message in reply.json["messages"]] == values
    next_offset = values[-1] + 1
    assert reply.json["next_offset"] == next_offset
    assert reply.headers["Ibrik-Next-Offset"] == str(next_offset)
    assert reply.headers["Ibrik-High-Watermark"] == "5"
    assert (await five.read(query)).body == reply.body


@pytest.mark.parametrize("query", ["?from=latest", "?offset=5", "?timestamp=2030-01-01T00:00:00Z"])
async def test_the_end_has_no_content(five: Rig, query: str) -> None:
    reply = await five.read(query)
    assert (reply.status, reply.body) == (204, b"")
    assert reply.headers["Ibrik-Next-Offset"] == "5"


async def test_a_read_waits_for_the_first_message(five: Rig) -> None:
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(five.read("?offset=5&wait=20s"))
        while not five.parts.engine.topic("orders").partitions[0]._waiting_readers:
            await asyncio.sleep(0.001)
        await five.publish(b"5")
    assert waiting.result().json["messages"][0]["value"] == 5


async def test_a_wait_that_passes_empty_has_no_content(five: Rig) -> None:
    assert (await five.read("?offset=5&wait=10ms")).status == 204


async def test_above_the_end_and_below_the_start_are_errors(five: Rig) -> None:
    above = (await five.read("?offset=6")).refused("offset-above-end")
    assert (above["earliest"], above["latest"]) == (0, 5)
    (await five.call("GET", "/v1/topics/orders/partitions/0/messages/5")).refused(
        "offset-above-end"
    )
    await five.call("POST", "/v1/topics/orders:purge")
    below = (await five.read("?offset=2")).refused("offset-below-start")
    assert (below["earliest"], below["latest"]) == (5, 5)
    (await five.call("GET", "/v1/topics/orders/partitions/0/messages/2")).refused(
        "offset-below-start"
    )


async def test_values_and_keys_that_are_no_text_are_base64(rig: Rig) -> None:
    await rig.publish(b'{"a": 1.10}', Ibrik_Key="7")
    await rig.publish(b"\x00\xff", Ibrik_Key="%FF", Ibrik_Meta_a="b", Ibrik_Meta_c="%FF")
    await rig.publish(b"not json")
    await rig.publish(b'"\xff"')
    await rig.batch({"messages": [{"key": "k"}]})
    first, second, third, fourth, fifth = (await rig.read()).json["messages"]
    assert (first["key"], first["value"]) == ("7", {"a": 1.1})
    assert (second["key_base64"], second["value_base64"]) == ("/w==", "AP8=")
    assert (second["headers"], second["headers_base64"]) == ({"a": "b"}, {"c": "/w=="})
    assert third["value_base64"] == "bm90IGpzb24="
    assert fourth["value_base64"] == "Iv8i"
    assert "value" not in fifth
    assert "value_base64" not in fifth
    assert b'"value":{"a": 1.10}' in (await rig.read()).body


async def test_every_line_is_one_message(rig: Rig) -> None:
    await rig.publish(b'{\n  "a": "b\\nc"\r\n}')
    await rig.publish(b"2")
    lines = (await rig.read(accept=NDJSON)).body.splitlines()
    assert len(lines) == 2
    assert b'"value":{   "a": "b\\nc"  }' in lines[0]


async def test_raw_batches_are_written_as_they_are(five: Rig) -> None:
    reply = await five.read("?offset=2", accept=RAW)
    assert reply.headers["Content-Type"] == RAW
    assert reply.headers["Ibrik-Next-Offset"] == "5"
    found = [record.value for frame in split(reply.body) for record in decode(bytes(frame))]
    assert found[-3:] == [b"2", b"3", b"4"]


async def test_what_was_read_raw_can_be_published_again(five: Rig) -> None:
    body = (await five.read(accept=RAW)).body
    assert (await five.batch(body, RAW)).status == 201
    assert await five.values() == [0, 1, 2, 3, 4] * 2


async def test_messages_read_as_cloudevents(rig: Rig) -> None:
    event = {
        "specversion": "1.0",
        "id": "1",
        "source": "/s",
        "type": "t",
        "subject": "é",
        "data": {"a": 1},
    }
    await rig.batch([event], EVENTS)
    await rig.publish(b"\xff", Content_Type="image/png")
    await rig.publish(b"3")
    reply = await rig.read(accept=EVENTS)
    own, plain, third = reply.json
    assert own.pop("time")
    assert own == event | {"datacontenttype": "application/json"}
    topic_id = rig.parts.engine.topic("orders").id
    assert plain == {
        "specversion": "1.0",
        "id": f"{topic_id}-0-1",
        "source": "/topics/orders",
        "type": "ibrik.message",
        "time": "2026-11-27T10:00:00.000Z",
        "datacontenttype": "image/png",
        "data_base64": "/w==",
    }
    assert third["data"] == 3
    assert (await rig.batch(reply.body, EVENTS)).json["messages"][0]["duplicate"]


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        ("", "application/json"),
        ("*/*", "application/json"),
        ("text/html, application/*;q=0.5", "application/json"),
        (f"application/json;q=0.1, {NDJSON}", NDJSON),
        (f"application/json;q=0, {RAW};q=0.2", RAW),
        (f"application/json;q=x, {EVENTS.upper()}", EVENTS),
    ],
)
async def test_the_form_is_the_one_preferred(five: Rig, accept: str, chosen: str) -> None:
    assert (await five.read(accept=accept)).headers["Content-Type"].split(";")[0] == chosen


async def test_a_form_that_is_not_served_is_refused(five: Rig) -> None:
    (await five.read(accept="text/html")).refused("not-acceptable")


async def test_one_message_is_its_bytes_and_headers(rig: Rig) -> None:
    sent = {
        "Content-Type": "text/html; charset=utf-8",
        "Ibrik-Key": "caf%C3%A9",
        "Ibrik-Meta-a": "1%25",
        "ce-specversion": "1.0",
        "ce-id": "e1",
        "ce-source": "/s",
        "ce-type": "t",
    }
    await rig.publish(b"<b>", **sent)
    reply = await rig.call("GET", "/v1/topics/orders/partitions/0/messages/0")
    assert reply.body == b"<b>"
    assert {name.lower(): reply.headers.get(name) for name in sent} == {
        name.lower(): value for name, value in sent.items()
    }
    assert reply.headers["Ibrik-Offset"] == "0"
    assert reply.headers["Ibrik-Id"] == "e1"
    assert reply.headers["Content-Security-Policy"] == "sandbox"


async def test_headers_of_strangers_cannot_break_an_answer(rig: Rig) -> None:
    headers: list[tuple[str, bytes | None]] = [
        ("content-type", b"a\r\nX-Evil: 1"),
        ("a", b"b\r\nX-Evil: 1"),
        ("bad name", b"1"),
        ("none", None),
    ]
    await rig.batch(bytes(encode([Record(b"\r\n", None, headers)])), RAW)
    reply = await rig.call("GET", "/v1/topics/orders/partitions/0/messages/0")
    assert (reply.status, reply.body) == (200, b"")
    assert "X-Evil" not in reply.headers
    assert reply.headers["Content-Type"] == "application/octet-stream"
    assert reply.headers["Ibrik-Meta-a"] == "b%0D%0AX-Evil: 1"
    assert reply.headers["Ibrik-Key"] == "%0D%0A"
    assert reply.headers["Ibrik-Null"] == "true"
    assert (await rig.read()).json["messages"][0]["headers"]["none"] is None


async def test_a_damaged_range_is_refused_and_named(tmp_path: Path) -> None:
    async with running_doors(tmp_path) as rig:
        await rig.publish(b"first")
        await rig.publish(b"second")
        await rig.publish(b"third")
        topic_id = rig.parts.engine.topic("orders").id
    (segment,) = (tmp_path / "topics" / topic_id / "0").glob("*.log")
    content = bytearray(segment.read_bytes())
    content[content.index(b"second")] ^= 1
    segment.write_bytes(content)
    async with running_doors(tmp_path) as rig:
        assert (await rig.read()).json["messages"][0]["offset"] == 0
        problem: Any = (await rig.read("?offset=1")).refused("corrupt-range")
        assert (problem["from_offset"], problem["to_offset"]) == (1, 2)
        assert (await rig.read("?offset=2")).json["messages"][0]["offset"] == 2
