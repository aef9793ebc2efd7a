"""What is kept of redriven dead letters goes with them."""

from pathlib import Path

import pytest

from ibrik_api.errors import Refusal
from ibrik_broker.delivery.deadletters import redriven_id
from ibrik_broker.delivery.redriving import Place
from tests.broker.delivery.letters_rig import (
    ALL,
    DLQ,
    dead,
    delivered,
    emptied,
    publish_numbers,
    states,
)
from tests.support.delivery import (
    OK,
    status,
)


async def test_a_purge_empties_the_topic_and_what_was_noted_of_it(tmp_path: Path) -> None:
    async with dead(tmp_path, 3) as (parts, flow, redrive):
        await redrive.redrive(flow.id, ALL, places=[Place(0, 1)])
        assert (await redrive.purge(flow.id, dry_run=True)).purged == 3
        assert len(await states(redrive, flow)) == 3
        result = await redrive.purge(flow.id)
        assert (result.topic, result.purged) == (DLQ, 3)
        assert await states(redrive, flow) == []
        (row,) = (await parts.store.load(redriven_id(flow.id))).cursors
        assert (row.next_offset, row.settled) == (3, [])
        assert await delivered(parts, flow) == [1]


async def test_a_dead_letter_topic_that_was_made_anew_begins_anew(tmp_path: Path) -> None:
    async with dead(tmp_path, 2) as (parts, flow, redrive):
        await redrive.redrive(flow.id, ALL)
        await delivered(parts, flow)
        policy = parts.registry.describe(DLQ).spec.deletion_policy
        await parts.registry.delete_topic(DLQ, policy=type(policy)("Delete"))
        parts.sender.answer = lambda _: status(400)
        await publish_numbers(parts, 2)
        await emptied(parts, flow, step_ms=100)
        parts.sender.answer = lambda _: OK
        parts.sender.parcels.clear()
        parts.clock.ms += 1_000
        assert await states(redrive, flow) == [(0, "dead"), (1, "dead")]
        assert (await redrive.redrive(flow.id, ALL)).redriven == 2
        assert await delivered(parts, flow) == [0, 1]
        rows = (await parts.store.load(redriven_id(flow.id))).cursors
        assert [(row.next_offset, row.epoch) for row in rows] == [(2, 1)]


async def test_forgetting_a_subscription_forgets_what_was_redriven(tmp_path: Path) -> None:
    async with dead(tmp_path, 1) as (parts, flow, redrive):
        await redrive.redrive(flow.id, ALL)
        await delivered(parts, flow)
        assert (await parts.store.load(redriven_id(flow.id))).cursors != []
        await parts.dispatcher.close_subscription(flow.id, forget=True)
        assert (await parts.store.load(redriven_id(flow.id))).cursors == []
        with pytest.raises(Refusal, match="no subscription"):
            await redrive.browse(flow.id, ALL, most=1)
