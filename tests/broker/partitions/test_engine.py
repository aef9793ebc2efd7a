"""The engine on real files: publish, read, wait, restart, change, delete."""

import asyncio
import threading
from pathlib import Path

import pytest

from ibrik_api.errors import Refusal
from ibrik_api.resources.topic import TopicSpec
from ibrik_broker.partitions.messages import Acks, Durability
from ibrik_log.errors import StorageFailed
from tests.broker.partitions.engine_support import Clock, message, read_all, running_engine


async def test_what_is_acknowledged_is_read_back_at_its_offset(tmp_path: Path) -> None:
    async with running_engine(tmp_path) as rig:
        topic = await rig.topic()
        first = await rig.engine.publish(topic, [message(b"a", key=b"k")])
        rest = await rig.engine.publish(
            topic, [message(b"b"), message(b"c", headers=[("h", b"1")])]
        )
        assert [r.offset for r in first + rest] == [0, 1, 2]
        assert first[0].durability is Durability.FLUSHED
        records = await read_all(topic)
    assert [(r.offset, r.key, r.value, r.headers) for r in records] == [
        (0, b"k", b"a", []),
        (1, None, b"b", []),
        (2, None, b"c", [("h", b"1")]),
    ]
    assert [r.timestamp_ms for r in records] == [rig.clock()] * 3


async def test_everything_is_there_after_a_restart(tmp_path: Path) -> None:
    async with running_engine(tmp_path) as rig:
        await rig.engine.publish(await rig.topic(), [message(b"%d" % n) for n in range(2_500)])
    async with running_engine(tmp_path) as rig:
        topic = await rig.topic()
        assert [r.value for r in await read_all(topic)] == [b"%d" % n for n in range(2_500)]
        receipts = await rig.engine.publish(topic, [message(b"next")])
        assert receipts[0].offset == 2_500


async def test_everything_acknowledged_is_there_after_a_crash(tmp_path: Path) -> None:
    async with running_engine(tmp_path, close=False) as rig:
        await rig.engine.publish(await rig.topic(), [message(b"a"), message(b"b")])
    async with running_engine(tmp_path) as rig:
        assert [r.value for r in await read_all(await rig.topic())] == [b"a", b"b"]


async def test_the_append_time_never_goes_back_when_the_clock_does(tmp_path: Path) -> None:
    clock = Clock()
    async with running_engine(tmp_path, clock=clock) as rig:
        topic = await rig.topic()
        before = (await rig.engine.publish(topic, [message(b"a")]))[0].timestamp_ms
        clock.now_ms -= 3_600_000
        after = (await rig.engine.publish(topic, [message(b"b")]))[0].timestamp_ms
    assert after == before


async def test_keys_keep_their_partition_and_order(tmp_path: Path) -> None:
    async with running_engine(tmp_path) as rig:
        topic = await rig.topic(partitions=4)
        messages = [message(b"%d" % n, key=b"key-%d" % (n % 10)) for n in range(200)]
        receipts = await rig.engine.publish(topic, messages)
        for key in range(10):
            mine = [r for n, r in enumerate(receipts) if n % 10 == key]
            assert len({r.partition for r in mine}) == 1
            assert [r.offset for r in mine] == sorted(r.offset for r in mine)


async def test_a_message_says_its_partition(tmp_path: Path) -> None:
    async with running_engine(tmp_path) as rig:
        topic = await rig.topic(partitions=3)
        receipts = await rig.engine.publish(topic, [message(b"a", partition=2)])
        assert receipts[0].partition == 2
        with pytest.raises(Refusal) as caught:
            await rig.engine.publish(topic, [message(b"a"), message(b"b", partition=3)])
        assert caught.value.code == "unknown-partition"
        assert sum(p.latest for p in topic.partitions) == 1, "nothing of a refused request is there"


async def test_an_unknown_topic_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    async with running_engine(tmp_path) as rig:
        await rig.topic("orders")
        with pytest.raises(Refusal, match="Did you mean 'orders'"):
            rig.engine.topic("ordres")


async def test_a_message_over_the_limit_refuses_the_whole_request(tmp_path: Path) -> None:
    async with running_engine(tmp_path) as rig:
        topic = await rig.topic(maxMessageBytes=100)
        with pytest.raises(Refusal) as caught:
            await rig.engine.publish(topic, [message(b"small"), message(b"x" * 101)])
        assert caught.value.code == "message-too-large"
        assert caught.value.errors[0]["pointer"] == "/messages/1"
        assert topic.partitions[0].latest == 0


async def test_a_record_larger_than_a_shared_batch_is_a_batch_of_its_own(tmp_path: Path) -> None:
    async with running_engine(tmp_path) as rig:
        topic = await rig.topic(maxMessageBytes="2Mi")
        values = [b"s", b"L" * 1_000_000, b"t"]
        await rig.engine.publish(topic, [message(v) for v in values])
        assert [r.value for r in await read_all(topic)] == values


async def test_acks_none_is_answered_at_once_and_written_all_the_same(tmp_path: Path) -> None:
    async with running_engine(tmp_path) as rig:
        topic = await rig.topic()
        receipts = await rig.engine.publish(topic, [message(b"a")], Acks.NONE)
        assert (receipts[0].offset, receipts[0].durability) == (-1, Durability.NONE)
        assert await topic.partitions[0].wait(0, timeout_s=10)
        assert [r.value for r in await read_all(topic)] == [b"a"]


async def test_written_is_answered_before_the_flush_and_seen_after_it(tmp_path: Path) -> None:
    async with running_engine(tmp_path) as rig:
        topic = await rig.topic(durability="written")
        receipts = await rig.engine.publish(topic, [message(b"a")])
        assert receipts[0].durability is Durability.WRITTEN
        assert topic.partitions[0].latest == 0, "readers see flushed records only"
        assert await topic.partitions[0].wait(0, timeout_s=10)
        assert [r.value for r in await read_all(topic)] == [b"a"]


async def test_written_is_flushed_in_time_while_more_and_more_comes(tmp_path: Path) -> None:
    async with running_engine(tmp_path) as rig:
        topic = await rig.topic(durability="written")
        async with asyncio.timeout(10):
            while topic.partitions[0].latest == 0:  # the writer is never idle
                await rig.engine.publish(topic, [message(b"a")])


async def test_reading_out_of_range_says_the_range(tmp_path: Path) -> None:
    async with running_engine(tmp_path) as rig:
        topic = await rig.topic()
        await rig.engine.publish(topic, [message(b"a")])
        with pytest.raises(Refusal) as caught:
            await topic.partitions[0].read(2, 100)
        assert caught.value.code == "offset-above-end"
        assert caught.value.facts == {"earliest": 0, "latest": 1}
        assert await topic.partitions[0].read(1, 100) == []


async def test_a_purge_leaves_offsets_where_they_are(tmp_path: Path) -> None:
    async with running_engine(tmp_path) as rig:
        topic = await rig.topic()
        await rig.engine.publish(topic, [message(b"a"), message(b"b")])
        await rig.engine.purge_topic(topic)
        assert topic.partitions[0].earliest == topic.partitions[0].latest == 2
        with pytest.raises(Refusal) as caught:
            await topic.partitions[0].read(0, 100)
        assert caught.value.code == "offset-below-start"
        receipts = await rig.engine.publish(topic, [message(b"c")])
        assert receipts[0].offset == 2


async def test_a_waiting_reader_is_woken_by_the_next_record(tmp_path: Path) -> None:
    async with running_engine(tmp_path) as rig:
        topic = await rig.topic(partitions=2)
        async with asyncio.TaskGroup() as group:
            waits = group.create_task(topic.wait([0, 0], timeout_s=10))
            await asyncio.sleep(0)
            await rig.engine.publish(topic, [message(b"a", partition=1)])
        assert waits.result()
        assert await topic.wait([0, 0], timeout_s=0)
        assert not await topic.wait([0, 1], timeout_s=0)
        assert not await topic.partitions[0].wait(0, timeout_s=0)


async def test_partitions_can_be_added_to_an_open_topic(tmp_path: Path) -> None:
    async with running_engine(tmp_path) as rig:
        topic = await rig.topic(partitions=1)
        rig.engine._volume.add_partitions(topic.id, 3)
        await rig.engine.update_topic(topic, TopicSpec(partitions=3))
        receipts = await rig.engine.publish(topic, [message(b"a", partition=2)])
        assert receipts[0].partition == 2


async def test_a_deleted_topic_answers_what_it_accepted_and_is_gone(tmp_path: Path) -> None:
    async with running_engine(tmp_path) as rig:
        topic = await rig.topic()
        async with asyncio.TaskGroup() as group:
            last = group.create_task(rig.engine.publish(topic, [message(b"a")]))
            await asyncio.sleep(0)
            await rig.engine.delete_topic(topic)
        assert last.result()[0].offset == 0
        with pytest.raises(Refusal) as caught:
            rig.engine.topic("orders")
        assert caught.value.code == "unknown-topic"
        with pytest.raises(Refusal):
            await rig.engine.publish(topic, [message(b"late")])
    async with running_engine(tmp_path) as rig:
        assert rig.engine._volume.topics() == []


async def test_a_closing_engine_answers_what_it_accepted(tmp_path: Path) -> None:
    async with running_engine(tmp_path, close=False) as rig:
        topic = await rig.topic()
        async with asyncio.TaskGroup() as group:
            pending = [
                group.create_task(rig.engine.publish(topic, [message(b"%d" % n)]))
                for n in range(50)
            ]
            await asyncio.sleep(0)
            await rig.engine.close()
        assert sorted(t.result()[0].offset for t in pending) == list(range(50))


async def test_the_offset_of_a_time_is_the_first_record_at_or_after_it(tmp_path: Path) -> None:
    clock = Clock()
    async with running_engine(tmp_path, clock=clock) as rig:
        topic = await rig.topic()
        start = clock()
        for n in range(5):
            clock.now_ms = start + n * 1_000
            await rig.engine.publish(topic, [message(b"%d" % n)])
        partition = topic.partitions[0]
        assert await partition.offset_for_timestamp(start + 1_500) == 2
        assert await partition.offset_for_timestamp(start - 1) == 0
        assert await partition.offset_for_timestamp(start + 99_999) == 5


async def test_a_topic_that_cannot_be_opened_whole_leaves_nothing_open(tmp_path: Path) -> None:
    async with running_engine(tmp_path) as rig:
        topic = await rig.topic(partitions=2)
        await rig.engine.publish(topic, [message(b"a", partition=0)])
    second = tmp_path / "topics" / topic.id / "1"
    for file in second.iterdir():
        file.unlink()
    second.rmdir()
    second.write_text("a file where a folder belongs")
    async with running_engine(tmp_path) as rig:
        with pytest.raises(StorageFailed):
            await rig.topic(partitions=2)
        assert rig.engine.topics() == []
        second.unlink()
        topic = await rig.topic(partitions=2)
        assert [r.value for r in await read_all(topic, 0)] == [b"a"]


async def test_a_topic_closes_after_what_its_last_roll_left_to_be_stored(tmp_path: Path) -> None:
    async with running_engine(tmp_path) as rig:
        topic = await rig.topic()
        await rig.engine.publish(topic, [message(b"a")])
        is_free, stored = threading.Event(), list[str]()
        maintenance = rig.engine._maintenance
        maintenance.submit(is_free.wait)
        maintenance.submit(lambda: stored.append("of the roll"))
        closing = asyncio.ensure_future(rig.engine.close_topic(topic))
        await asyncio.sleep(0.01)
        assert not closing.done(), "two that write one snapshot spoil it"
        is_free.set()
        await closing
        assert stored == ["of the roll"]
