"""How far a flow is behind: numbers for people and metrics, read from what it keeps anyway."""

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ibrik_broker.delivery.flow import Flow
    from ibrik_broker.delivery.flow_part import FlowPart


class PartitionLag(NamedTuple):
    partition: int
    next_offset: int
    """The cursor."""
    earliest: int
    latest: int
    in_flight: int
    retrying: int
    backlog: int
    """Not settled: neither delivered nor filtered out nor dead; those that retry included."""


def lag_of(flow: "Flow") -> list[PartitionLag]:
    retrying = [0] * len(flow.parts)
    for parked in flow.parked:
        retrying[parked.partition] += 1
    return [_partition_lag(flow, part, retrying[part.index]) for part in flow.parts]


def _partition_lag(flow: "Flow", part: "FlowPart", retrying: int) -> PartitionLag:
    earliest = latest = part.progress.next_offset
    if flow.topic is not None and part.index < len(flow.topic.partitions):
        source = part.source(flow.topic)
        earliest, latest = source.earliest, source.latest
    return PartitionLag(
        part.index,
        part.progress.next_offset,
        earliest,
        latest,
        len(part.in_hand),
        retrying,
        part.unsettled_count(flow.topic) + retrying,
    )


def state_of(flow: "Flow") -> str:
    """One word: what keeps the flow from being done, the worst first."""
    if flow.topic is None:
        return "stopped"
    if flow.halt is not None:
        return "paused"
    trouble = None if flow.carrier is None else flow.carrier.trouble
    if trouble is not None:
        return trouble
    if flow.parked.blocked_count:
        return "blocked"
    return "retrying" if len(flow.parked) else "active"


def oldest_ms(flow: "Flow") -> int | None:
    """Append time of the oldest message that is not settled, as far as it is known; else None.

    Of a parked message the time of its first attempt stands for it, which is close.
    """
    known = [parked.first_ms for parked in flow.parked]
    for part in flow.parts:
        known += [delivery.record.timestamp_ms for delivery in part.in_hand.values()]
        known += [part.fresh[0].record.timestamp_ms] if part.fresh else []
        if part.head is not None and part.head.offset >= part.progress.next_offset:
            known.append(part.head.timestamp_ms)
    return min(known, default=None)
