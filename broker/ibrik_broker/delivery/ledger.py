"""Writes the state of all flows to the database, in groups: one transaction for all that changed.

Like the log writer, it takes everything that is noted when the last transaction ends. What nobody
waits for (a cursor that moved) is written with the next transaction, or after a short while.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import structlog

from ibrik_api.errors import Refusal
from ibrik_broker.metadata.deliveries import (
    AttemptRow,
    Changes,
    CursorRow,
    DeliveryStore,
    GapRow,
    RetryRow,
)

T = TypeVar("T")
Place = tuple[str, int, int]
"""Flow, partition, offset."""

LAZY_SECONDS = 0.2
"""How long a cursor may have moved before that is written. After a crash the messages of this time
are delivered again, so it is short; a transaction each would cost more than the messages."""
RETRY_SECONDS = 1.0
FENCED = "owner-unavailable"

logger = structlog.get_logger("delivery")


class HasCursor(Protocol):
    """One partition of a flow."""

    flow_id: str
    index: int

    def cursor_row(self, now_ms: int) -> CursorRow: ...

    def fence(self) -> None:
        """Somebody else moved the cursor: hand out nothing more."""


@dataclass(slots=True)
class Notes:
    """What is to be written."""

    touched: dict[HasCursor, None] = field(default_factory=dict)
    retries: dict[Place, RetryRow | None] = field(default_factory=dict)
    """None deletes the row."""
    attempts: list[AttemptRow] = field(default_factory=list)
    gaps: list[GapRow] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.touched or self.retries or self.attempts or self.gaps)

    def changes(self, now_ms: int) -> Changes:
        return Changes(
            cursors=[part.cursor_row(now_ms) for part in self.touched],
            retries=[row for row in self.retries.values() if row is not None],
            settled=[place for place, row in self.retries.items() if row is None],
            attempts=self.attempts,
            gaps=self.gaps,
        )

    def put_before(self, later: "Notes") -> "Notes":
        """These notes, which could not be written, together with those that came since."""
        return Notes(
            self.touched | later.touched,
            self.retries | later.retries,
            self.attempts + later.attempts,
            self.gaps + later.gaps,
        )


class Ledger:
    def __init__(self, store: DeliveryStore, clock_ms: Callable[[], int]) -> None:
        self.store = store
        self._clock_ms = clock_ms
        self.commit_count = 0
        self._loop = asyncio.get_running_loop()
        self._notes = Notes()
        self._waiting: list[asyncio.Future[None]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._work = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()
        self._is_closed = False
        self._has_ended = False

    # --- note -------------------------------------------------------------------------------------

    def touch(self, part: HasCursor) -> None:
        """Its cursor row is written with the next transaction, as it is then."""
        self._notes.touched[part] = None
        self._be_lazy()

    def keep_retry(self, row: RetryRow) -> None:
        self._notes.retries[row.flow_id, row.partition, row.offset] = row
        self._be_lazy()

    def drop_retry(self, flow_id: str, partition: int, offset: int) -> None:
        self._notes.retries[flow_id, partition, offset] = None
        self._be_lazy()

    def add_attempt(self, row: AttemptRow) -> None:
        self._notes.attempts.append(row)
        self._be_lazy()

    def add_gap(self, row: GapRow) -> None:
        self._notes.gaps.append(row)
        self._be_lazy()

    def forget(self, flow_id: str, parts: Iterable[HasCursor]) -> None:
        """Drop what is noted of a flow: something newer replaces all of it."""
        for part in parts:
            self._notes.touched.pop(part, None)
        kept = {place: row for place, row in self._notes.retries.items() if place[0] != flow_id}
        self._notes.retries = kept

    # --- write ------------------------------------------------------------------------------------

    async def commit(self) -> None:
        """Return when all that is noted up to now is durable.

        Raises Refusal `metadata-unavailable`; what was noted is kept and written later.
        """
        if self._has_ended or (not self._notes and not self._one_at_a_time.locked()):
            return
        written: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append(written)
        self._work.set()
        await written

    async def exclusively(self, work: Callable[[DeliveryStore], Awaitable[T]]) -> T:
        """Do something between two transactions, such as a seek."""
        async with self._one_at_a_time:
            return await work(self.store)

    async def run(self) -> None:
        """Write until closed; what is noted last is written too. A task of the dispatcher's."""
        while not self._is_closed or self._notes:
            await self._work.wait()
            self._work.clear()
            async with self._one_at_a_time:
                await self._write()
        self._has_ended = True
        for written in self._waiting:  # came, with nothing new, while the last one was written
            if not written.done():
                written.set_result(None)

    def close(self) -> None:
        self._is_closed = True
        self._work.set()

    async def _write(self) -> None:
        notes, self._notes = self._notes, Notes()
        waiting, self._waiting = self._waiting, []
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        failure: Refusal | None = None
        try:
            if notes:
                self._fence(notes, await self.store.commit(notes.changes(self._clock_ms())))
                self.commit_count += 1
        except Refusal as refusal:
            failure = refusal
            if refusal.code != FENCED:
                logger.warning("delivery state not written", reason=refusal.detail)
                self._notes = Notes() if self._is_closed else notes.put_before(self._notes)
                self._timer = self._loop.call_later(RETRY_SECONDS, self._work.set)
        for written in waiting:
            if written.done():
                continue
            if failure is None:
                written.set_result(None)
            else:
                written.set_exception(failure.with_traceback(None))

    def _fence(self, notes: Notes, refused: set[tuple[str, int]]) -> None:
        """Stop the flows that somebody else moved; whoever waits claims again what is not theirs.

        Raises Refusal `owner-unavailable` when there are any.
        """
        if not refused:
            return
        for part in notes.touched:
            if (part.flow_id, part.index) in refused:
                part.fence()
        logger.error("cursor moved by somebody else", flows=sorted(refused))
        raise Refusal(FENCED, "Another broker serves this subscription. Restart this one.")

    def _be_lazy(self) -> None:
        if self._timer is None and not self._work.is_set():
            self._timer = self._loop.call_later(LAZY_SECONDS, self._work.set)
