"""Where a cursor shall stand: the start of a new flow, and explicit seeks of an old one.

Everything is resolved to offsets first, so that a dry run says exactly what a seek would do.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ibrik_api.errors import Refusal
from ibrik_api.resources.subscription import StartFrom
from ibrik_broker.delivery.flow import Flow
from ibrik_broker.delivery.wishes import StartWish
from ibrik_broker.partitions.partition import Partition
from ibrik_broker.partitions.topic import Topic


class PartitionSeek(NamedTuple):
    partition: int
    from_offset: int
    """The cursor now."""
    to_offset: int
    redelivered: int
    """Messages before the cursor that would come again."""
    skipped: int
    """Messages that would never come."""


@dataclass(frozen=True, slots=True)
class SeekPlan:
    partitions: tuple[PartitionSeek, ...]

    @property
    def offsets(self) -> dict[int, int]:
        return {seek.partition: seek.to_offset for seek in self.partitions}


async def plan_seek(flow: Flow, to: StartWish, partitions: Sequence[int] | None = None) -> SeekPlan:
    """What a seek would do; all partitions unless some are named.

    Raises Refusal: unknown-topic, unknown-partition, invalid-offset, offset-below-start,
    offset-above-end.
    """
    topic = flow.topic
    if topic is None:
        raise Refusal(
            "unknown-topic",
            f"The topic '{flow.plan.topic}' is not served, so there is no offset to seek to.",
        )
    indexes = range(len(flow.parts)) if partitions is None else partitions
    chosen = [topic.partition(index) for index in indexes]
    if len(to.offsets) > 1 and len(to.offsets) != len(chosen):
        raise Refusal(
            "invalid-offset",
            f"{len(chosen)} partitions are sought: write one offset for all, or one for each.",
        )
    plans = []
    for place, partition in enumerate(chosen):
        target = await offset_of(partition, to, place)
        check_offset(topic, partition, target)
        progress = flow.parts[partition.index].progress
        now = progress.next_offset
        skipped = max(0, target - now) - progress.settled_between(now, target)
        plans.append(PartitionSeek(partition.index, now, target, max(0, now - target), skipped))
    return SeekPlan(tuple(plans))


async def start_offsets(topic: Topic, start: StartWish, *, first: int = 0) -> list[int]:
    """Where a flow begins in each partition. Partitions that come later begin at their start.

    `first` is the number of partitions that have a cursor; they are left as they are.
    """
    is_new = first == 0
    offsets = []
    for place, partition in enumerate(topic.partitions):
        if place < first:
            offsets.append(0)
        elif not is_new:
            offsets.append(partition.earliest)
        else:
            wanted = await offset_of(partition, start, place)
            # Someone who begins at an offset wants what is there of it.
            offsets.append(min(max(wanted, partition.earliest), partition.latest))
    return offsets


async def offset_of(partition: Partition, to: StartWish, place: int) -> int:
    """The offset that is meant; `place` counts the partitions that `to` is about."""
    match to.origin:
        case StartFrom.EARLIEST:
            return partition.earliest
        case StartFrom.LATEST:
            return partition.latest
        case StartFrom.TIMESTAMP:
            assert to.timestamp_ms is not None, "checked with the wish"
            return await partition.offset_for_timestamp(to.timestamp_ms)
        case StartFrom.OFFSET:
            return to.offsets[place] if len(to.offsets) > 1 else to.offsets[0]


def check_offset(topic: Topic, partition: Partition, offset: int) -> None:
    """Raises Refusal `offset-below-start` or `offset-above-end`, with what is there."""
    earliest, latest = partition.earliest, partition.latest
    if earliest <= offset <= latest:
        return
    is_below = offset < earliest
    raise Refusal(
        "offset-below-start" if is_below else "offset-above-end",
        f"Partition {partition.index} of '{topic.name}' holds offsets {earliest} to {latest}, so "
        f"nothing can begin or end at {offset}.",
        partition=partition.index,
        earliest=earliest,
        latest=latest,
    )
