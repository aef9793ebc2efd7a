"""Range replays: a part of a topic once more, to one place, and nobody else notices."""

from pathlib import Path

import pytest

from ibrik_api.errors import Refusal
from ibrik_api.names import message_id
from ibrik_api.resources.subscription import StartFrom
from ibrik_broker.delivery.filters import compile_filter
from ibrik_broker.delivery.replay_job import Counts, ReplayState
from ibrik_broker.delivery.replay_plan import Range, parse_message_id
from ibrik_broker.delivery.replays import ReplayWish
from ibrik_broker.delivery.wishes import StartWish
from tests.broker.delivery.replay_rig import Gate, numbers
from tests.broker.delivery.replaying import (
    EARLIEST,
    at,
    open_replays,
)
from tests.support.delivery import OK, START_MS, settled, status

# --- what is delivered ----------------------------------------------------------------------------


async def test_a_range_arrives_with_its_own_offsets_and_times(tmp_path: Path) -> None:
    async with open_replays(tmp_path) as made:
        await made.parts.topic("orders")
        await numbers(made, 6)
        made.parts.clock.ms += 5_000
        job = await made.ended(await made.replay(start=at(2), end=at(5)))
        parcels = sorted(made.parts.sender.parcels, key=lambda parcel: parcel.record.offset)
        assert [(p.record.offset, p.record.value) for p in parcels] == [
            (2, b"2"),
            (3, b"3"),
            (4, b"4"),
        ]
        assert {p.record.timestamp_ms for p in parcels} == {START_MS}
        assert {(p.replay, p.subscription, p.channel) for p in parcels} == {(job.id, "", "ch")}
        assert (job.state, job.total, job.counts) == (ReplayState.DONE, 3, Counts(3))
        assert await made.replays.positions(job) == {0: 5}


async def test_the_end_is_fixed_when_the_replay_begins(tmp_path: Path) -> None:
    """A message published meanwhile goes to subscriptions as always, and to them alone."""
    async with open_replays(tmp_path) as made:
        parts, gate = made.parts, Gate()
        await parts.topic("orders")
        await numbers(made, 3)
        flow = await parts.subscribe("billing", "orders")
        await parts.until(lambda: flow.backlog == 0)
        parts.sender.parcels.clear()
        parts.sender.answer = gate
        job = await made.replay()
        await numbers(made, 1, first=3)
        await parts.until(lambda: len(parts.sender.parcels) == 4)
        gate.open.set()
        await made.ended(job)
        await parts.until(lambda: flow.backlog == 0)
        fresh = [p for p in parts.sender.parcels if p.record.value == b"3"]
        assert [(p.subscription, p.replay) for p in fresh] == [("billing", None)]
        replayed = sorted(p.record.offset for p in parts.sender.parcels if p.replay == job.id)
        assert (replayed, job.total) == ([0, 1, 2], 3)


async def test_a_replay_touches_nobodys_cursor(tmp_path: Path) -> None:
    async with open_replays(tmp_path) as made:
        await made.parts.topic("orders")
        await numbers(made, 4)
        flow = await made.parts.subscribe("billing", "orders", halt="paused")
        await made.parts.dispatcher.ledger.commit()
        before = await made.parts.stored(flow)
        await made.ended(await made.replay())
        await made.parts.dispatcher.ledger.commit()
        assert await made.parts.stored(flow) == before
        assert flow.backlog == 4


async def test_some_partitions_and_a_filter(tmp_path: Path) -> None:
    async with open_replays(tmp_path) as made:
        await made.parts.topic("orders", partitions=3)
        for key in range(30):
            await made.parts.publish("orders", b'{"n":%d}' % key, key=b"%d" % key)
        wanted = compile_filter("data.n >= 10")
        job = await made.ended(await made.replay(partitions=[0, 2], filter=wanted))
        records = await made.parts.records("orders")
        assert len(records) == 30
        parcels = made.parts.sender.parcels
        assert {p.partition for p in parcels} == {0, 2}
        assert all(int(p.record.key or b"") >= 10 for p in parcels)
        counts = job.counts
        assert (counts.delivered, counts.failed) == (len(parcels), 0)
        assert counts.delivered + counts.filtered == job.total < 30
        assert [found.partition for found in job.ranges] == [0, 2]


async def test_messages_of_one_key_keep_their_order(tmp_path: Path) -> None:
    async with open_replays(tmp_path) as made:
        await made.parts.topic("orders")
        await made.parts.publish("orders", b"1", b"2", b"3", key=b"k")
        await made.parts.publish("orders", b"other", key=b"l")
        made.parts.sender.answer = lambda p: (
            status(503) if (p.record.value, p.attempt) == (b"1", 1) else OK
        )
        job = await made.replay()
        await made.parts.until(lambda: len(made.parts.sender.parcels) == 2)
        await made.parts.advance(1_000)
        await made.ended(job)
        values = [p.record.value for p in made.parts.sender.parcels if p.record.key == b"k"]
        assert values == [b"1", b"1", b"2", b"3"]


async def test_a_replay_into_a_topic_copies_bytes_and_headers_once(tmp_path: Path) -> None:
    async with open_replays(tmp_path) as made:
        await made.parts.topic("orders")
        await made.parts.topic("copy")
        await numbers(made, 5)
        job = await made.ended(await made.replay(target_topic="copy", start=at(1)))
        copies = await made.parts.records("copy")
        assert sorted(record.value or b"" for record in copies) == [b"1", b"2", b"3", b"4"]
        assert job.counts == Counts(4)
        again = await made.ended(await made.replay(target_topic="copy", start=at(1)))
        assert len(await made.parts.records("copy")) == 8  # asked for again, so sent again
        with pytest.raises(Refusal, match="no channel"):
            made.parts.dispatcher.outlet(again.id)


async def test_the_rate_is_kept(tmp_path: Path) -> None:
    async with open_replays(tmp_path) as made:
        await made.parts.topic("orders")
        await numbers(made, 25)
        job = await made.replay(rate=10)
        await made.parts.until(lambda: len(made.parts.sender.parcels) == 10)
        await settled()
        assert len(made.parts.sender.parcels) == 10
        await made.parts.advance(500)
        await made.parts.until(lambda: len(made.parts.sender.parcels) == 15)
        await settled()
        assert (len(made.parts.sender.parcels), job.remaining) == (15, 10)
        await made.ended(job, step_ms=500)


# --- failures -------------------------------------------------------------------------------------


async def test_what_fails_for_good_is_counted_and_is_no_dead_letter(tmp_path: Path) -> None:
    async with open_replays(tmp_path) as made:
        await made.parts.topic("orders")
        await numbers(made, 3)
        made.parts.sender.answer = lambda p: status(400) if p.record.value == b"1" else OK
        job = await made.ended(await made.replay())
        assert (job.state, job.counts) == (ReplayState.DONE, Counts(2, failed=1))
        (attempt,) = await made.replays.attempts(job.id, 10)
        assert (attempt.offset, attempt.status, attempt.next_ms) == (1, 400, None)
        assert [topic.name for topic in made.parts.engine.topics()] == ["orders"]


async def test_a_failure_is_tried_again_and_the_rest_goes_on(tmp_path: Path) -> None:
    async with open_replays(tmp_path) as made:
        await made.parts.topic("orders")
        await numbers(made, 3)
        made.parts.sender.answer = lambda p: status(503) if p.attempt < 4 else OK
        job = await made.replay()
        await made.ended(job, step_ms=500)
        assert job.counts == Counts(3)
        assert len(await made.replays.attempts(job.id, 100)) == 9
        first, *_ = page = await made.replays.attempts(job.id, 4)
        assert len(page) == 4
        assert first.id is not None
        older = await made.replays.attempts(job.id, 4, page[-1].id)
        assert [row.id for row in older] == [first.id - n for n in range(4, 8)]


async def test_a_message_that_retention_took_is_missing_not_delivered(tmp_path: Path) -> None:
    async with open_replays(tmp_path) as made:
        gate = Gate()
        await made.parts.topic("orders")
        await numbers(made, 200)
        made.parts.sender.answer = gate
        job = await made.replay(rate=10)
        await made.parts.until(lambda: len(made.parts.sender.parcels) == 4)
        await made.parts.registry.purge("orders")
        gate.open.set()
        await made.ended(job, step_ms=1_000)
        assert job.state is ReplayState.DONE
        assert sum(job.counts) == job.total == 200


# --- what is refused ------------------------------------------------------------------------------


async def test_a_range_that_was_deleted_says_what_is_left(tmp_path: Path) -> None:
    async with open_replays(tmp_path) as made:
        await made.parts.topic("orders")
        await numbers(made, 5)
        await made.parts.registry.purge("orders")
        await numbers(made, 2, first=5)
        with pytest.raises(Refusal) as refused:
            await made.replay(start=at(3))
        assert refused.value.code == "offset-below-start"
        assert refused.value.facts == {"partition": 0, "earliest": 5, "latest": 7}
        with pytest.raises(Refusal) as refused:
            await made.replay(start=EARLIEST, end=at(8))
        assert refused.value.code == "offset-above-end"
        with pytest.raises(Refusal) as refused:
            await made.replay(start=at(7), end=at(6))
        assert refused.value.code == "invalid-offset"
        assert made.replays.all() == []


async def test_an_id_stands_for_the_place_behind_its_message(tmp_path: Path) -> None:
    async with open_replays(tmp_path) as made:
        await made.parts.topic("orders", partitions=2)
        for key in range(20):
            await made.parts.publish("orders", b"x", key=b"%d" % key)
        topic = made.parts.engine.topic("orders")
        seen = parse_message_id(message_id(topic.id, 1, 2))
        plan = await made.replays.plan(ReplayWish(topic="orders", start=seen, channel="ch"))
        assert plan.ranges == [Range(1, 3, topic.partitions[1].latest)]
        with pytest.raises(Refusal, match="that partition alone"):
            await made.replay(start=seen, partitions=[0, 1])
        with pytest.raises(Refusal, match="another topic"):
            await made.replay(start=seen._replace(topic_id="another"))
        with pytest.raises(Refusal, match="no place"):
            parse_message_id("order-7")


async def test_times_become_offsets(tmp_path: Path) -> None:
    async with open_replays(tmp_path) as made:
        await made.parts.topic("orders")
        for _ in range(4):
            await numbers(made, 1)
            made.parts.clock.ms += 1_000
        start = StartWish(origin=StartFrom.TIMESTAMP, timestamp_ms=START_MS + 1)
        end = StartWish(origin=StartFrom.TIMESTAMP, timestamp_ms=START_MS + 3_000)
        wish = ReplayWish(topic="orders", start=start, end=end, channel="ch")
        assert (await made.replays.plan(wish)).ranges == [Range(0, 1, 3)]
