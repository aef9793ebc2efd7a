"""What the commands show of replays; used by `replay`."""

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ibrik_cli.manifests import Resource
from ibrik_cli.output import age_text, count_text
from ibrik_cli.showing import Listing, flat_lines

if TYPE_CHECKING:
    from ibrik_cli.progress import Progress
    from ibrik_client import Client

COLUMNS = ("REPLAY", "TOPIC", "TARGET", "STATE", "DELIVERED", "FAILED", "REMAINING", "AGE")
RANGE_COLUMNS = ("PARTITION", "FROM", "TO", "MESSAGES")
RUNNING = "running"
LOOK_S = 0.5


def replay_listing(replays: Sequence[Resource]) -> Listing:
    now_s = time.time()
    return Listing(
        replays,
        COLUMNS,
        [replay_row(replay, now_s) for replay in replays],
        empty="no replays; begin one with: ibrik replay create TOPIC --from PLACE --channel NAME",
    )


def replay_row(replay: Resource, now_s: float) -> list[str]:
    return [
        str(replay["id"]),
        str(replay["topic"]),
        target_text(replay),
        str(replay["state"]),
        count_text(replay["delivered"]),
        count_text(replay["failed"]),
        count_text(replay["remaining"]),
        age_text(replay["started"], now_s),
    ]


def target_text(replay: Resource) -> str:
    """`channel/audit` or `topic copies`."""
    target = replay["target"]
    return f"channel/{target['channel']}" if target.get("channel") else f"topic {target['topic']}"


def plan_listing(plan: Resource) -> Listing:
    """What a dry run says."""
    names = ("from", "to", "count")
    rows = [
        [str(part["partition"]), *(count_text(part[name]) for name in names)]
        for part in plan["partitions"]
    ]
    return Listing([plan], RANGE_COLUMNS, rows, empty="there is nothing in this range")


def replay_lines(replay: Resource) -> list[str]:
    """One replay in full, then a line for each partition."""
    head = {n: v for n, v in replay.items() if v not in (None, "") and n != "partitions"}
    parts = [
        f"partition {part['partition']}: {part['from']} to {part['to']}, next {part['next_offset']}"
        for part in replay.get("partitions", [])
    ]
    return [*flat_lines(head), *parts]


def end_text(replay: Resource) -> str:
    """`done: 12 delivered, 1 failed, 3 filtered`."""
    words = ("delivered", "failed", "filtered", "missing")
    counts = [f"{count_text(replay[w])} {w}" for w in words if replay.get(w) or w == "delivered"]
    detail = f". {replay['detail']}" if replay.get("detail") else ""
    return f"{replay['state']}: {', '.join(counts)}{detail}"


async def watch(client: "Client", replay: Resource, progress: "Progress") -> Resource:
    """Look again and again until it has ended; Ctrl-C ends the looking, not the replay."""
    while replay["state"] == RUNNING:
        progress.show(replay["total"] - replay["remaining"])
        await asyncio.sleep(LOOK_S)
        replay = await client.admin.replay(replay["id"])
    progress.show(replay["total"] - replay["remaining"])
    return replay
