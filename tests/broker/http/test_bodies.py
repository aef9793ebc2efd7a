"""Bodies: compressed, too large, too slow, cut off, too many at once."""

import asyncio
import gzip
import random
import socket
from pathlib import Path

import pytest
import zstandard
from aiohttp import StreamReader
from aiohttp.base_protocol import BaseProtocol

from ibrik_api.errors import Refusal
from ibrik_broker.http.bodies import Deadline
from ibrik_broker.settings import LimitSettings
from tests.broker.http.rig import Rig, running_doors
from tests.broker.partitions.turning_disk import TurningDisk

POST = b"POST /v1/topics/orders/messages HTTP/1.1\r\nHost: x\r\n"
NDJSON = "application/x-ndjson"
JSON_LINES = b"".join(b'{"value":{"number":%d,"text":"some words"}}\n' % n for n in range(5000))


def zstd_stream(content: bytes) -> bytes:
    """A frame that does not announce its size."""
    compressor = zstandard.ZstdCompressor().compressobj()
    return compressor.compress(content) + compressor.flush()


COMPRESSORS = {
    "gzip": gzip.compress,
    "zstd": zstandard.ZstdCompressor().compress,
    "zstd-stream": zstd_stream,
}


@pytest.mark.parametrize("form", COMPRESSORS)
async def test_a_compressed_body_is_stored_plain(rig: Rig, form: str) -> None:
    encoding = form.removesuffix("-stream")
    reply = await rig.publish(COMPRESSORS[form](b'{"a":1}'), Content_Encoding=encoding)
    assert reply.status == 201
    assert await rig.values() == [{"a": 1}]
    big = COMPRESSORS[form](JSON_LINES)
    assert (await rig.batch(big, NDJSON, Content_Encoding=encoding)).json["count"] == 5000
    partial = await rig.batch(big, NDJSON, "?partial=true", Content_Encoding=encoding)
    assert partial.json["count"] == 5000


async def test_members_of_gzip_may_follow_each_other(rig: Rig) -> None:
    body = gzip.compress(b"1") + gzip.compress(b"2")
    assert (await rig.publish(body, Content_Encoding="gzip")).status == 201
    assert await rig.values() == [12]


async def test_an_incompressible_body_is_inflated_beside_the_loop(rig: Rig) -> None:
    noise = random.Random(1).randbytes(200_000)
    for form, encoding in (("gzip", "gzip"), ("zstd", "zstd")):
        assert (
            await rig.publish(COMPRESSORS[form](noise), Content_Encoding=encoding)
        ).status == 201


@pytest.mark.parametrize("form", COMPRESSORS)
async def test_a_bomb_is_refused(rig: Rig, form: str) -> None:
    bomb = COMPRESSORS[form](b"\0" * 50_000_000)
    encoding = form.removesuffix("-stream")
    (await rig.batch(bomb, NDJSON, Content_Encoding=encoding)).refused("compression-bomb")
    assert rig.data.gate.in_flight_bytes == 0


@pytest.mark.parametrize("form", COMPRESSORS)
async def test_what_grows_beyond_the_limit_is_refused(tmp_path: Path, form: str) -> None:
    async with running_doors(tmp_path, body_bytes=100_000) as rig:
        encoding = form.removesuffix("-stream")
        body = COMPRESSORS[form](JSON_LINES)
        (await rig.batch(body, NDJSON, Content_Encoding=encoding)).refused("request-too-large")


@pytest.mark.parametrize("form", COMPRESSORS)
@pytest.mark.parametrize("damage", [lambda b: b[:-3], lambda b: b"x" + b, lambda b: b + b"junk"])
async def test_a_broken_stream_is_refused(rig: Rig, form: str, damage: object) -> None:
    assert callable(damage)
    body = damage(COMPRESSORS[form](b"some text"))
    encoding = form.removesuffix("-stream")
    (await rig.publish(body, Content_Encoding=encoding)).refused("body-not-decodable")


async def test_an_empty_compressed_body_is_empty(rig: Rig) -> None:
    for encoding in ("gzip", "zstd", "identity"):
        assert (await rig.publish(b"", Content_Encoding=encoding)).status == 201


@pytest.mark.parametrize("encoding", ["br", "gzip, gzip", "x"])
async def test_another_encoding_is_refused(rig: Rig, encoding: str) -> None:
    (await rig.publish(Content_Encoding=encoding)).refused("unsupported-encoding")
    (await rig.batch({"messages": []}, Content_Encoding=encoding)).refused("unsupported-encoding")


async def test_an_oversized_body_is_refused_with_and_without_its_length(tmp_path: Path) -> None:
    async with running_doors(tmp_path, body_bytes=100_000) as rig:
        body = b'{"value":1}\n' * 20_000
        (await rig.batch(body, NDJSON)).refused("request-too-large")
        head = b"POST /v1/topics/orders/batch HTTP/1.1\r\nHost: x\r\nContent-Type: %b\r\n"
        head %= NDJSON.encode()
        chunked = b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n" % (len(body), body)
        (await rig.raw(head + chunked)).refused("request-too-large")
        assert rig.data.gate.in_flight_bytes == 0


async def test_a_body_that_does_not_come_in_time_is_refused(tmp_path: Path) -> None:
    async with running_doors(tmp_path, slow_timeout_ms=50) as rig:
        (await rig.raw(POST + b"Content-Length: 10\r\n\r\nhalf")).refused("request-timeout")
        assert await rig.values_or_nothing() == []


async def test_a_body_that_keeps_coming_has_more_time() -> None:
    limits = LimitSettings(slow_timeout_ms=0, slow_bytes_per_second=1)
    loop = asyncio.get_running_loop()
    near, far = socket.socketpair()
    transport, protocol = await loop.create_connection(lambda: BaseProtocol(loop), sock=near)
    content = StreamReader(protocol, 2**16, loop=loop)
    content.feed_data(b"x" * 60)
    deadline = Deadline(limits)
    assert await deadline.next_chunk(content) == b"x" * 60
    loop.call_later(0.01, content.feed_data, b"y")
    assert await deadline.next_chunk(content) == b"y"
    with pytest.raises(Refusal, match="not complete in time"):
        await Deadline(limits).next_chunk(content)
    transport.close()
    far.close()


async def test_a_head_that_does_not_come_in_time_is_hung_up_on(tmp_path: Path) -> None:
    async with running_doors(tmp_path, slow_timeout_ms=50) as rig:
        reader, writer = await asyncio.open_connection("127.0.0.1", rig.data_port)
        writer.write(POST)
        async with asyncio.timeout(20):
            assert await reader.read() == b""
        writer.close()


@pytest.mark.parametrize(
    "body", [b"Content-Length: 10\r\n\r\nhalf", b"Transfer-Encoding: chunked\r\n\r\n5\r\nha"]
)
async def test_a_body_that_is_cut_off_is_refused_and_changes_nothing(rig: Rig, body: bytes) -> None:
    (await rig.raw(POST + body, ends=True)).refused("body-not-decodable")
    assert await rig.values_or_nothing() == []


async def test_a_client_that_has_said_all_still_gets_its_answer(rig: Rig) -> None:
    reply = await rig.raw(POST + b"Content-Length: 1\r\n\r\n7", ends=True)
    assert reply.status == 201
    assert await rig.values() == [7]


async def test_a_client_that_goes_away_changes_nothing(rig: Rig) -> None:
    _reader, writer = await asyncio.open_connection("127.0.0.1", rig.data_port)
    writer.write(POST + b"Content-Length: 10\r\n\r\nhalf")
    await writer.drain()
    writer.transport.abort()
    await rig.publish(b"1")
    assert await rig.values() == [1]


@pytest.mark.parametrize("chunk", [b"xyz\r\n", b"-5\r\nhello\r\n", b"5\r\nhelloXX"])
async def test_broken_chunks_are_refused(rig: Rig, chunk: bytes) -> None:
    reply = await rig.raw(POST + b"Transfer-Encoding: chunked\r\n\r\n" + chunk)
    assert reply.status == 400
    assert reply.json["code"] in ("invalid-request", "body-not-decodable")
    assert await rig.values_or_nothing() == []


async def test_bodies_in_flight_are_bounded(tmp_path: Path) -> None:
    disk = TurningDisk()
    async with running_doors(tmp_path, disk=disk, in_flight_bytes=1000) as rig:
        disk.may_flush.clear()
        async with asyncio.TaskGroup() as tasks:
            first = tasks.create_task(rig.publish(b"x" * 900))
            while rig.data.gate.in_flight_bytes < 900:
                await asyncio.sleep(0.001)
            (await rig.publish(b"y" * 900)).refused("buffer-full")
            assert rig.data.gate.in_flight_bytes == 900
            disk.may_flush.set()
        assert first.result().status == 201
        assert rig.data.gate.in_flight_bytes == 0
        (await rig.publish(b"z" * 1001)).refused("buffer-full")
