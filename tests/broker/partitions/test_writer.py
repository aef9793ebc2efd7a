"""The log writer on a disk that is slow, full or broken: what is told to whom, and what is kept."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from ibrik_api.errors import Refusal
from ibrik_broker.partitions.engine import EngineConfig
from ibrik_broker.partitions.flush import FlushMode, choose_mode
from ibrik_broker.partitions.messages import Acks
from tests.broker.partitions.engine_support import NO_FLOOR, message, read_all, running_engine
from tests.broker.partitions.turning_disk import TurningDisk


async def settle() -> None:
    """Let the event loop carry out all that is ready now."""
    for _ in range(3):
        await asyncio.sleep(0)


async def refusal_of(request: "asyncio.Task[object]") -> str:
    with pytest.raises(Refusal) as caught:
        await request
    return caught.value.code


async def test_what_comes_during_a_flush_shares_the_next_one(tmp_path: Path) -> None:
    disk = TurningDisk()
    async with running_engine(tmp_path, disk=disk) as rig:
        topic = await rig.topic()
        await rig.engine.publish(topic, [message(b"first")])
        disk.may_flush.clear()
        before = disk.flush_count
        pending = [asyncio.ensure_future(rig.engine.publish(topic, [message(b"0")]))]
        while disk.flush_count == before:  # the writer is in its flush now
            await asyncio.sleep(0)
        pending += [
            asyncio.ensure_future(rig.engine.publish(topic, [message(b"n")])) for _ in range(99)
        ]
        await settle()
        disk.may_flush.set()
        await asyncio.wait(pending)
        assert disk.flush_count == before + 2, "one flush for the first, one for the other 99"


async def test_nothing_is_acknowledged_or_seen_before_the_flush(tmp_path: Path) -> None:
    disk = TurningDisk()
    async with running_engine(tmp_path, disk=disk) as rig:
        topic = await rig.topic()
        await rig.engine.publish(topic, [message(b"first")])
        before = disk.flush_count
        disk.may_flush.clear()
        request = asyncio.ensure_future(rig.engine.publish(topic, [message(b"a")]))
        while disk.flush_count == before:
            await asyncio.sleep(0)
        assert not request.done()
        assert topic.partitions[0].latest == 1
        disk.may_flush.set()
        assert (await request)[0].offset == 1


async def test_a_failed_flush_refuses_the_whole_group_and_ends_the_broker(tmp_path: Path) -> None:
    disk = TurningDisk()
    async with running_engine(tmp_path, disk=disk) as rig:
        topic, other = await rig.topic("orders"), await rig.topic("bills")
        await rig.engine.publish(topic, [message(b"kept")])
        disk.may_flush.clear()
        disk.fails_flush = True
        requests = [
            asyncio.ensure_future(rig.engine.publish(where, [message(b"lost")]))
            for where in (topic, other, topic)
        ]
        await settle()
        disk.may_flush.set()
        for request in requests:
            assert await refusal_of(request) == "storage-failed"
        await wait_until(lambda: len(rig.failures) == 1)
        flushes = disk.flush_count
        disk.fails_flush = False
        late = asyncio.ensure_future(rig.engine.publish(topic, [message(b"late")]))
        assert await refusal_of(late) == "storage-failed", "the flush is not tried again"
        assert disk.flush_count == flushes
        await rig.engine.close_topic(other)  # does not wait for a writer that has ended
    async with running_engine(tmp_path) as rig:
        assert (await read_all(await rig.topic("orders")))[0].value == b"kept"


async def test_a_full_disk_refuses_only_what_it_could_not_write(tmp_path: Path) -> None:
    disk = TurningDisk()
    async with running_engine(tmp_path, disk=disk) as rig:
        topic = await rig.topic()
        await rig.engine.publish(topic, [message(b"before")])
        disk.has_no_room_for = b"too much"
        with pytest.raises(Refusal) as caught:
            await rig.engine.publish(topic, [message(b"too much")])
        assert caught.value.code == "storage-full"
        assert rig.failures == []
        disk.has_no_room_for = None
        assert (await rig.engine.publish(topic, [message(b"after")]))[0].offset == 1
        assert [r.value for r in await read_all(topic)] == [b"before", b"after"]


async def test_publishing_stops_below_the_low_water_mark_and_resumes_by_itself(
    tmp_path: Path,
) -> None:
    disk = TurningDisk()
    config = EngineConfig(min_free_bytes=1_000, maintenance_seconds=0.01)
    async with running_engine(tmp_path, disk=disk, config=config) as rig:
        topic = await rig.topic()
        await rig.engine.publish(topic, [message(b"a")])
        disk.free = 999
        await wait_until(lambda: rig.engine.writer.refusal is not None)
        with pytest.raises(Refusal) as caught:
            await rig.engine.publish(topic, [message(b"b")])
        assert (caught.value.code, caught.value.retryable) == ("storage-full", True)
        assert caught.value.retry_after_ms
        assert [r.value for r in await read_all(topic)] == [b"a"], "reading goes on"
        disk.free = 1_000
        await wait_until(lambda: rig.engine.writer.refusal is None)
        assert (await rig.engine.publish(topic, [message(b"b")]))[0].offset == 1


async def wait_until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.001)


async def test_a_full_buffer_rejects_at_once_where_the_topic_says_so(tmp_path: Path) -> None:
    disk = TurningDisk()
    async with running_engine(tmp_path, disk=disk) as rig:
        topic = await rig.topic(buffer={"records": 2, "whenFull": "reject"})
        disk.may_flush.clear()
        held = [asyncio.ensure_future(rig.engine.publish(topic, [message(b"a")])) for _ in range(2)]
        await settle()
        full = asyncio.ensure_future(rig.engine.publish(topic, [message(b"c")]))
        assert await refusal_of(full) == "buffer-full"
        disk.may_flush.set()
        assert sorted([(await request)[0].offset for request in held]) == [0, 1]
        assert topic.partitions[0].buffer.pending_records == 0


async def test_a_full_buffer_lets_requests_wait_for_room_in_their_order(tmp_path: Path) -> None:
    disk = TurningDisk()
    async with running_engine(tmp_path, disk=disk) as rig:
        topic = await rig.topic(buffer={"records": 1})
        disk.may_flush.clear()
        requests = [
            asyncio.ensure_future(rig.engine.publish(topic, [message(b"%d" % n)])) for n in range(5)
        ]
        await settle()
        assert topic.partitions[0].buffer.pending_records == 1
        disk.may_flush.set()
        assert [(await request)[0].offset for request in requests] == [0, 1, 2, 3, 4]


async def test_who_waits_too_long_for_room_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ibrik_broker.partitions.partition.WAIT_FOR_ROOM_SECONDS", 0.0)
    disk = TurningDisk()
    async with running_engine(tmp_path, disk=disk) as rig:
        topic = await rig.topic(buffer={"records": 1})
        disk.may_flush.clear()
        first = asyncio.ensure_future(rig.engine.publish(topic, [message(b"a")]))
        await settle()
        second = asyncio.ensure_future(rig.engine.publish(topic, [message(b"b")]))
        assert await refusal_of(second) == "buffer-full"
        disk.may_flush.set()
        assert (await first)[0].offset == 0


async def test_drop_oldest_drops_only_what_nobody_waits_for(tmp_path: Path) -> None:
    disk = TurningDisk()
    async with running_engine(tmp_path, disk=disk) as rig:
        topic = await rig.topic(buffer={"records": 2, "whenFull": "dropOldest"})
        partition = topic.partitions[0]
        await rig.engine.publish(topic, [message(b"zero")])
        disk.may_flush.clear()
        before = disk.flush_count
        await rig.engine.publish(topic, [message(b"in the flush")], Acks.NONE)
        while disk.flush_count == before:
            await asyncio.sleep(0)
        await rig.engine.publish(topic, [message(b"dropped")], Acks.NONE)
        kept = asyncio.ensure_future(rig.engine.publish(topic, [message(b"waited for")]))
        await settle()
        assert partition.dropped_count == 1
        full = asyncio.ensure_future(rig.engine.publish(topic, [message(b"no room")]))
        assert await refusal_of(full) == "buffer-full", "nothing is left that may be dropped"
        disk.may_flush.set()
        await kept
        values = [r.value for r in await read_all(topic)]
        assert values == [b"zero", b"in the flush", b"waited for"]


@pytest.mark.parametrize("mode", [FlushMode.FDATASYNC, FlushMode.POOL, FlushMode.SYNCFS])
async def test_many_dirty_partitions_are_flushed_whatever_the_way(
    tmp_path: Path, mode: FlushMode
) -> None:
    config = EngineConfig(flush=mode, min_free_bytes=0)
    async with running_engine(tmp_path, config=config, close=False) as rig:
        topic = await rig.topic(partitions=12)
        messages = [message(b"%d" % n, partition=n % 12) for n in range(120)]
        receipts = await rig.engine.publish(topic, messages)
        assert [r.offset for r in receipts] == [n // 12 for n in range(120)]
    async with running_engine(tmp_path) as rig:
        topic = await rig.topic(partitions=12)
        for index in range(12):
            assert len(await read_all(topic, index)) == 10


def test_syncfs_is_chosen_only_where_the_folder_is_its_own_mount(tmp_path: Path) -> None:
    assert choose_mode(FlushMode.AUTO, tmp_path) is FlushMode.POOL
    assert choose_mode(FlushMode.AUTO, Path("/proc")) is FlushMode.SYNCFS
    assert choose_mode(FlushMode.AUTO, Path("/")) is FlushMode.POOL, "it holds strangers' files"
    assert choose_mode(FlushMode.FDATASYNC, Path("/proc")) is FlushMode.FDATASYNC


async def test_the_tail_is_not_the_only_source(tmp_path: Path) -> None:
    config = EngineConfig(tail_cache_bytes=0, min_free_bytes=NO_FLOOR.min_free_bytes)
    async with running_engine(tmp_path, config=config) as rig:
        topic = await rig.topic()
        await rig.engine.publish(topic, [message(b"%d" % n) for n in range(3_000)])
        assert rig.engine.tails.size_bytes == 0
        assert [r.value for r in await read_all(topic)] == [b"%d" % n for n in range(3_000)]


async def test_a_failed_flush_does_not_answer_again_who_did_not_wait_for_it(tmp_path: Path) -> None:
    disk = TurningDisk()
    async with running_engine(tmp_path, disk=disk) as rig:
        flushed, written = await rig.topic("safe"), await rig.topic("fast", durability="written")
        await rig.engine.publish(flushed, [message(b"kept")])
        before = disk.flush_count
        disk.may_flush.clear()
        disk.fails_flush = True
        opening = asyncio.ensure_future(rig.engine.publish(flushed, [message(b"opening")]))
        while disk.flush_count == before:  # the writer is in its flush; the next two share a group
            await asyncio.sleep(0)
        requests = [
            asyncio.ensure_future(rig.engine.publish(topic, [message(b"a")]))
            for topic in (written, flushed)
        ]
        await settle()
        disk.may_flush.set()
        for request in (opening, *requests):
            assert await refusal_of(request) == "storage-failed"
        assert written.partitions[0].buffer.pending_records == 0


async def test_a_group_of_both_classes_answers_the_written_ones_once(tmp_path: Path) -> None:
    disk = TurningDisk()
    async with running_engine(tmp_path, disk=disk) as rig:
        flushed, written = await rig.topic("safe"), await rig.topic("fast", durability="written")
        disk.may_flush.clear()
        disk.fails_flush = True
        requests = [  # of one turn of the event loop, so of one group
            asyncio.ensure_future(rig.engine.publish(topic, [message(b"a")]))
            for topic in (written, flushed)
        ]
        await settle()
        disk.may_flush.set()
        outcomes = await asyncio.gather(*requests, return_exceptions=True)
        codes = [getattr(outcome, "code", "acknowledged") for outcome in outcomes]
        assert codes == ["acknowledged", "storage-failed"]
        assert written.partitions[0].buffer.pending_records == 0
