"""Idempotent publishing: one id, one record, and its offset for every repeat."""

import asyncio
from pathlib import Path

import pytest

from ibrik_api.errors import Refusal
from tests.broker.partitions.engine_support import Clock, message, read_all, running_engine

ID_HEADERS = [("ibrik-id", b"1")]


def identified(value: bytes, message_id: bytes = b"1"):  # type: ignore[no-untyped-def]
    return message(value, id=message_id, headers=[("ibrik-id", message_id)])


async def test_a_repeat_is_answered_with_the_original_offset(tmp_path: Path) -> None:
    async with running_engine(tmp_path) as rig:
        topic = await rig.topic()
        first = (await rig.engine.publish(topic, [identified(b"a")]))[0]
        await rig.engine.publish(topic, [message(b"between")])
        again = (await rig.engine.publish(topic, [identified(b"a")]))[0]
        assert (again.offset, again.timestamp_ms) == (first.offset, first.timestamp_ms)
        assert (first.is_duplicate, again.is_duplicate) == (False, True)
        assert topic.partitions[0].latest == 2


@pytest.mark.parametrize("is_clean", [True, False], ids=["clean stop", "crash"])
async def test_a_repeat_is_known_after_a_restart(tmp_path: Path, is_clean: bool) -> None:
    async with running_engine(tmp_path, close=is_clean) as rig:
        topic = await rig.topic(partitions=3)
        firsts = [
            (await rig.engine.publish(topic, [identified(b"v%d" % n, b"id-%d" % n)]))[0]
            for n in range(20)
        ]
    async with running_engine(tmp_path) as rig:
        topic = await rig.topic(partitions=3)
        repeats = [
            (await rig.engine.publish(topic, [identified(b"v%d" % n, b"id-%d" % n)]))[0]
            for n in range(20)
        ]
        assert [(r.partition, r.offset) for r in repeats] == [
            (r.partition, r.offset) for r in firsts
        ]
        assert all(r.is_duplicate for r in repeats)


async def test_the_same_id_with_another_payload_is_refused(tmp_path: Path) -> None:
    async with running_engine(tmp_path) as rig:
        topic = await rig.topic()
        await rig.engine.publish(topic, [identified(b"a")])
        with pytest.raises(Refusal) as caught:
            await rig.engine.publish(topic, [message(b"new"), identified(b"other")])
        assert caught.value.code == "idempotency-mismatch"
        assert caught.value.errors[0]["pointer"] == "/messages/1"
        assert topic.partitions[0].latest == 1, "nothing of a refused request is there"


async def test_an_id_is_forgotten_when_its_window_is_over(tmp_path: Path) -> None:
    clock = Clock()
    async with running_engine(tmp_path, clock=clock) as rig:
        topic = await rig.topic(deduplicationWindow="1m")
        await rig.engine.publish(topic, [identified(b"a")])
        clock.now_ms += 60_001
        again = (await rig.engine.publish(topic, [identified(b"a")]))[0]
        assert (again.offset, again.is_duplicate) == (1, False)


async def test_a_twin_in_flight_shares_the_result_of_the_first(tmp_path: Path) -> None:
    async with running_engine(tmp_path) as rig:
        topic = await rig.topic()
        async with asyncio.TaskGroup() as group:
            twins = [
                group.create_task(rig.engine.publish(topic, [identified(b"a")])) for _ in range(50)
            ]
        receipts = [twin.result()[0] for twin in twins]
        assert {r.offset for r in receipts} == {0}
        assert sum(not r.is_duplicate for r in receipts) == 1
        assert len(await read_all(topic)) == 1


async def test_twins_within_one_request_are_one_record(tmp_path: Path) -> None:
    async with running_engine(tmp_path) as rig:
        topic = await rig.topic()
        receipts = await rig.engine.publish(topic, [identified(b"a"), identified(b"a")])
        assert [(r.offset, r.is_duplicate) for r in receipts] == [(0, False), (0, True)]
        with pytest.raises(Refusal) as caught:
            await rig.engine.publish(topic, [identified(b"x", b"2"), identified(b"y", b"2")])
        assert caught.value.code == "idempotency-mismatch"


async def test_a_producer_that_left_early_still_counts(tmp_path: Path) -> None:
    async with running_engine(tmp_path) as rig:
        topic = await rig.topic()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await rig.engine.publish(topic, [identified(b"a")])
        again = (await rig.engine.publish(topic, [identified(b"a")]))[0]
        assert (again.offset, again.is_duplicate) == (0, True)


async def test_ids_of_different_sources_are_different(tmp_path: Path) -> None:
    async with running_engine(tmp_path) as rig:
        topic = await rig.topic()
        for source in (b"shop", b"bank"):
            receipts = await rig.engine.publish(topic, [message(b"a", id=b"1", source=source)])
            assert not receipts[0].is_duplicate


async def test_an_id_is_remembered_without_waiting_too(tmp_path: Path) -> None:
    from ibrik_broker.partitions.messages import Acks

    async with running_engine(tmp_path) as rig:
        topic = await rig.topic()
        await rig.engine.publish(topic, [identified(b"a")], Acks.NONE)
        again = (await rig.engine.publish(topic, [identified(b"a")]))[0]
        assert again.is_duplicate
