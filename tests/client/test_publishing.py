"""Publishing to a real broker: places, order, ids, refusals, a broker that dies in between."""

import asyncio
from pathlib import Path

import pytest

import ibrik_client
from ibrik_client import Client, InvalidRequest, RawJson, RetryPolicy, Unavailable
from ibrik_log.batch import Producer, encode
from ibrik_log.record import Record
from tests.support.broker import Broker, running_broker

pytestmark = pytest.mark.slow


@pytest.fixture
async def topic(ibrik: Client, request: pytest.FixtureRequest) -> str:
    name = request.node.name.replace("_", "-").partition("[")[0]
    await ibrik.admin.create_topic(name, {"partitions": 3})
    return name


async def test_what_is_published_is_read_back_byte_for_byte(ibrik: Client, topic: str) -> None:
    values = [b"\x00\xff", "grün", {"n": 1.5}, RawJson(b'{"x": 1.10}'), b' {"spaced" : 1}\n', b""]
    expected = [b"\x00\xff", "grün".encode(), b'{"n":1.5}', b'{"x": 1.10}', values[4], b""]
    singles = [await ibrik.publish(topic, v, key=b"\xfe", headers={"trace": "ü"}) for v in values]
    batched = await ibrik.publish_many(topic, values, key="k", headers={"trace": "ü"})
    for acks, key in ((singles, b"\xfe"), (batched, b"k")):
        found = [await ibrik.message(topic, ack.partition, ack.offset) for ack in acks]
        assert [m.value for m in found] == expected
        assert {m.key for m in found} == {key}
        assert {m.headers["trace"] for m in found} == {"ü"}
        assert [m.id for m in found] == [ack.id for ack in acks]


async def test_a_message_may_have_no_value(ibrik: Client, topic: str) -> None:
    ack = await ibrik.publish(topic, None, key="gone")
    message = await ibrik.message(topic, ack.partition, ack.offset)
    assert (message.key, message.value) == (b"gone", None)


async def test_one_key_keeps_one_partition_and_its_order(ibrik: Client, topic: str) -> None:
    async with ibrik.publisher(topic, batch_records=7) as publisher:
        futures = [await publisher.send({"n": n}, key=n % 5) for n in range(500)]
    by_key: dict[int, list[ibrik_client.Ack]] = {}
    for n, future in enumerate(futures):
        by_key.setdefault(n % 5, []).append(future.result())
    for acks in by_key.values():
        assert len({ack.partition for ack in acks}) == 1
        assert [ack.offset for ack in acks] == sorted(ack.offset for ack in acks)


async def test_the_same_id_is_one_message(ibrik: Client, topic: str) -> None:
    first = await ibrik.publish(topic, b"once", id="a", partition=1)
    again = await ibrik.publish(topic, b"once", id="a", partition=1)
    batched = (await ibrik.publish_many(topic, [b"once"], id="a", partition=1))[0]
    assert not first.is_duplicate
    assert again.is_duplicate
    assert batched.is_duplicate
    assert first.offset == again.offset == batched.offset


async def test_the_same_id_with_another_value_is_refused(ibrik: Client, topic: str) -> None:
    await ibrik.publish(topic, b"one", id="a", partition=1)
    with pytest.raises(InvalidRequest) as caught:
        await ibrik.publish(topic, b"two", id="a", partition=1)
    assert caught.value.code == "idempotency-mismatch"


async def test_a_batch_with_a_sequence_is_there_once_and_in_its_place(
    ibrik: Client, topic: str
) -> None:
    def frame(sequence: int) -> bytes:
        records = [Record(b"\xff", None, [("h", b"\xfe")]), Record(None, b"v", [])]
        return bytes(encode(records, producer=Producer(7, 0, sequence)))

    (first,) = await ibrik.publish_raw(topic, frame(0), partition=1)
    assert (first.partition, first.offset, first.records) == (1, 0, 2)
    again, second = await ibrik.publish_raw(topic, frame(0) + frame(2), partition=1)
    assert (again.offset, again.is_duplicate) == (0, True)
    assert (second.offset, second.is_duplicate) == (2, False)
    with pytest.raises(InvalidRequest) as refused:
        await ibrik.publish_raw(topic, frame(9), partition=1)
    assert refused.value.code == "out-of-order-sequence"
    assert refused.value.problem["expected_sequence"] == 4
    found = await ibrik.message(topic, 1, 0)
    assert (found.key, found.value, found.headers["h"]) == (b"\xff", None, b"\xfe")


async def test_a_refused_message_fails_alone(ibrik: Client, topic: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        async with ibrik.publisher(topic) as publisher:
            futures = [
                await publisher.send({"n": 1}),
                await publisher.send(b"x" * 1_100_000),
                await publisher.send({"n": 2}),
            ]
    assert caught.value.code == "message-too-large"
    assert isinstance(futures[1].exception(), InvalidRequest)
    assert [futures[i].result().durability for i in (0, 2)] == ["flushed", "flushed"]


async def test_nobody_waits_for_acks_none(ibrik: Client, topic: str) -> None:
    ack = await ibrik.publish(topic, b"x", acks="none")
    assert (ack.offset, ack.durability) == (-1, "none")


async def test_memory_is_bounded_by_pending_bytes(ibrik: Client, topic: str) -> None:
    async with ibrik.publisher(topic, pending_bytes=10_000, batch_records=5) as publisher:
        most = 0
        for _ in range(300):
            await publisher.send(b"x" * 500)
            most = max(most, publisher.pending_records)
    assert most <= 20


async def test_leaving_by_an_exception_gives_up_what_is_pending(ibrik: Client, topic: str) -> None:
    futures: list[asyncio.Future[ibrik_client.Ack]] = []

    async def give_up() -> None:
        async with ibrik.publisher(topic, batch_records=1) as publisher:
            futures.extend([await publisher.send(b"x") for _ in range(50)])
            raise KeyError

    with pytest.raises(KeyError):
        await give_up()
    assert all(future.done() for future in futures)
    assert any(future.cancelled() for future in futures)


async def test_an_unknown_topic_says_how_to_make_it(ibrik: Client) -> None:
    with pytest.raises(InvalidRequest, match="ibrik topic create nobody"):
        await ibrik.publish("nobody", b"x")
    with pytest.raises(InvalidRequest, match="ibrik topic create nobody"):
        await ibrik.publish_many("nobody", [b"x"])


async def test_a_publisher_outlives_a_kill_and_doubles_nothing(tmp_path: Path) -> None:
    count = 3_000
    with running_broker(tmp_path) as broker:
        port = broker.http_url.rpartition(":")[2]
        patient = RetryPolicy(deadline_s=60, first_wait_s=0.02, longest_wait_s=0.2)
        async with ibrik_client.connect(broker.http_url, retry=patient) as ibrik:
            await ibrik.admin.create_topic("orders", {"partitions": 2})
            async with ibrik.publisher("orders", batch_records=50) as publisher:
                futures = [await publisher.send({"n": n}, key=n % 7) for n in range(count)]
                await futures[count // 3]
                broker.kill()
                restarted = running_broker(tmp_path, IBRIK_HTTP__PORT=port)
                await asyncio.to_thread(restarted.__enter__)
                await publisher.flush()
                acks = [future.result() for future in futures]
                found = {
                    (m.partition, m.offset): m.json()["n"]
                    for partition in (0, 1)
                    async for m in ibrik.scan("orders", partition)
                }
            restarted.__exit__(None, None, None)
    assert found == {(ack.partition, ack.offset): n for n, ack in enumerate(acks)}


async def test_after_the_deadline_everything_pending_is_told(tmp_path: Path) -> None:
    futures: list[asyncio.Future[ibrik_client.Ack]] = []

    async def publish_into_the_void(ibrik: Client, broker: Broker) -> None:
        async with ibrik.publisher("orders", deadline_s=0.2, batch_records=10) as publisher:
            await publisher.publish(b"x")
            broker.kill()
            futures.extend([await publisher.send(b"x") for _ in range(100)])

    with running_broker(tmp_path) as broker:
        async with ibrik_client.connect(broker.http_url) as ibrik:
            await ibrik.admin.create_topic("orders")
            with pytest.raises(Unavailable):
                await publish_into_the_void(ibrik, broker)
    assert all(isinstance(future.exception(), Unavailable) for future in futures)
