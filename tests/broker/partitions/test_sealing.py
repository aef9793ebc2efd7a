"""Sealing on demand, between requests that publish."""

import asyncio
from pathlib import Path

import pytest

from ibrik_api.errors import Refusal
from ibrik_broker.partitions.engine import EngineConfig
from tests.broker.partitions.engine_support import message, read_all, running_engine


async def test_what_was_published_before_is_sealed_and_what_follows_is_not(tmp_path: Path) -> None:
    async with running_engine(tmp_path) as rig:
        topic = await rig.topic(partitions=2)
        before = rig.engine.publish(topic, [message(b"%d" % n, partition=0) for n in range(3)])
        receipts, end, _ = await asyncio.gather(
            before,
            topic.partitions[0].seal(0),
            rig.engine.publish(topic, [message(b"after", partition=0)]),
        )
        assert [receipt.offset for receipt in receipts] == [0, 1, 2]
        assert end == 3
        assert topic.partitions[0].latest == 4
        assert await rig.engine.roll_topic(topic, 3_600_000) == [3, 0]


async def test_rolls_among_many_producers_lose_nothing_and_seal_no_empty_segment(
    tmp_path: Path,
) -> None:
    published: list[int] = []
    told: list[int] = []

    async with running_engine(tmp_path) as rig:
        topic = await rig.topic(durability="written")

        async def produce(producer: int) -> None:
            for number in range(40):
                value = b"%d/%d" % (producer, number)
                (receipt,) = await rig.engine.publish(topic, [message(value)])
                published.append(receipt.offset)

        async def roll() -> None:
            for _ in range(40):
                known = max(published, default=-1)
                (end,) = await rig.engine.roll_topic(topic, 0)
                assert end > known
                told.append(end)

        await asyncio.gather(*(produce(n) for n in range(5)), roll())
    assert told == sorted(told)
    async with running_engine(tmp_path) as rig:
        topic = await rig.topic()
        records = await read_all(topic)
        assert [r.offset for r in records] == sorted(published) == list(range(200))
        *sealed, _ = topic.partitions[0].log.segments
        assert all(segment.next_offset > segment.base_offset for segment in sealed)
        assert {segment.next_offset for segment in sealed} == set(told)


async def test_a_nearly_full_volume_still_seals(tmp_path: Path) -> None:
    async with running_engine(tmp_path) as rig:
        await rig.engine.publish(await rig.topic(), [message(b"a")])
    floor = EngineConfig(min_free_bytes=1 << 62)
    async with running_engine(tmp_path, config=floor) as rig:
        topic = await rig.topic()
        with pytest.raises(Refusal, match="nearly full"):
            await rig.engine.publish(topic, [message(b"b")])
        assert await rig.engine.roll_topic(topic, 0) == [1]


async def test_a_topic_that_is_closed_is_not_sealed(tmp_path: Path) -> None:
    async with running_engine(tmp_path) as rig:
        topic = await rig.topic()
        await rig.engine.close_topic(topic)
        with pytest.raises(Refusal, match="deleted or detached"):
            await rig.engine.roll_topic(topic, 0)
        assert rig.failures == []
