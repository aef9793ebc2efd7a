"""What became of one message in one flow, told from what the flow keeps. Pure.

A flow does not write down each delivery, so what is settled is told apart by what is left of it:
the last failed attempt that had no successor is a dead letter.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ibrik_broker.delivery.flow import Flow
from ibrik_broker.metadata.deliveries import AttemptRow, GapRow
from ibrik_log.record import StoredRecord


class Whereabouts(NamedTuple):
    state: str
    """waiting, in-flight, retrying, blocked, delivered, dead-lettered, filtered or passed."""
    next_ticks: int | None = None
    """When it is tried again."""


def find(
    flow: Flow, partition: int, record: StoredRecord, attempts: Sequence[AttemptRow]
) -> Whereabouts:
    """`attempts` are those of this message that failed, oldest first."""
    if partition >= len(flow.parts):
        return Whereabouts("waiting")
    part, offset = flow.parts[partition], record.offset
    if offset in part.in_hand:
        return Whereabouts("in-flight")
    parked = flow.parked.get(partition, offset)
    if parked is not None:
        state = "blocked" if parked.due_ticks is None else "retrying"
        return Whereabouts(state, parked.due_ticks)
    if not part.progress.is_settled(offset):
        return Whereabouts("waiting")
    return Whereabouts(_how_settled(flow, partition, record, attempts))


def _how_settled(
    flow: Flow, partition: int, record: StoredRecord, attempts: Sequence[AttemptRow]
) -> str:
    if _is_in_gap(flow.gaps, partition, record.offset):
        return "passed"
    if attempts and attempts[-1].next_ms is None:
        return "dead-lettered"
    return "delivered" if flow.fits(partition, record) else "filtered"


def _is_in_gap(gaps: Sequence[GapRow], partition: int, offset: int) -> bool:
    return any(
        gap.partition == partition and gap.from_offset <= offset < gap.to_offset for gap in gaps
    )
