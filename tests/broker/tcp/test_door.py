"""Publish and fetch over a real socket: order, refusals, topics that are not there."""

from pathlib import Path

from ibrik_wire import (
    Failed,
    Fetched,
    Pong,
    Published,
    Reply,
    encode_fetch,
    encode_publish,
)
from tests.broker.tcp.rig import running_door


def code(reply: Reply) -> str:
    assert isinstance(reply, Failed)
    return reply.code


async def test_pipelined_publishes_are_answered_in_order_and_read_back(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        client = await rig.connect()
        payloads = [b"%d" % index * (index % 50) for index in range(3_000)]
        client.send(b"".join(encode_publish("orders", payload) for payload in payloads))
        assert await client.expect(3_000) == [Published(offset) for offset in range(3_000)]
        client.send(b"".join(encode_fetch("orders", offset) for offset in range(3_000)))
        fetched = await client.expect(3_000)
        assert fetched == [Fetched(offset, payload) for offset, payload in enumerate(payloads)]


async def test_replies_keep_the_order_of_commands_and_a_client_reads_its_own_write(
    tmp_path: Path,
) -> None:
    async with running_door(tmp_path) as rig:
        client = await rig.connect()
        client.send(
            b"PUB orders 1\r\na" b"FETCH orders 0\r\n" b"PING\r\n" b"NONSENSE\r\n"
            b"PUB orders 1\r\nb" b"FETCH orders 1\r\n" b"FETCH orders 7\r\n" b"PUB orders 1\r\nc"
        )  # fmt: skip
        replies = await client.expect(8)
        assert replies[:3] == [Published(0), Fetched(0, b"a"), Pong()]
        assert code(replies[3]) == "unknown-command"
        assert replies[4:6] == [Published(1), Fetched(1, b"b")]
        assert code(replies[6]) == "offset-above-end"
        assert replies[7] == Published(2)


async def test_what_one_client_published_another_fetches(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        writer, reader = await rig.connect(), await rig.connect()
        writer.send(b"PUB orders 5\r\nhello")
        await writer.expect(1)
        reader.send(b"FETCH orders 0\r\n")
        assert await reader.expect(1) == [Fetched(0, b"hello")]


async def test_an_unknown_topic_is_refused_with_the_line_that_creates_it(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        client = await rig.connect()
        client.send(b"PUB ordres 1\r\nx" * 2 + b"FETCH nothing 0\r\nPUB orders 1\r\nx")
        first, second, third, fourth = await client.expect(4)
        assert first == second
        assert isinstance(first, Failed)
        assert first.code == "unknown-topic"
        assert "Did you mean 'orders'?" in first.text
        assert "ibrik topic create ordres" in first.text
        assert code(third) == "unknown-topic"
        assert fourth == Published(0)


async def test_partitions_may_be_named_and_must_exist(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        await rig.create("wide", partitions=3)
        client = await rig.connect()
        client.send(b"PUB wide/2 1\r\naPUB wide/1 1\r\nbFETCH wide/2 0\r\nPUB wide/3 1\r\nc")
        replies = await client.expect(4)
        assert replies[:3] == [Published(0), Published(0), Fetched(0, b"a")]
        assert code(replies[3]) == "unknown-partition"


async def test_runs_without_a_named_partition_are_spread_over_all(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        await rig.create("wide", partitions=3, partitioner="roundRobin")
        client = await rig.connect()
        for _ in range(6):
            client.send(b"PUB wide 1\r\nx")
            await client.expect(1)
        assert [p.latest for p in rig.core.engine.topic("wide").partitions] == [2, 2, 2]


async def test_a_message_over_the_topics_limit_is_refused_between_its_neighbours(
    tmp_path: Path,
) -> None:
    async with running_door(tmp_path) as rig:
        await rig.create("small", maxMessageBytes="1Ki")
        client = await rig.connect()
        sizes = (10, 1_024, 1_025, 2_000, 20)
        client.send(b"".join(encode_publish("small", b"x" * size) for size in sizes))
        replies = await client.expect(5)
        assert replies[:2] == [Published(0), Published(1)]
        assert [code(reply) for reply in replies[2:4]] == ["message-too-large"] * 2
        assert replies[4] == Published(2)


async def test_a_fetch_below_the_log_start_says_where_the_log_begins(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        client = await rig.connect()
        client.send(b"PUB orders 1\r\nx" * 5)
        await client.expect(5)
        await rig.core.registry.purge("orders")
        client.send(b"FETCH orders 2\r\n")
        (reply,) = await client.expect(1)
        assert isinstance(reply, Failed)
        assert reply.code == "offset-below-start"
        assert reply.text.startswith("5 5 Offset 2 of orders/0")


async def test_dev_creates_a_topic_on_first_use_and_keeps_the_order(tmp_path: Path) -> None:
    async with running_door(tmp_path, dev=True) as rig:
        client = await rig.connect()
        client.send(b"PUB a 1\r\n1PUB b 1\r\n2PING\r\nPUB a 1\r\n3FETCH a 1\r\n")
        assert await client.expect(5) == [
            Published(0),
            Published(0),
            Pong(),
            Published(1),
            Fetched(1, b"3"),
        ]


async def test_two_clients_may_use_a_new_topic_at_once(tmp_path: Path) -> None:
    async with running_door(tmp_path, dev=True) as rig:
        clients = [await rig.connect() for _ in range(5)]
        for client in clients:
            client.send(b"PUB fresh 1\r\nx" * 20)
        answers = [await client.expect(20) for client in clients]
        offsets = [r.offset for replies in answers for r in replies if isinstance(r, Published)]
        assert sorted(offsets) == list(range(100))


async def test_dev_fetches_create_nothing(tmp_path: Path) -> None:
    async with running_door(tmp_path, dev=True) as rig:
        client = await rig.connect()
        client.send(b"FETCH typo 0\r\n")
        assert code((await client.expect(1))[0]) == "unknown-topic"
        assert [topic.name for topic in rig.core.engine.topics()] == ["orders"]


async def test_a_tombstone_and_an_empty_payload_are_fetched_as_nothing(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        client = await rig.connect()
        client.send(b"PUB orders 0\r\nFETCH orders 0\r\n")
        assert await client.expect(2) == [Published(0), Fetched(0, b"")]


async def test_eight_producers_each_keep_their_own_order(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        clients = [await rig.connect() for _ in range(8)]
        for number, client in enumerate(clients):
            client.send(b"".join(encode_publish("orders", b"%d" % number) for _ in range(500)))
        answers = [await client.expect(500) for client in clients]
        for replies in answers:
            offsets = [reply.offset for reply in replies if isinstance(reply, Published)]
            assert offsets == sorted(offsets)
        assert rig.core.engine.topic("orders").partitions[0].latest == 4_000


async def test_the_door_counts_what_it_did(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        client = await rig.connect()
        client.send(b"PUB orders 1\r\nx" * 3 + b"FETCH orders 0\r\nPING\r\nFETCH orders 9\r\n")
        await client.expect(6)
        assert rig.counter("ibrik_tcp_connections") == 1
        assert rig.counter("ibrik_tcp_commands_total", "PUB") == 3
        assert rig.counter("ibrik_tcp_commands_total", "FETCH") == 1
        assert rig.counter("ibrik_tcp_commands_total", "PING") == 1
        assert rig.counter("ibrik_tcp_errors_total", "offset-above-end") == 1
