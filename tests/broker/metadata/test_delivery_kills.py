"""Kills in the middle of commits: what is found afterwards is what some of the first ones wrote.

All that were acknowledged are among them, and none is there by half.
"""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from ibrik_broker.metadata.attempts import AttemptHistory
from ibrik_broker.metadata.database import Database
from ibrik_broker.metadata.deliveries import (
    AttemptRow,
    Changes,
    CursorRow,
    DeliveryStore,
    FlowState,
    GapRow,
    RetryRow,
)
from tests.broker.metadata.conftest import CLUSTER

FLOWS = ("a", "b", "c")
IN_FLIGHT = 4
PARKED = 5
"""A message is parked by one group and settled by the group that comes so many later."""


def group(number: int) -> Changes:
    """The group of this number, from 1; each touches every table."""
    settled = number - PARKED
    return Changes(
        cursors=[CursorRow(flow, 0, number, [1] * 20, [], 1, number) for flow in FLOWS],
        retries=[RetryRow(flow, 0, number, 1, 0, number, None) for flow in FLOWS],
        settled=[(flow, 0, settled) for flow in FLOWS if settled > 0],
        attempts=[
            AttemptRow(flow, None, 0, number, 1, number, 1, 500, "status", "x" * 500, None)
            for flow in FLOWS
        ],
        gaps=[GapRow("a", 0, 0, number, number, "retention", 0)],
    )


def state_after(number: int) -> dict[str, FlowState]:
    """What the groups up to `number` leave."""
    if number == 0:
        return {}
    parked = range(max(1, number - PARKED + 1), number + 1)
    return {
        flow: FlowState(
            [row for row in group(number).cursors if row.flow_id == flow],
            [RetryRow(flow, 0, offset, 1, 0, offset, None) for offset in parked],
            [row for row in group(number).gaps if row.flow_id == flow],
        )
        for flow in FLOWS
    }


async def commit_for_ever(url: str, first: int) -> None:
    """Keep some commits on their way, and print the number of each that is done."""
    store = DeliveryStore(await Database.open(url, CLUSTER))

    async def commit(number: int) -> None:
        await store.commit(group(number))
        print(number, flush=True)

    waiting = asyncio.Semaphore(IN_FLIGHT)
    async with asyncio.TaskGroup() as tasks:
        for number in range(first, sys.maxsize):
            await waiting.acquire()
            task = tasks.create_task(commit(number))
            task.add_done_callback(lambda _: waiting.release())


CHILD = """
import asyncio, sys
from tests.broker.metadata.test_delivery_kills import commit_for_ever
asyncio.run(commit_for_ever(sys.argv[1], int(sys.argv[2])))
"""


def live_and_be_killed(url: str, first: int, acknowledged_count: int) -> int:
    """Commit from `first` on until so many are acknowledged, then kill; the last acknowledged."""
    root = Path(__file__).parents[3]
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD, url, str(first)], stdout=subprocess.PIPE, text=True, cwd=root
    )
    assert process.stdout is not None
    with process.stdout:
        acknowledged = [int(process.stdout.readline()) for _ in range(acknowledged_count)]
        process.kill()
        acknowledged += [int(line) for line in process.stdout if line.endswith("\n")]
    process.wait()
    return max(acknowledged)


@pytest.mark.slow
async def test_after_a_kill_the_first_groups_are_there_with_all_that_were_acknowledged(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path}/metadata.db"
    written = 0
    for acknowledged_count in (1, 13, 55):
        acknowledged = await asyncio.to_thread(
            live_and_be_killed, url, written + 1, acknowledged_count
        )
        database = await Database.open(url, CLUSTER)
        state = await DeliveryStore(database).load_all()
        written = state["a"].cursors[0].next_offset
        assert acknowledged <= written <= acknowledged + IN_FLIGHT
        assert state == state_after(written)
        history = AttemptHistory(database)
        last = [await history.last_by_flow(flow) for flow in FLOWS]
        assert [row.offset for row in last if row is not None] == [written] * len(FLOWS)
        await database.close()
