"""What comes into a flow: reads the log, filters, puts in order, finds what is gone.

The flow keeps the state; the intake fills it. Called by `Flow.take` alone, one call at a time. A
seek may come in between while it reads: then what was read is of no use (another epoch).
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ibrik_api.errors import Refusal
from ibrik_api.timestamps import format_timestamp
from ibrik_broker.delivery.flow_part import FlowPart
from ibrik_broker.delivery.message import Delivery
from ibrik_broker.delivery.parked import Parked
from ibrik_broker.delivery.reading import RecordReader
from ibrik_broker.partitions.attributes import PLAIN_TYPE, identity, plain_source
from ibrik_log.record import StoredRecord

if TYPE_CHECKING:
    from ibrik_broker.delivery.flow import Flow

READ_BYTES = 256 * 1024
READ_AGAIN_TICKS = 1_000
"""When a parked message could not be read for now."""


class Intake:
    """Made when a flow has something to take for the first time; most have nothing for long."""

    __slots__ = ("_flow", "_reader", "_ticks_ms", "_turn", "one_taker")

    def __init__(self, flow: "Flow", reader: RecordReader, ticks_ms: Callable[[], int]) -> None:
        self.one_taker = asyncio.Lock()
        self._flow = flow
        self._reader = reader
        self._ticks_ms = ticks_ms
        self._turn = 0

    async def take_fresh(self, taken: list[Delivery], max_count: int, max_bytes: int) -> None:
        size_bytes = sum(delivery.size_bytes for delivery in taken)
        for part in self._parts_in_turn():
            while len(taken) < max_count and size_bytes < max_bytes and self._flow.halt is None:
                delivery = part.take_fresh()
                if delivery is None:
                    if not await self._fill(part):
                        break
                    continue
                taken.append(delivery)
                size_bytes += delivery.size_bytes

    def _parts_in_turn(self) -> Sequence[FlowPart]:
        """All partitions, each time beginning with another one."""
        self._turn = (self._turn + 1) % max(1, len(self._flow.parts))
        return self._flow.parts[self._turn :] + self._flow.parts[: self._turn]

    async def take_due(self, taken: list[Delivery], max_count: int) -> None:
        """The parked messages whose time has come, in the order of their places."""
        due = self._flow.parked.take_due(self._ticks_ms(), max_count)
        due.sort(key=lambda parked: (parked.partition, parked.offset))
        records: list[StoredRecord] = []
        last_partition = -1
        try:
            while due:
                parked = due[0]
                part = self._flow.parts[parked.partition]
                is_read = records and records[0].offset <= parked.offset <= records[-1].offset
                if parked.partition != last_partition or not is_read:
                    records = await self._read_at(part, parked)
                    last_partition = parked.partition
                del due[0]
                if records:
                    taken.append(self._again(parked, records[parked.offset - records[0].offset]))
        finally:
            for parked in due:  # the taker was cancelled: they stay due
                self._flow.keep_parked(parked)

    def _again(self, parked: Parked, record: StoredRecord) -> Delivery:
        return Delivery(
            parked.partition,
            record,
            self._flow.epoch,
            lane=parked.lane,
            attempt=parked.attempts + 1,
            first_ms=parked.first_ms,
            is_parked=True,
            reason=parked.reason,
        )

    async def _read_at(self, part: FlowPart, parked: Parked) -> list[StoredRecord]:
        """Records from a parked one on; none when it is gone for good or cannot be read now."""
        epoch = self._flow.epoch
        try:
            return await self._reader.read(part.source(self._flow.topic), parked.offset, 1)
        except Refusal as refusal:
            if self._flow.epoch != epoch:
                return []
            if refusal.code in ("offset-below-start", "corrupt-range"):
                self._flow.lose_parked(part, parked, refusal.code)
            else:
                self._flow.keep_parked(
                    replace(parked, due_ticks=self._ticks_ms() + READ_AGAIN_TICKS)
                )
            return []

    async def _fill(self, part: FlowPart) -> bool:
        """Read until something may go; False when there is nothing, or as much as may be held."""
        epoch = self._flow.epoch
        while not part.fresh and part.may_read(self._flow.topic):
            start = part.read_offset
            try:
                records = await self._reader.read(part.source(self._flow.topic), start, READ_BYTES)
            except Refusal as refusal:
                if self._flow.epoch != epoch or not self._skip(part, start, refusal):
                    return False
                continue
            if self._flow.epoch != epoch or self._flow.topic is None:
                return False
            if part.read_offset == start:
                self._sort(part, records)
        return bool(part.fresh)

    def _sort(self, part: FlowPart, records: Sequence[StoredRecord]) -> None:
        """Decide of each record that was read: filtered out, to go, or to wait for its lane."""
        is_filtered = self._flow.plan.filter is not None
        for record in records:
            if record.offset >= part.end:
                part.read_offset = part.end
                break
            part.read_offset = record.offset + 1
            if part.progress.is_settled(record.offset) or record.offset in part.in_hand:
                continue
            if is_filtered and not self.fits(part, record):
                part.progress.settle(record.offset)
                self._flow.counters.filtered += 1
                continue
            part.enter(Delivery(part.index, record, self._flow.epoch), self._flow.plan.ordering)
        self._flow.touch(part)

    def fits(self, part: FlowPart, record: StoredRecord) -> bool:
        """Whether the filter lets the message through."""
        wanted = self._flow.plan.filter
        return wanted is None or wanted.matches(record, self._plain_event(part, record))

    def _plain_event(self, part: FlowPart, record: StoredRecord) -> dict[str, str]:
        """What a filter sees of a message that is no event: the attributes it is delivered with."""
        topic = self._flow.topic
        assert topic is not None, "only a flow whose topic is served reads"
        return {
            "id": identity(topic.id, part.index, record.offset, dict(record.headers)),
            "source": plain_source(topic.name),
            "type": PLAIN_TYPE,
            "time": format_timestamp(record.timestamp_ms),
        }

    def _skip(self, part: FlowPart, start: int, refusal: Refusal) -> bool:
        """Go on behind what cannot be read any more, and record the gap; False: try later."""
        match refusal.code:
            case "offset-below-start":
                end = refusal.facts["earliest"]
            case "corrupt-range":
                end = refusal.facts["to_offset"]
            case _:
                return False
        self._flow.pass_gap(part, start, end, refusal.code)
        return self._flow.halt is None

    async def find_head(self, part: FlowPart) -> None:
        """Read the record at the cursor, when it is not known and not in hand."""
        topic, cursor = self._flow.topic, part.progress.next_offset
        if topic is None or part.in_hand or part.fresh or not part.unsettled_count(topic):
            return
        if part.head is None or part.head.offset < cursor:
            try:
                records = await self._reader.read(part.source(topic), cursor, 1)
            except Refusal:
                return  # gone or damaged: whoever takes it will say so
            part.head = records[0] if records else None
