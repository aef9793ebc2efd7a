"""One partition as the doors see it: submit, read, wait.

Lives on the event loop. Records go through a bounded buffer to the log writer, which calls back
with what became durable; readers see offsets below `latest`, the high watermark, and nothing else.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from ibrik_api.errors import Refusal
from ibrik_api.resources.topic import WhenFull
from ibrik_broker.partitions.holding import Held
from ibrik_broker.partitions.messages import Append, Durability, Outcome, refused
from ibrik_broker.partitions.refusals import buffer_full, translated
from ibrik_broker.partitions.sequences import ProducerSequences
from ibrik_broker.partitions.settings import TopicSettings
from ibrik_broker.partitions.state import BufferState
from ibrik_broker.partitions.tail import Tail, TailCache
from ibrik_log.errors import OffsetOutOfRange
from ibrik_log.log import Log

if TYPE_CHECKING:
    from ibrik_broker.partitions.writer import LogWriter

T = TypeVar("T")

WAIT_FOR_ROOM_SECONDS = 5.0
"""How long a request waits for room in a full buffer before it is refused."""
WAITING_REQUESTS_LIMIT = 10_000
"""More requests than this are refused at once: the doors bound bytes, this bounds objects."""


@dataclass(slots=True)
class Frame:
    """One batch as it was written."""

    base_offset: int
    next_offset: int
    content: bytes


@dataclass(slots=True)
class Commit:
    """What one group did to one partition; made by the writer, applied on the event loop."""

    partition: "Partition"
    outcomes: list[tuple[Append, Outcome]] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    """Frames that are flushed now, so that readers may see them."""


class Partition:
    """One partition: its log, its buffer, its tail and its waiting readers."""

    def __init__(
        self,
        topic_name: str,
        index: int,
        log: Log,
        settings: TopicSettings,
        *,
        writer: "LogWriter",
        tails: TailCache,
        readers: Executor,
    ) -> None:
        self.topic_name = topic_name
        self.index = index
        self.log = log
        self.settings = settings
        self.latest = log.end_offset  # what is found at a start was flushed, or is flushed by it
        self.sequences = ProducerSequences()  # the writer's
        self.buffer = BufferState(settings.buffer_records, settings.buffer_bytes)
        self.dropped_count = 0
        self.appended_count = 0
        self.appended_bytes = 0
        self.read_cached_bytes = 0
        self.read_disk_bytes = 0
        self.archived_up_to = 0
        """The first offset that is not known to be archived."""
        self.held = Held()
        """What retention holds back for the archive; set by the maintenance thread."""
        self.hold_refusal: Refusal | None = None
        """Why nothing is accepted while the archive is behind; set by the maintenance thread."""
        self.unarchived_dropped_count = 0
        self.on_news: Callable[[], None] | None = None
        """Called when readers may see more: the flows of subscriptions hear of it."""
        self._refusal: Refusal | None = None
        self._writer = writer
        self._tails = tails
        self._tail = Tail(next_offset=self.latest)
        self._readers = readers
        self._waiting_appends: deque[tuple[Append, asyncio.TimerHandle]] = deque()
        self._waiting_readers: set[asyncio.Future[None]] = set()

    # --- publish --------------------------------------------------------------------------

    @property
    def is_closed(self) -> bool:
        return self._refusal is not None

    @property
    def earliest(self) -> int:
        return self.log.start_offset

    @property
    def size_bytes(self) -> int:
        return self.log.size_bytes

    @property
    def archive_lag(self) -> int:
        """Messages that are not archived yet, of those that can be read."""
        return max(0, self.latest - max(self.archived_up_to, self.earliest))

    def submit(self, append: Append) -> None:
        """Hand a request to the log writer, or hold or refuse it when the buffer is full."""
        refusal = self._writer.refusal or self._refusal or self.hold_refusal
        if refusal is not None:
            append.done(refused(refusal))
        elif not self._waiting_appends and self._has_room(append):
            self._admit(append)
        else:
            self._hold(append)

    def _has_room(self, append: Append) -> bool:
        return self.buffer.has_room(append.record_count, append.size_bytes)

    def _admit(self, append: Append) -> None:
        self.buffer.claim(append.record_count, append.size_bytes)
        self._writer.put(self, append)
        if not append.waits:
            append.done(Outcome(-1, self.log.last_append_ms, Durability.NONE))

    def _hold(self, append: Append) -> None:
        """The buffer is full: wait, reject, or drop what nobody waits for."""
        match self.settings.when_full:
            case WhenFull.WAIT if len(self._waiting_appends) < WAITING_REQUESTS_LIMIT:
                loop = asyncio.get_running_loop()
                timer = loop.call_later(WAIT_FOR_ROOM_SECONDS, self._on_no_room, append)
                self._waiting_appends.append((append, timer))
                return
            case WhenFull.DROP_OLDEST:
                for dropped in self._writer.drop_oldest(self, append):
                    self.buffer.consume(dropped.record_count, dropped.size_bytes)
                    self.dropped_count += dropped.record_count
                if self._has_room(append):
                    self._admit(append)
                    return
        append.done(refused(buffer_full(self.topic_name, self.index)))

    def _on_no_room(self, append: Append) -> None:
        self._waiting_appends = deque(w for w in self._waiting_appends if w[0] is not append)
        append.done(refused(buffer_full(self.topic_name, self.index)))
        self._admit_waiting()  # what was behind it may be small enough

    def _admit_waiting(self) -> None:
        while self._waiting_appends and self._has_room(self._waiting_appends[0][0]):
            append, timer = self._waiting_appends.popleft()
            timer.cancel()
            self._admit(append)

    def on_commit(self, commit: Commit) -> None:
        """A group ended: show its frames to readers, answer its producers, let waiting ones in."""
        for frame in commit.frames:
            self.latest = frame.next_offset
            self._tails.extend(self._tail, frame.base_offset, frame.next_offset, frame.content)
        if commit.frames:
            self.wake_readers()
            if self.on_news is not None:
                self.on_news()
        for append, outcome in commit.outcomes:
            self.buffer.consume(append.record_count, append.size_bytes)
            if outcome.refusal is None and not outcome.is_duplicate:
                self.appended_count += append.record_count
                self.appended_bytes += append.size_bytes
            if append.waits:
                append.done(outcome)
        self._admit_waiting()

    async def seal(self, min_age_ms: int) -> int:
        """Seal the active segment when its oldest record is that old; the end of what is sealed."""
        if self._refusal is not None:
            raise self._refusal.with_traceback(None)
        return await self._writer.seal(self, min_age_ms)

    # --- read -----------------------------------------------------------------------------

    async def read(self, offset: int, max_bytes: int) -> list[bytes]:
        """Whole batches from the one that holds `offset`, below the high watermark.

        At least one batch, even when it is larger than `max_bytes`; none when `offset` is the end.
        Raises Refusal `offset-below-start`, `offset-above-end` or `corrupt-range`.
        """
        self._check_range(offset)
        if offset == self.latest:
            return []
        cached = self._tail.read(offset, max_bytes)
        if cached is not None:
            self.read_cached_bytes += sum(map(len, cached))
            return cached
        found = await self._in_reader(partial(self.log.read, offset, max_bytes, self.latest))
        self.read_disk_bytes += sum(map(len, found))
        return found

    def _check_range(self, offset: int) -> None:
        if not self.earliest <= offset <= self.latest:
            error = OffsetOutOfRange(offset, self.earliest, self.latest)
            raise translated(error, self.topic_name, self.index)

    async def offset_for_timestamp(self, timestamp_ms: int) -> int:
        """The first visible offset appended at or after a time; the end when there is none."""
        found = await self._in_reader(partial(self.log.offset_for_timestamp, timestamp_ms))
        return self.latest if found is None else min(found, self.latest)

    async def _in_reader(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._readers, work)
        except Exception as error:
            raise translated(error, self.topic_name, self.index) from error

    # --- wait -----------------------------------------------------------------------------

    async def wait(self, offset: int, timeout_s: float) -> bool:
        """Wait until something stands at `offset`; False when the time passes first."""
        try:
            async with asyncio.timeout(timeout_s):
                while self.latest <= offset and not self.is_closed:
                    await _next_wake([self])
        except TimeoutError:
            return False
        return not self.is_closed

    def wake_readers(self) -> None:
        """Wake every waiting reader. A wake-up carries no data: readers look for themselves."""
        waiting, self._waiting_readers = self._waiting_readers, set()
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def add_waiting_reader(self, future: "asyncio.Future[None]") -> None:
        self._waiting_readers.add(future)

    def remove_waiting_reader(self, future: "asyncio.Future[None]") -> None:
        self._waiting_readers.discard(future)

    # --- change and end
    # ------------------------------------------------------------------------------

    def apply_settings(self, settings: TopicSettings) -> None:
        self.settings = settings
        self.buffer.records_limit = settings.buffer_records
        self.buffer.bytes_limit = settings.buffer_bytes
        self.log.update_config(settings.log)

    def close(self, refusal: Refusal) -> None:
        """Take nothing any more, refuse who still waits for room, let readers go."""
        self._refusal = refusal
        waiting, self._waiting_appends = self._waiting_appends, deque()
        for append, timer in waiting:
            timer.cancel()
            append.done(refused(refusal))
        self._tails.clear(self._tail)
        self.wake_readers()


async def wait_for_any(partitions: list[Partition], timeout_s: float) -> bool:
    """Wait until one of the partitions has news (or closes); False when the time passes first.

    Look at the partitions before and after: the wake-up says only that there is something to see.
    """
    try:
        async with asyncio.timeout(timeout_s):
            await _next_wake(partitions)
    except TimeoutError:
        return False
    return True


async def _next_wake(partitions: list[Partition]) -> None:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    for partition in partitions:
        partition.add_waiting_reader(future)
    try:
        await future
    finally:
        for partition in partitions:
            partition.remove_waiting_reader(future)
