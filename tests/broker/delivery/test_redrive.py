"""Dead letters: browsed, and redriven once each whatever happens."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ibrik_api.errors import Refusal
from ibrik_api.resources.subscription import Mode
from ibrik_broker.delivery.deadletters import redriven_id
from ibrik_broker.delivery.filters import compile_filter
from ibrik_broker.delivery.leases import LeaseRef
from ibrik_broker.delivery.letters import Choice, LetterState, Origin
from ibrik_broker.delivery.redriving import Place
from ibrik_broker.delivery.seek import plan_seek
from ibrik_broker.delivery.wishes import StartWish
from tests.broker.delivery.letters_rig import (
    ALL,
    DLQ,
    dead,
    delivered,
    emptied,
    kill,
    publish_numbers,
    redrive_of,
    states,
)
from tests.broker.delivery.replaying import crashed_copy
from tests.support.delivery import (
    OK,
    FakeClock,
    RecordingSender,
    open_delivery,
    settled,
    status,
)

# --- browse ---------------------------------------------------------------------------------------


async def test_a_dead_letter_says_why_and_where_the_message_is(tmp_path: Path) -> None:
    async with dead(tmp_path, 2) as (parts, flow, redrive):
        page = await redrive.browse(flow.id, ALL, most=10)
        letter, state = page.letters[1]
        topic = parts.engine.topic("orders")
        assert (letter.reason, letter.status, letter.attempts) == ("status", 400, 1)
        assert letter.origin == Origin("orders", 0, 1, topic.id)
        assert (letter.record.value, state, page.next) == (b"1", LetterState.DEAD, None)
        assert not [name for name, _ in letter.record.headers if name.startswith("dlq-")]


async def test_a_subscription_without_dead_letters_has_none(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        await parts.topic("orders")
        flow = await parts.subscribe("billing", "orders")
        redrive = redrive_of(parts)
        assert (await redrive.browse(flow.id, ALL, most=10)).letters == []
        assert (await redrive.redrive(flow.id, ALL)).matched == 0
        assert (await redrive.purge(flow.id)).purged == 0
        assert parts.engine.served(DLQ) is None


async def test_pages_follow_each_other_without_a_gap(tmp_path: Path) -> None:
    async with dead(tmp_path, 7) as (_, flow, redrive):
        seen, place = [], Place(0, 0)
        for size in (3, 3, 1):
            page = await redrive.browse(flow.id, ALL, most=3, start=place)
            assert len(page.letters) == size
            seen += [letter.offset for letter, _ in page.letters]
            place = page.next or place
        assert seen == list(range(7))
        assert page.next is None


async def test_filters_choose(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        await parts.topic("orders")
        parts.sender.answer = lambda p: status(400 if (p.record.value or b"") < b"3" else 422)
        await publish_numbers(parts, 6)
        flow = await parts.subscribe("billing", "orders")
        await parts.until(lambda: flow.backlog == 0)
        redrive = redrive_of(parts)

        async def count(**choice: Any) -> int:
            return len((await redrive.browse(flow.id, Choice(**choice), most=10)).letters)

        assert [await count(status=400), await count(status=422), await count(status=500)] == [
            3,
            3,
            0,
        ]
        assert [await count(reason="status"), await count(reason="timeout")] == [6, 0]
        by_header = compile_filter('headers["dlq-status"] == "422" && data > 3')
        assert await count(filter=by_header) == 2
        assert await count(state=LetterState.REDRIVEN) == 0


async def test_dead_letters_of_others_in_the_same_topic_are_not_shown(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        await parts.topic("orders")
        await parts.topic("dead")
        parts.sender.answer = lambda _: status(400)
        await publish_numbers(parts, 3)
        flows = [
            await parts.subscribe(name, "orders", dead_letter_topic="dead")
            for name in ("billing", "shipping")
        ]
        for flow in flows:
            await parts.until(lambda f=flow: f.backlog == 0)  # type: ignore[misc]
        await parts.publish("dead", b"nobody's")
        redrive = redrive_of(parts)
        pages = [await redrive.browse(flow.id, ALL, most=10) for flow in flows]
        assert [len(page.letters) for page in pages] == [3, 3]
        with pytest.raises(Refusal) as refused:
            await redrive.purge(flows[0].id)
        assert refused.value.code == "resource-conflict"
        parts.sender.answer = lambda _: OK
        parts.sender.parcels.clear()
        parts.clock.ms += 1_000
        await redrive.redrive(flows[0].id, ALL)
        assert await delivered(parts, flows[0]) == [0, 1, 2]
        assert {p.subscription for p in parts.sender.parcels} == {"billing"}


# --- redrive --------------------------------------------------------------------------------------


async def test_a_redriven_message_comes_once_with_all_its_attempts(tmp_path: Path) -> None:
    async with dead(tmp_path, 3) as (parts, flow, redrive):
        result = await redrive.redrive(flow.id, ALL)
        assert (result.topic, result.matched, result.redriven) == (DLQ, 3, 3)
        assert await delivered(parts, flow) == [0, 1, 2]
        assert {p.attempt for p in parts.sender.parcels} == {1}
        assert await states(redrive, flow) == [(n, "redriven") for n in range(3)]
        again = await redrive.redrive(flow.id, ALL)
        assert (again.matched, again.redriven) == (0, 0)
        await settled()
        assert len(parts.sender.parcels) == 3


async def test_two_at_once_redrive_each_message_once(tmp_path: Path) -> None:
    async with dead(tmp_path, 50) as (parts, flow, redrive):
        places = [Place(0, offset) for offset in range(0, 50, 2)]
        results = await asyncio.gather(
            redrive.redrive(flow.id, ALL),
            redrive.redrive(flow.id, ALL, places=places),
            redrive.redrive(flow.id, ALL),
        )
        assert sum(result.redriven for result in results) == 50
        assert await delivered(parts, flow) == list(range(50))


async def test_one_that_fails_again_is_another_dead_letter(tmp_path: Path) -> None:
    async with dead(tmp_path, 2) as (parts, flow, redrive):
        parts.sender.answer = lambda _: status(400)
        await redrive.redrive(flow.id, ALL, places=[Place(0, 1)])
        await parts.until(lambda: flow.backlog == 0)
        assert await states(redrive, flow) == [(0, "dead"), (1, "redriven"), (2, "dead")]
        parts.sender.answer = lambda _: OK
        parts.sender.parcels.clear()
        parts.clock.ms += 1_000
        result = await redrive.redrive(flow.id, ALL)
        assert result.redriven == 2
        assert await delivered(parts, flow) == [0, 1]


async def test_the_rate_staggers_and_a_crash_keeps_the_times(tmp_path: Path) -> None:
    clock, copy, after = FakeClock(), tmp_path / "copy", RecordingSender()
    async with open_delivery(tmp_path / "a", clock=clock) as parts:
        flow = await kill(parts, 6)
        await redrive_of(parts).redrive(flow.id, ALL, rate=2)
        await parts.until(lambda: len(parts.sender.parcels) == 1)
        await parts.advance(500)
        await parts.until(lambda: len(parts.sender.parcels) == 2)
        await parts.until(lambda: len(flow.parked) == 4)
        await parts.dispatcher.ledger.commit()
        crashed_copy(tmp_path / "a", copy)
    async with open_delivery(copy, clock=clock, sender=after) as parts:
        flow = await parts.subscribe("billing", "orders")
        assert len(flow.parked) == 4
        await parts.advance(500)
        await parts.until(lambda: len(after.parcels) == 1)
        await settled()
        assert len(after.parcels) == 1
        await parts.advance(1_500)
        assert await delivered(parts, flow) == [2, 3, 4, 5]


async def test_after_a_crash_nothing_is_redriven_twice(tmp_path: Path) -> None:
    clock, copy, after = FakeClock(), tmp_path / "copy", RecordingSender()
    async with open_delivery(tmp_path / "a", clock=clock) as parts:
        flow = await kill(parts, 20)
        flow.halt = "paused"
        await redrive_of(parts).redrive(flow.id, ALL, places=[Place(0, n) for n in range(10)])
        crashed_copy(tmp_path / "a", copy)
    async with open_delivery(copy, clock=clock, sender=after) as parts:
        flow = await parts.subscribe("billing", "orders")
        redrive = redrive_of(parts)
        assert [state for _, state in await states(redrive, flow)] == (
            ["redriven"] * 10 + ["dead"] * 10
        )
        assert (await redrive.redrive(flow.id, ALL)).redriven == 10
        await parts.advance(0)
        assert await delivered(parts, flow) == list(range(20))


async def test_leases_get_redriven_messages_too(tmp_path: Path) -> None:
    async with open_delivery(tmp_path) as parts:
        await parts.topic("orders")
        await publish_numbers(parts, 2)
        flow = await parts.subscribe("billing", "orders", mode=Mode.PULL)
        leases = parts.dispatcher.leases(flow.id)

        async def take() -> list[LeaseRef]:
            taken = await leases.lease(consumer="", max_count=9, max_bytes=10_000, wait_s=0)
            return [LeaseRef(d.partition, d.offset, d.attempt, d.epoch) for d in taken]

        for _ in range(3):
            await leases.nack(await take(), delay_ms=0, reason="no")
            await parts.advance(1)
        assert await take() == []
        redrive = redrive_of(parts)
        assert (await redrive.redrive(flow.id, ALL)).redriven == 2
        again = await take()
        assert [(ref.offset, ref.attempt) for ref in again] == [(0, 1), (1, 1)]
        await leases.ack(again)
        assert flow.backlog == 0


async def test_a_message_that_comes_anyway_is_not_sent_besides(tmp_path: Path) -> None:
    """The cursor was moved back, so the log brings it; its two dead letters add nothing."""
    async with dead(tmp_path, 3) as (parts, flow, redrive):
        flow.halt = "paused"
        await parts.dispatcher.seek(flow.id, await plan_seek(flow, StartWish()))
        result = await redrive.redrive(flow.id, ALL)
        assert (result.redriven, result.waiting) == (0, 3)
        flow.halt = None
        flow.tell_ready()
        assert await delivered(parts, flow) == [0, 1, 2]
        assert (await redrive.redrive(flow.id, ALL)).matched == 0


async def test_a_dry_run_says_the_same_and_changes_nothing(tmp_path: Path) -> None:
    async with dead(tmp_path, 4) as (parts, flow, redrive):
        chosen = Choice(filter=compile_filter("data >= 2"))
        dry = await redrive.redrive(flow.id, chosen, dry_run=True)
        await settled()
        assert parts.sender.parcels == []
        assert await states(redrive, flow) == [(n, "dead") for n in range(4)]
        assert (await parts.store.load(redriven_id(flow.id))).cursors == []
        assert await redrive.redrive(flow.id, chosen) == dry
        assert dry.redriven == 2
        assert await delivered(parts, flow) == [2, 3]


async def test_what_retention_took_is_told_and_stays(tmp_path: Path) -> None:
    async with dead(tmp_path, 3) as (parts, flow, redrive):
        await parts.registry.purge("orders")
        result = await redrive.redrive(flow.id, ALL)
        assert (result.matched, result.redriven, result.expired) == (3, 0, 3)
        place, origin = result.expired_first[2]
        assert (place, origin.offset) == (Place(0, 2), 2)
        assert await states(redrive, flow) == [(n, "dead") for n in range(3)]


async def test_a_place_without_a_dead_letter_is_refused_before_anything_is_done(
    tmp_path: Path,
) -> None:
    async with dead(tmp_path, 2) as (parts, flow, redrive):
        for place, code in (
            (Place(0, 2), "offset-above-end"),
            (Place(3, 0), "unknown-partition"),
        ):
            with pytest.raises(Refusal) as refused:
                await redrive.redrive(flow.id, ALL, places=[Place(0, 0), place])
            assert refused.value.code == code
        assert await states(redrive, flow) == [(0, "dead"), (1, "dead")]
        assert parts.sender.parcels == []


@pytest.mark.slow
@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(
        st.one_of(
            st.lists(st.integers(0, 11), min_size=1, max_size=6),
            st.sampled_from(["all", "even", "restart"]),
        ),
        max_size=6,
    )
)
async def test_whatever_is_asked_for_each_message_comes_once(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Any]
) -> None:
    folder, clock, sender = tmp_path_factory.mktemp("redrive"), FakeClock(), RecordingSender()
    even = Choice(filter=compile_filter("data % 2 == 0"))
    wanted: set[int] = set()
    async with open_delivery(folder, clock=clock, sender=sender) as parts:
        await kill(parts, 12)
    for _ in range(steps.count("restart") + 1):
        async with open_delivery(folder, clock=clock, sender=sender) as parts:
            flow = await parts.subscribe("billing", "orders")
            redrive = redrive_of(parts)
            while steps:
                step = steps.pop(0)
                if step == "restart":
                    break
                if isinstance(step, list):
                    wanted |= set(step)
                    await redrive.redrive(flow.id, ALL, places=[Place(0, n) for n in step])
                else:
                    wanted |= set(range(0, 12, 1 if step == "all" else 2))
                    await redrive.redrive(flow.id, ALL if step == "all" else even)
            await emptied(parts, flow)
    assert Counter(int(value or b"") for value in sender.values) == Counter(wanted)
