"""The state of flows: cursors, messages that wait for their next attempt, gaps. Written in groups.

Everything hangs on (flow, partition); the flow's id is that of its subscription or replay. What
the numbers mean is said in docs/formats/delivery.md; the ledger of delivery calls this. Reading
the history of attempts is in `attempts.py`.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Connection, Table, and_, bindparam, delete, insert, or_, select

from ibrik_broker.metadata.database import Database
from ibrik_broker.metadata.models import AttemptTable, CursorTable, GapTable, RetryTable
from ibrik_broker.metadata.quick import Writer
from ibrik_broker.metadata.rows import table_of

CURSORS = table_of(CursorTable)
RETRIES = table_of(RetryTable)
ATTEMPTS = table_of(AttemptTable)
GAPS = table_of(GapTable)

KEPT_GAPS = 100
"""Gaps that are kept of a partition of a flow; a slow flow leaves one at each run of retention."""
STREAMING = {"stream_results": True, "max_row_buffer": 10_000}
"""Postgres gives all rows at once otherwise."""
ERROR_CHARACTERS = 64
DETAIL_CHARACTERS = 1_024

FlowPartition = tuple[str, int]
_encode, _decode = msgspec.json.encode, msgspec.json.decode

ADD_ATTEMPT = insert(ATTEMPTS)
DROP_RETRY = delete(RETRIES).where(
    *(RETRIES.c[name] == bindparam(name) for name in ("flow_id", "partition", "offset"))
)
_gaps_of_partition = (
    GAPS.c.flow_id == bindparam("flow_id"),
    GAPS.c.partition == bindparam("partition"),
)
# With fewer gaps there is no oldest kept one, and nothing is below NULL.
DROP_OLD_GAPS = delete(GAPS).where(
    *_gaps_of_partition,
    GAPS.c.from_offset
    < select(GAPS.c.from_offset)
    .where(*_gaps_of_partition)
    .order_by(GAPS.c.from_offset.desc())
    .offset(KEPT_GAPS - 1)
    .limit(1)
    .scalar_subquery(),
)


@dataclass(frozen=True, slots=True)
class CursorRow:
    flow_id: str
    partition: int
    next_offset: int
    settled: list[int]
    """Ranges beyond the cursor: lengths of hole and range in turn."""
    claimed: list[list[int]]
    """Ranges that were handed out: from, to (not included), attempt, until_ms, first_ms."""
    epoch: int
    updated_ms: int
    topic_id: str = ""
    """The topic that the offsets belong to."""


class RetryRow(NamedTuple):
    """A tuple, because a start may load a hundred thousand of them."""

    flow_id: str
    partition: int
    offset: int
    attempts: int
    first_ms: int
    next_ms: int | None
    """When it is due; None: blocked until someone resumes it."""
    lane: str | None


@dataclass(frozen=True, slots=True)
class AttemptRow:
    flow_id: str
    channel_id: str | None
    partition: int
    offset: int
    attempt: int
    at_ms: int
    duration_ms: int
    status: int | None
    error: str
    detail: str
    next_ms: int | None
    id: int | None = None
    """Counted by the database; None before it is written."""


@dataclass(frozen=True, slots=True)
class GapRow:
    flow_id: str
    partition: int
    from_offset: int
    to_offset: int
    count: int
    reason: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class Changes:
    """What one transaction writes; of a cursor and of a retry the last row counts."""

    cursors: list[CursorRow] = field(default_factory=list)
    retries: list[RetryRow] = field(default_factory=list)
    """Messages that are parked, or parked again."""
    settled: list[tuple[str, int, int]] = field(default_factory=list)
    """Flow, partition and offset of messages that are parked no more."""
    attempts: list[AttemptRow] = field(default_factory=list)
    gaps: list[GapRow] = field(default_factory=list)

    def without(self, refused: set[FlowPartition]) -> "Changes":
        return Changes(
            [row for row in self.cursors if (row.flow_id, row.partition) not in refused],
            [row for row in self.retries if (row.flow_id, row.partition) not in refused],
            [place for place in self.settled if place[:2] not in refused],
            [row for row in self.attempts if (row.flow_id, row.partition) not in refused],
            [row for row in self.gaps if (row.flow_id, row.partition) not in refused],
        )


@dataclass(frozen=True, slots=True)
class FlowState:
    cursors: list[CursorRow] = field(default_factory=list)
    retries: list[RetryRow] = field(default_factory=list)
    """The one that is due first comes first, blocked ones last."""
    gaps: list[GapRow] = field(default_factory=list)
    """Oldest first."""


class DeliveryStore:
    def __init__(self, database: Database) -> None:
        self._database = database
        # Built once: what SQLAlchemy compiles for them is found again by looking at the objects.
        cursor = database.insert(CURSORS)
        self._seek_cursor = _upsert(cursor, CURSORS)
        self._advance_cursor = _upsert(cursor, CURSORS, where=_is_not_older(cursor)).returning(
            CURSORS.c.flow_id, CURSORS.c.partition
        )
        self._put_retry = _upsert(database.insert(RETRIES), RETRIES)
        self._put_gap = _upsert(database.insert(GAPS), GAPS)

    async def commit(self, changes: Changes) -> set[FlowPartition]:
        """Write all of it in one transaction; durable when this returns.

        Returns the partitions of flows that a cursor was older for than the one in the database
        (a lower epoch, or a lower offset in the same epoch). Of these nothing is written: somebody
        else has the flow, or it was moved.
        """
        return await self._database.write_quickly(lambda writer: self._commit(writer, changes))

    async def rewind(self, flow_id: str, cursors: Sequence[CursorRow]) -> None:
        """An explicit seek: the flow goes on at `cursors`, and nothing is parked any more."""

        def work(connection: Connection) -> None:
            connection.execute(delete(RETRIES).where(RETRIES.c.flow_id == flow_id))
            if cursors:
                connection.execute(self._seek_cursor, [_cursor_values(row) for row in cursors])

        await self._database.write(work)

    async def forget(self, flow_id: str) -> None:
        """Delete everything that is stored of the flow, its history too."""

        def work(connection: Connection) -> None:
            for table in (CURSORS, RETRIES, GAPS, ATTEMPTS):
                connection.execute(delete(table).where(table.c.flow_id == flow_id))

        await self._database.write(work)

    async def load(self, flow_id: str) -> FlowState:
        states = await self._database.read(lambda connection: _load(connection, flow_id))
        return states.get(flow_id, FlowState())

    async def load_all(self) -> dict[str, FlowState]:
        """All flows at once, by id: three queries for any number of them."""
        return await self._database.read(_load)

    def _commit(self, writer: Writer, changes: Changes) -> set[FlowPartition]:
        refused = self._advance(writer, changes.cursors)
        if refused:
            changes = changes.without(refused)
        if changes.retries:
            writer.execute(self._put_retry, [_retry_values(row) for row in changes.retries])
        if changes.settled:
            writer.execute(DROP_RETRY, [_place_values(place) for place in changes.settled])
        if changes.attempts:
            writer.execute(ADD_ATTEMPT, [_attempt_values(row) for row in changes.attempts])
        if changes.gaps:
            gaps = [_gap_values(row) for row in changes.gaps]
            writer.execute(self._put_gap, gaps)
            writer.execute(DROP_OLD_GAPS, [_of_partition(gap) for gap in gaps])
        return refused

    def _advance(self, writer: Writer, cursors: list[CursorRow]) -> set[FlowPartition]:
        if not cursors:
            return set()
        # One statement may not meet a row twice, and writers that take rows in one order never
        # wait for each other in a circle.
        last = {(row.flow_id, row.partition): row for row in cursors}
        values = [_cursor_values(last[key]) for key in sorted(last)]
        written = writer.query(self._advance_cursor, values)
        return last.keys() - {(flow_id, partition) for flow_id, partition in written}


def _upsert(statement: Any, table: Table, where: Any = None) -> Any:
    keys = list(table.primary_key.columns)
    values = {
        column.name: statement.excluded[column.name] for column in table.c if column not in keys
    }
    return statement.on_conflict_do_update(index_elements=keys, set_=values, where=where)


def _is_not_older(cursor: Any) -> Any:
    new = cursor.excluded
    return or_(
        new.epoch > CURSORS.c.epoch,
        and_(new.epoch == CURSORS.c.epoch, new.next_offset >= CURSORS.c.next_offset),
    )


def _load(connection: Connection, flow_id: str | None = None) -> dict[str, FlowState]:
    """The states of all flows, or of one."""
    states: defaultdict[str, FlowState] = defaultdict(FlowState)

    def rows(table: Table, *order: Any) -> Iterable[Any]:
        query = select(table).order_by(*order).execution_options(**STREAMING)
        if flow_id is not None:
            query = query.where(table.c.flow_id == flow_id)
        return connection.execute(query)

    for row in rows(CURSORS, CURSORS.c.flow_id, CURSORS.c.partition):
        states[row[0]].cursors.append(_cursor_of(row))
    for row in rows(RETRIES, RETRIES.c.next_ms.nulls_last(), RETRIES.c.partition, RETRIES.c.offset):
        states[row[0]].retries.append(RetryRow._make(row))
    for row in rows(GAPS, GAPS.c.at_ms, GAPS.c.partition, GAPS.c.from_offset):
        states[row[0]].gaps.append(GapRow(*row))
    return dict(states)


def _values_of(table: Table) -> Callable[[Any], dict[str, Any]]:
    """From a row to what its statement is given; by far faster than `asdict`, which copies deep."""
    names = tuple(column.name for column in table.c if column.name != "id")
    read = attrgetter(*names)
    return lambda row: dict(zip(names, read(row), strict=True))


_plain_cursor_values = _values_of(CURSORS)
_retry_values = _values_of(RETRIES)
_gap_values = _values_of(GAPS)
_plain_attempt_values = _values_of(ATTEMPTS)


def _cursor_values(row: CursorRow) -> dict[str, Any]:
    values = _plain_cursor_values(row)
    values["settled"] = _encode(row.settled).decode()
    values["claimed"] = _encode(row.claimed).decode()
    return values


def _cursor_of(row: Any) -> CursorRow:
    cursor = CursorRow(*row)
    settled, claimed = _decode(row.settled), _decode(row.claimed)
    return replace(cursor, settled=settled, claimed=claimed)


def _attempt_values(row: AttemptRow) -> dict[str, Any]:
    values = _plain_attempt_values(row)
    values["error"] = _storable(row.error, ERROR_CHARACTERS)
    values["detail"] = _storable(row.detail, DETAIL_CHARACTERS)
    return values


def _storable(text: str, characters: int) -> str:
    """What both databases take. Strangers write these texts: one of them may not stop the rest."""
    return text[:characters].encode(errors="replace").decode().replace("\0", "\ufffd")


def _place_values(place: tuple[str, int, int]) -> dict[str, Any]:
    return {"flow_id": place[0], "partition": place[1], "offset": place[2]}


def _of_partition(values: dict[str, Any]) -> dict[str, Any]:
    return {"flow_id": values["flow_id"], "partition": values["partition"]}
