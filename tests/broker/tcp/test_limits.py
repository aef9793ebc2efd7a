"""Clients that are too many, too slow, too greedy, too silent, or gone."""

import asyncio
import random
from pathlib import Path

import pytest

from ibrik_wire import Failed, Fetched, Pong, Published, encode_fetch, encode_publish
from tests.broker.tcp.rig import running_door


async def test_a_client_that_ends_its_half_still_gets_its_replies(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        client = await rig.connect()
        client.send(b'PUB orders 16\r\n{"order_id":102}')
        client.end()
        assert await client.expect_end() == [Published(0)]


async def test_a_stream_that_ends_inside_a_command_leaves_nothing(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        client = await rig.connect()
        client.send(b"PUB orders 1\r\nxPUB orders 16\r\nhalf")
        client.end()
        published, failed = await client.expect_end()
        assert published == Published(0)
        assert isinstance(failed, Failed)
        assert rig.core.engine.topic("orders").partitions[0].latest == 1


async def test_another_protocol_gets_one_line_and_the_end(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        client = await rig.connect()
        client.send(b"POST / HTTP/1.1\r\nHost: x\r\n\r\nPUB orders 4\r\nevil")
        (failed,) = await client.expect_end()
        assert isinstance(failed, Failed)
        assert failed.code == "unknown-command"
        assert rig.core.engine.topic("orders").partitions[0].latest == 0


async def test_a_client_too_many_is_told_so_and_the_others_go_on(tmp_path: Path) -> None:
    async with running_door(tmp_path, connections=2) as rig:
        first, second = await rig.connect(), await rig.connect()
        for client in (first, second):
            client.send(b"PING\r\n")
            await client.expect(1)
        third = await rig.connect()
        (failed,) = await third.expect_end()
        assert isinstance(failed, Failed)
        assert failed.code == "too-many-connections"
        first.send(b"PING\r\n")
        assert await first.expect(1) == [Pong()]
        assert rig.counter("ibrik_tcp_refused_connections_total") == 1


async def test_reading_pauses_at_the_cap_of_unacknowledged_bytes_and_goes_on_by_itself(
    tmp_path: Path,
) -> None:
    async with running_door(tmp_path, connection_bytes=8_192) as rig:
        client = await rig.connect()
        client.send(encode_publish("orders", b"x" * 1_000) * 2_000)
        assert await client.expect(2_000) == [Published(offset) for offset in range(2_000)]
        assert rig.counter("ibrik_tcp_pauses_total") > 0


async def test_the_cap_over_all_connections_lets_everyone_finish(tmp_path: Path) -> None:
    async with running_door(tmp_path, in_flight_bytes=65_536) as rig:
        clients = [await rig.connect() for _ in range(5)]
        for client in clients:
            client.send(encode_publish("orders", b"x" * 1_000) * 500)
        for client in clients:
            assert len(await client.expect(500)) == 500


async def test_half_received_payloads_are_bounded_over_all_connections(tmp_path: Path) -> None:
    async with running_door(tmp_path, in_flight_bytes=100_000) as rig:
        first, second = await rig.connect(), await rig.connect()
        first.send(b"PING\r\nPUB orders 80000\r\n" + b"x" * 60_000)
        await first.expect(1)
        second.send(b"PUB orders 80000\r\n" + b"x" * 60_000)
        (failed,) = await second.expect_end()
        assert isinstance(failed, Failed)
        assert failed.code == "buffer-full"
        first.send(b"x" * 20_000)
        assert await first.expect(1) == [Published(0)]


async def test_a_reader_that_does_not_read_costs_no_more_than_its_buffer(tmp_path: Path) -> None:
    async with running_door(tmp_path, write_buffer_bytes=65_536) as rig:
        client = await rig.connect()
        client.send(encode_publish("orders", b"x" * 500_000))
        await client.expect(1)
        client.send(encode_fetch("orders", 0) * 100)
        other = await rig.connect()
        for _ in range(20):  # enough turns of the loop for all that would be written
            other.send(b"PING\r\n")
            await other.expect(1)
        assert rig.counter("ibrik_tcp_commands_total", "FETCH") < 50
        assert await client.expect(100) == [Fetched(0, b"x" * 500_000)] * 100


async def test_a_silent_client_is_ended_without_a_word(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        client = await rig.connect()
        client.send(b"PING\r\n")
        await client.expect(1)
        rig.door.look_at_clock(asyncio.get_running_loop().time() + 599)
        rig.door.look_at_clock(asyncio.get_running_loop().time() + 601)
        assert await client.expect_end() == []


async def test_a_command_that_trickles_in_is_ended_with_a_reason(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        client = await rig.connect()
        client.send(b"PING\r\nPUB orders 100\r\nslow")
        await client.expect(1)
        rig.door.look_at_clock(asyncio.get_running_loop().time() + 31)
        (failed,) = await client.expect_end()
        assert isinstance(failed, Failed)
        assert failed.code == "request-timeout"


async def test_a_client_that_leaves_with_commands_in_flight_disturbs_nobody(
    tmp_path: Path,
) -> None:
    async with running_door(tmp_path, dev=True) as rig:
        stays = await rig.connect()
        for number in range(10):
            leaves = await rig.connect()
            leaves.send(
                b"PUB new%d 1\r\nx" % number + b"PUB orders 1\r\nx" * 50 + b"FETCH orders 0\r\n"
            )
            leaves.writer.transport.abort()
        stays.send(b"PUB orders 1\r\nx")
        assert isinstance((await stays.expect(1))[0], Published)


async def test_draining_answers_what_is_in_flight_and_then_ends_every_stream(
    tmp_path: Path,
) -> None:
    async with running_door(tmp_path) as rig:
        clients = [await rig.connect() for _ in range(4)]
        for client in clients:
            client.send(b"PING\r\n")
            await client.expect(1)
            client.send(encode_publish("orders", b"x") * 1_000)
        async with asyncio.TaskGroup() as tasks:
            answers = [tasks.create_task(client.expect_end()) for client in clients]
            tasks.create_task(rig.door.drain(5))
        published = 0
        for answer in answers:
            replies = answer.result()
            published += sum(isinstance(reply, Published) for reply in replies)
            refused = [reply for reply in replies if isinstance(reply, Failed)]
            assert {reply.code for reply in refused} <= {"shutting-down"}
        assert published == rig.core.engine.topic("orders").partitions[0].latest


async def test_a_door_that_drains_takes_no_new_connection(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        await rig.door.drain(1)
        with pytest.raises(ConnectionRefusedError):
            await rig.connect()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
async def test_random_bytes_never_close_the_door(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    async with running_door(tmp_path, dev=True) as rig:
        for _ in range(20):
            client = await rig.connect()
            pieces = [b"PUB orders ", b"FETCH ", b"\r\n", b"5", b"PING\r\n", b"/0 ", b"\x00"]
            pieces.append(chance.randbytes(chance.randrange(50)))
            client.send(b"".join(chance.choices(pieces, k=chance.randrange(100))))
            client.end()
            await client.expect_end()
        client = await rig.connect()
        client.send(b"PING\r\n")
        assert await client.expect(1) == [Pong()]
