"""Replays begin, are cancelled, end, are forgotten, and go on after a crash."""

from pathlib import Path

import pytest

from ibrik_api.errors import Refusal
from ibrik_broker.delivery.replay_job import Counts, ReplayState
from ibrik_broker.delivery.replays import KEPT_MS, RUNNING_MAX
from tests.broker.delivery.replay_rig import Gate, numbers
from tests.broker.delivery.replaying import (
    at,
    crashed_copy,
    open_replays,
)
from tests.support.delivery import FakeClock, RecordingSender, settled, status


async def test_more_than_sixteen_at_once_are_refused_until_one_ends(tmp_path: Path) -> None:
    async with open_replays(tmp_path) as made:
        await made.parts.topic("orders")
        await numbers(made, 1)
        made.parts.sender.answer = gate = Gate()
        jobs = [await made.replay() for _ in range(RUNNING_MAX)]
        with pytest.raises(Refusal) as refused:
            await made.replay()
        assert refused.value.code == "too-many-replays"
        await made.replays.cancel(jobs[0].id)
        await made.replay()
        gate.open.set()


# --- ends -----------------------------------------------------------------------------------------


async def test_a_cancelled_replay_sends_nothing_more(tmp_path: Path) -> None:
    async with open_replays(tmp_path) as made:
        gate = Gate()
        await made.parts.topic("orders")
        await numbers(made, 100)
        made.parts.sender.answer = gate
        await made.parts.channel(limits={"concurrency": 2})
        job = await made.replay()
        await made.parts.until(lambda: len(made.parts.sender.parcels) == 2)
        await made.replays.cancel(job.id)
        gate.open.set()
        await made.parts.until(lambda: job.counts.delivered == 2)
        await settled()
        assert len(made.parts.sender.parcels) == 2
        assert (job.state, job.remaining) == (ReplayState.CANCELLED, 98)
        await made.replays.cancel(job.id)
        await made.replays.look()
        assert job.row.delivered == 2


async def test_a_replay_of_a_deleted_topic_or_to_a_deleted_channel_fails(tmp_path: Path) -> None:
    async with open_replays(tmp_path) as made:
        await made.parts.topic("orders", deletionPolicy="Delete")
        await numbers(made, 1)
        made.parts.sender.answer = gate = Gate()
        made.channels["gone"] = "ch"
        of_topic, to_channel = await made.replay(), await made.replay(channel="gone")
        del made.channels["gone"]
        await made.replays.look()
        assert (to_channel.state, to_channel.row.detail) == (
            ReplayState.FAILED,
            "The channel 'gone' was deleted.",
        )
        assert of_topic.is_running
        await made.parts.registry.delete_topic("orders")
        assert of_topic.state is ReplayState.FAILED
        gate.open.set()


async def test_replays_that_ended_are_forgotten_after_a_week(tmp_path: Path) -> None:
    async with open_replays(tmp_path) as made:
        await made.parts.topic("orders")
        await numbers(made, 1)
        made.parts.sender.answer = lambda _: status(400)
        old = await made.ended(await made.replay())
        made.parts.clock.ms += KEPT_MS + 1
        new = await made.ended(await made.replay())
        assert made.replays.all() == [new]
        with pytest.raises(Refusal, match="no replay"):
            made.replays.get(old.id)
        store = made.parts.store
        assert (await store.load(old.id)).cursors == []
        assert (await store.load(new.id)).cursors != []


# --- after a crash --------------------------------------------------------------------------------


async def test_a_replay_goes_on_after_a_crash(tmp_path: Path) -> None:
    clock, after = FakeClock(), RecordingSender()
    copy = tmp_path / "copy"
    async with open_replays(tmp_path / "a", clock=clock) as made:
        await made.parts.topic("orders")
        await numbers(made, 50)
        job = await made.replay(rate=20)
        await made.parts.until(lambda: len(made.parts.sender.parcels) == 20)
        await made.parts.until(lambda: made.parts.dispatcher.flow(job.id).in_flight_count == 0)
        await made.parts.dispatcher.ledger.commit()
        crashed_copy(tmp_path / "a", copy)
    before = {parcel.record.offset for parcel in made.parts.sender.parcels[:20]}
    async with open_replays(copy, clock=clock, sender=after) as made:
        again = made.replays.get(job.id)
        assert (again.is_running, again.counts.delivered) == (True, 20)
        await made.ended(again, step_ms=1_000)
        assert {parcel.record.offset for parcel in after.parcels} == set(range(50)) - before
        assert (again.counts, again.remaining) == (Counts(50), 0)


async def test_what_was_on_its_way_at_a_crash_comes_again(tmp_path: Path) -> None:
    clock, after = FakeClock(), RecordingSender()
    copy = tmp_path / "copy"
    async with open_replays(tmp_path / "a", clock=clock) as made:
        gate = Gate()
        await made.parts.topic("orders")
        await numbers(made, 3)
        made.parts.sender.answer = gate
        job = await made.replay()
        await made.parts.until(lambda: len(made.parts.sender.parcels) == 3)
        crashed_copy(tmp_path / "a", copy)
        gate.open.set()
    async with open_replays(copy, clock=clock, sender=after) as made:
        again = made.replays.get(job.id)
        await made.parts.advance(1_000)
        await made.ended(again)
        assert sorted(p.record.offset for p in after.parcels) == [0, 1, 2]
        assert {p.attempt for p in after.parcels} == {2}
        assert again.counts == Counts(3)


async def test_what_has_ended_is_not_done_again_after_a_restart(tmp_path: Path) -> None:
    clock = FakeClock()
    async with open_replays(tmp_path, clock=clock) as made:
        await made.parts.topic("orders")
        await numbers(made, 2)
        done = await made.ended(await made.replay())
        made.parts.clock.ms += 1
        cancelled = await made.replay(start=at(2))
        await made.replays.cancel(cancelled.id)
    async with open_replays(tmp_path, clock=clock) as made:
        assert [job.id for job in made.replays.all()] == [cancelled.id, done.id]
        assert made.replays.get(done.id).counts == Counts(2)
        assert await made.replays.positions(made.replays.get(done.id)) == {0: 2}
        await settled()
        assert made.parts.sender.parcels == []


async def test_a_partition_that_is_added_meanwhile_is_no_part_of_it(tmp_path: Path) -> None:
    async with open_replays(tmp_path) as made:
        await made.parts.topic("orders")
        await numbers(made, 30)
        job = await made.replay(rate=10)
        await made.parts.until(lambda: len(made.parts.sender.parcels) == 10)
        topic = made.parts.registry.describe("orders")
        await made.parts.registry.put_topic(
            "orders", topic.spec.model_copy(update={"partitions": 3})
        )
        await made.parts.until(lambda: len(made.parts.dispatcher.flow(job.id).parts) == 3)
        for key in range(10):
            await made.parts.publish("orders", b"late", key=b"%d" % key)
        await made.ended(job, step_ms=1_000)
        assert job.counts == Counts(30)
        assert b"late" not in made.parts.sender.values
