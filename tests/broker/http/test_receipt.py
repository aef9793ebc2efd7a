"""The answer to a publish on the wire: whole, in order, and right for old clients too."""

import asyncio
import json
from email.utils import parsedate_to_datetime

import pytest

from tests.broker.http.rig import Rig, read_reply

HEAD = (
    "POST /v1/topics/orders/messages HTTP/{version}\r\n"
    "Host: x\r\nContent-Length: 1\r\n{more}\r\n{value}"
)


def request(value: str, version: str = "1.1", more: str = "") -> bytes:
    return HEAD.format(version=version, more=more, value=value).encode()


async def test_pipelined_publishes_are_answered_in_order_on_one_connection(rig: Rig) -> None:
    await rig.create("orders")
    reader, writer = await asyncio.open_connection("127.0.0.1", rig.data_port)
    writer.write(b"".join(request(str(n)) for n in range(5)))
    async with asyncio.timeout(10):
        replies = [await read_reply(reader) for _ in range(5)]
    writer.close()
    await writer.wait_closed()
    assert [reply.status for reply in replies] == [201] * 5
    assert [json.loads(reply.body)["offset"] for reply in replies] == [0, 1, 2, 3, 4]
    for offset, reply in enumerate(replies):
        assert reply.headers["Location"] == f"/v1/topics/orders/partitions/0/messages/{offset}"
        assert parsedate_to_datetime(reply.headers["Date"]).tzinfo is not None


@pytest.mark.parametrize(
    ("version", "more"), [("1.0", ""), ("1.1", "Connection: close\r\n")], ids=["1.0", "close"]
)
async def test_a_client_that_wants_the_connection_closed_gets_it_closed(
    rig: Rig, version: str, more: str
) -> None:
    await rig.create("orders")
    reader, writer = await asyncio.open_connection("127.0.0.1", rig.data_port)
    writer.write(request("a", version, more))
    async with asyncio.timeout(10):
        reply = await read_reply(reader)
        assert await reader.read() == b"", "nothing follows, and the end does"
    writer.close()
    await writer.wait_closed()
    assert (reply.status, json.loads(reply.body)["offset"]) == (201, 0)


async def test_an_id_of_any_bytes_is_written_as_json(rig: Rig) -> None:
    await rig.create("orders")
    reply = await rig.publish(b"x", Idempotency_Key='q"uote')
    assert reply.json["id"] == 'q"uote'
    assert (await rig.publish(b"x", Idempotency_Key='q"uote')).status == 200
