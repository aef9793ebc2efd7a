"""From the rows of the database to a flow that goes on where it was.

A claim that nobody settled is one made attempt: the broker ended while the message was on its way.
It goes on with the next attempt at the time that was written with the claim, so that a crash
neither forgets an attempt nor begins the schedule anew. Of a lease that time is its deadline: until
then its consumer may still acknowledge.
"""

from collections.abc import Iterator
from dataclasses import replace

from ibrik_api.errors import Refusal
from ibrik_api.resources.topic import Ordering
from ibrik_broker.delivery.flow import Flow
from ibrik_broker.delivery.flow_part import NO_END, FlowPart
from ibrik_broker.delivery.lanes import lane_of
from ibrik_broker.delivery.ledger import Ledger
from ibrik_broker.delivery.parked import Parked
from ibrik_broker.delivery.progress import Progress
from ibrik_broker.delivery.reading import RecordReader
from ibrik_broker.delivery.seek import start_offsets
from ibrik_broker.delivery.wishes import StartWish
from ibrik_broker.metadata.deliveries import AttemptRow, CursorRow, DeliveryStore, FlowState
from ibrik_broker.partitions.topic import Topic


def restore(
    flow: Flow, ledger: Ledger, state: FlowState, *, is_push: bool, now_ms: int, now_ticks: int
) -> None:
    """Give a new flow what the database knows of it. Partitions without a row are added later."""
    for cursor in sorted(state.cursors, key=lambda cursor: cursor.partition):
        assert cursor.partition == len(flow.parts), "partitions are dense, from 0"
        flow.epoch = max(flow.epoch, cursor.epoch)
        add_part(flow, Progress(cursor.next_offset, cursor.settled), cursor.topic_id)
    for row in state.retries:
        due = None if row.next_ms is None else now_ticks + max(0, row.next_ms - now_ms)
        lane = None if row.lane is None else bytes.fromhex(row.lane)
        parked = Parked(row.partition, row.offset, row.attempts, row.first_ms, due, lane)
        flow.keep_parked(parked)
        if lane is not None:
            flow.parts[row.partition].take_lane(lane)
    for cursor in state.cursors:
        for parked, until_ms in _resumed(flow, cursor, now_ms, now_ticks):
            flow.keep_parked(parked)
            flow.parts[parked.partition].progress.settle(parked.offset)
            ledger.keep_retry(flow.retry_row(parked))
            ledger.touch(flow.parts[parked.partition])
            if is_push:
                ledger.add_attempt(_crashed(flow, parked, now_ms, until_ms))


def add_part(flow: Flow, progress: Progress, topic_id: str) -> None:
    index = len(flow.parts)
    ends = flow.plan.ends
    end = NO_END
    if ends is not None:  # a partition that was added later is no part of a range
        end = ends[index] if index < len(ends) else 0
    part = FlowPart(
        flow.id,
        index,
        progress,
        topic_id=topic_id,
        end=end,
        epoch=flow.epoch,
        clocks=flow.clocks,
    )
    flow.parts = (*flow.parts, part)


def _resumed(
    flow: Flow, cursor: CursorRow, now_ms: int, now_ticks: int
) -> Iterator[tuple[Parked, int]]:
    """The messages that were in hand, with the time (of day) of their next attempt."""
    part = flow.parts[cursor.partition]
    for start, end, attempt, until_ms, first_ms in cursor.claimed:
        due = now_ticks + max(0, until_ms - now_ms)
        for offset in range(start, end):
            known = flow.parked.get(part.index, offset)
            if known is not None:
                yield replace(known, attempts=attempt, due_ticks=due), until_ms
            elif not part.progress.is_settled(offset):
                yield Parked(part.index, offset, attempt, first_ms, due), until_ms


def _crashed(flow: Flow, parked: Parked, now_ms: int, until_ms: int) -> AttemptRow:
    return AttemptRow(
        flow_id=flow.id,
        channel_id=None,
        partition=parked.partition,
        offset=parked.offset,
        attempt=parked.attempts,
        at_ms=now_ms,
        duration_ms=0,
        status=None,
        error="crashed",
        detail="the broker ended while the message was on its way",
        next_ms=until_ms,
    )


async def attach(
    flow: Flow, topic: Topic, start: StartWish, ledger: Ledger, reader: RecordReader
) -> None:
    """Connect a flow with its topic: from here on it hands out.

    Partitions without a cursor begin, durably. Raises Refusal `metadata-unavailable`.
    """
    if flow.parts and flow.parts[0].topic_id != topic.id:
        await _begin_anew(flow, ledger)
    if len(flow.parts) < len(topic.partitions):
        for offset in (await start_offsets(topic, start, first=len(flow.parts)))[len(flow.parts) :]:
            add_part(flow, Progress(offset), topic.id)
        for part in flow.parts:
            ledger.touch(part)
        # Durable before anyone relies on it: `latest` is not another one after a crash.
        await ledger.commit()
    await find_lanes(flow, topic, reader)
    flow.topic = topic


async def _begin_anew(flow: Flow, ledger: Ledger) -> None:
    """The topic was deleted and made again: offsets of the old one say nothing."""

    async def drop(store: DeliveryStore) -> None:
        ledger.forget(flow.id, flow.parts)
        await store.forget(flow.id)
        flow.rewind([])

    await ledger.exclusively(drop)


async def find_lanes(flow: Flow, topic: Topic, reader: RecordReader) -> None:
    """Learn which lanes the parked messages hold: a claim does not say it.

    Before the first message is handed out, or a later one of the same key could overtake.
    """
    ordering = flow.plan.ordering
    if ordering is Ordering.NONE:
        return
    for parked in [parked for parked in flow.parked if parked.lane is None]:
        key: bytes | None = None
        if ordering is Ordering.KEY:
            try:
                partition = topic.partitions[parked.partition]
                key = (await reader.read(partition, parked.offset, 1))[0].key
            except Refusal:
                continue  # gone: there is no later attempt that could be overtaken
        parked.lane = lane_of(ordering, key)
        if parked.lane is not None:
            flow.parts[parked.partition].take_lane(parked.lane)
