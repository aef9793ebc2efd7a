"""Below the handlers: what is no HTTP, what has no route, too many connections, what breaks."""

import asyncio
import logging
from pathlib import Path

import pytest

from tests.broker.http.rig import Rig, read_reply, running_doors

GET = b"GET /v1/topics HTTP/1.1\r\nHost: x\r\n"


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET /" + b"x" * 9000 + b" HTTP/1.1\r\n\r\n",
        GET + b"A: " + b"x" * 9000 + b"\r\n\r\n",
    ],
)
async def test_a_head_that_is_too_long_is_refused(rig: Rig, request_bytes: bytes) -> None:
    (await rig.raw(request_bytes)).refused("headers-too-large")


async def test_too_many_headers_are_refused(rig: Rig) -> None:
    assert (await rig.raw(GET + b"A: b\r\n" * 200 + b"\r\n")).status in (400, 431)


async def test_a_path_without_a_route_is_a_problem_document(rig: Rig) -> None:
    for path in ("/", "/v1", "/v1/topics/orders/nothing", "/v1/topics/", "/docs/../etc"):
        (await rig.call("GET", path)).refused("not-found")


async def test_no_other_site_is_let_in(rig: Rig) -> None:
    reply = await rig.call("GET", "/v1/topics", headers={"Origin": "http://evil.example"})
    assert not [name for name in reply.headers if name.lower().startswith("access-control")]


async def test_a_path_without_a_route_is_refused_before_its_body(rig: Rig) -> None:
    head = b"POST /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"
    (await rig.raw(head)).refused("not-found")


async def test_a_connection_too_many_is_refused(tmp_path: Path) -> None:
    async with running_doors(tmp_path, connections=1) as rig:
        first = await asyncio.open_connection("127.0.0.1", rig.data_port)
        first[1].write(GET + b"\r\n")
        assert (await read_reply(first[0])).status == 200
        (await rig.raw(b"")).refused("too-many-connections")
        first[1].close()
        await first[1].wait_closed()
        while rig.runners[0].server.connections:
            await asyncio.sleep(0.001)
        assert (await rig.publish()).status == 201


async def test_what_breaks_is_answered_with_an_id_that_the_log_has(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.parts.engine.publish = None  # type: ignore[assignment,method-assign]
    with caplog.at_level(logging.ERROR, logger="ibrik.http"):
        problem = (await rig.publish(b"secret payload", Ibrik_Key="secret")).refused("internal")
    (record,) = caplog.records
    assert record.incident == problem["incident"]  # type: ignore[attr-defined]
    assert "NoneType" not in str(problem)
    assert "secret" not in caplog.text


async def test_a_stream_that_breaks_says_goodbye(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.data.stream.chunks.chunk = None  # type: ignore[assignment,method-assign]
    await rig.publish()
    with caplog.at_level(logging.ERROR, logger="ibrik.http"):
        reply = await rig.call("GET", "/v1/topics/orders/stream?from=earliest")
    assert b"event: goodbye" in reply.body
    assert b'{"reason":"internal"}' in reply.body
    assert len(caplog.records) == 1


async def test_requests_on_one_connection_are_answered_in_order(rig: Rig) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", rig.data_port)
    post = b"POST /v1/topics/orders/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n"
    writer.write(b"".join(post + b"%d" % number for number in range(10)))
    offsets = [(await read_reply(reader)).json["offset"] for _ in range(10)]
    writer.close()
    assert offsets == list(range(10))
    assert await rig.values() == list(range(10))
