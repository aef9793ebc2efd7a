"""The log writer: one thread that turns what is pending into batches, flushes, and reports back.

Group commit without a timer: while one flush runs, requests gather; the next group is all of them.
The thread hands each finished group to the event loop in one call and takes the next at once.
"""

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ibrik_broker.partitions.flush import Flusher
from ibrik_broker.partitions.messages import Append, Durability, Outcome, refused
from ibrik_broker.partitions.packing import write_appends
from ibrik_broker.partitions.partition import Commit, Frame, Partition
from ibrik_broker.partitions.refusals import shutting_down, storage_failed, storage_full
from ibrik_broker.telemetry.metrics import RECORDS_BUCKETS, Histogram
from ibrik_log.errors import StorageFailed
from ibrik_log.files import Disk

if TYPE_CHECKING:
    from ibrik_api.errors import Refusal

WRITTEN_FLUSH_SECONDS = 0.5
"""Records of the class `written` are flushed within a second; the flush itself takes time too."""

Requests = dict[Partition, list[Append]]
Work = list[tuple[Partition, list[Append]]]


class LogWriter:
    """Owns every write and every flush of one volume."""

    def __init__(
        self,
        disk: Disk,
        data: Path,
        flusher: Flusher,
        *,
        min_free_bytes: int,
        clock_ms: Callable[[], int],
        on_failure: Callable[[StorageFailed], None],
    ) -> None:
        self.refusal: Refusal | None = None
        """Why nothing is accepted at the moment; read by every `submit`."""
        self.free_bytes = self.capacity_bytes = 0
        self.min_free_bytes = min_free_bytes
        self.group_records = Histogram(RECORDS_BUCKETS)
        self.flush_seconds = Histogram()
        self.append_to_ack_seconds = Histogram()
        self._disk = disk
        self._data = data
        self._flusher = flusher
        self._clock_ms = clock_ms
        self._on_failure = on_failure
        self._condition = threading.Condition(threading.Lock())
        self._inbox: Requests = {}  # of this turn of the event loop
        self._handed: Requests = {}  # the next group
        self._first_put = self._handed_since = self._first_of_group = 0.0  # their oldest request
        self._unflushed: dict[Partition, list[Frame]] = {}  # written, not yet flushed
        self._unflushed_since = 0.0  # when the oldest of them was put
        self._is_idle = False
        self._is_closing = False
        self._has_ended = False
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name="log-writer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    # --- called on the event loop -----------------------------------------------------------

    def put(self, partition: Partition, append: Append) -> None:
        """Add a request to the next group.

        All requests of one turn of the loop are handed over at its end: a hand-over costs a lock
        and a switch of threads, and the group gets larger for it.
        """
        if not self._inbox:
            self._first_put = time.perf_counter()
            self._loop.call_soon(self._hand_over)
        self._inbox.setdefault(partition, []).append(append)

    def _hand_over(self) -> None:
        inbox, self._inbox = self._inbox, {}
        with self._condition:
            if self._has_ended:
                assert self.refusal is not None, "the writer ends only with a reason"
                outcome = refused(self.refusal)
                self._post([Commit(p, [(a, outcome) for a in inbox[p]]) for p in inbox])
                return
            if not self._handed:
                self._handed, self._handed_since = inbox, self._first_put
            else:
                for partition, appends in inbox.items():
                    self._handed.setdefault(partition, []).extend(appends)
            if self._is_idle:
                self._is_idle = False
                self._condition.notify()

    def drop_oldest(self, partition: Partition, newcomer: Append) -> list[Append]:
        """Take requests that nobody waits for out of the buffer until the newcomer fits."""
        buffer = partition.buffer
        missing_records = buffer.pending_records + newcomer.record_count - buffer.records_limit
        missing_bytes = buffer.pending_bytes + newcomer.size_bytes - buffer.bytes_limit
        dropped: list[Append] = []
        with self._condition:
            for requests in (self._handed, self._inbox):
                kept = []
                for append in requests.get(partition, ()):
                    if append.waits or (missing_records <= 0 and missing_bytes <= 0):
                        kept.append(append)
                    else:
                        dropped.append(append)
                        missing_records -= append.record_count
                        missing_bytes -= append.size_bytes
                if partition in requests:
                    requests[partition] = kept
        return dropped

    @property
    def is_storage_low(self) -> bool:
        """Whether nothing is accepted for want of room."""
        return self.refusal is not None and self.refusal.code == "storage-full"

    def look_at_capacity(self) -> None:
        """How large the file system is: it may grow, but not between two groups."""
        self.capacity_bytes = self._disk.total_bytes(self._data)

    def look_for_room(self) -> None:
        """Refuse below the low-water mark, accept again above it; never leaves another refusal."""
        self.free_bytes = self._disk.free_bytes(self._data)
        has_room = self.free_bytes >= self.min_free_bytes
        with self._condition:
            if self.refusal is None or self.refusal.code == "storage-full":
                self.refusal = None if has_room else storage_full()

    async def close(self) -> None:
        """Write and flush what was accepted, then end the thread."""
        self._hand_over()
        with self._condition:
            self.refusal = self.refusal or shutting_down()
            self._is_closing = True
            self._condition.notify()
        await asyncio.get_running_loop().run_in_executor(None, self._thread.join)
        self._flusher.close()

    async def barrier(self, partition: Partition) -> None:
        """Wait until all that was submitted to a partition so far has been answered."""
        await self._ask(partition)

    async def seal(self, partition: Partition, min_age_ms: int) -> int:
        """Seal what was submitted so far, if its oldest record is that old; the sealed end.

        Also when there is little room: what is sealed can be archived, and deleted then.
        """
        outcome = await self._ask(partition, seals_from_age_ms=min_age_ms)
        if outcome.refusal is not None:
            raise outcome.refusal.with_traceback(None)
        return outcome.base_offset

    async def _ask(self, partition: Partition, seals_from_age_ms: int | None = None) -> Outcome:
        """Put a request without records at the end of those that wait; its outcome."""
        answered: asyncio.Future[Outcome] = self._loop.create_future()

        def done(outcome: Outcome) -> None:
            if not answered.done():
                answered.set_result(outcome)

        self.put(partition, Append(0, done, seals_from_age_ms=seals_from_age_ms))
        return await answered

    # --- the thread -------------------------------------------------------------------------

    def _run(self) -> None:
        while (work := self._take()) is not None:
            try:
                self._commit(work)
            except StorageFailed as error:
                self._fail(work, error)
                return
            except BaseException as error:  # noqa: BLE001 - a broken writer must not look alive
                self._fail(work, StorageFailed(f"the log writer broke: {error!r}"))
                return

    def _take(self) -> Work | None:
        """All that is pending (nothing: flush what is written); None when the broker stops."""
        with self._condition:
            if not self._handed and not self._is_closing:
                self._is_idle = True
                self._condition.wait(WRITTEN_FLUSH_SECONDS if self._unflushed else None)
                self._is_idle = False
            if not self._handed and self._is_closing and not self._unflushed:
                self._has_ended = True
                return None
            handed, self._handed = self._handed, {}
            self._first_of_group = self._handed_since
        return list(handed.items())

    def _commit(self, work: Work) -> None:
        """Write a group, flush it, and hand the result to the event loop."""
        first_put = self._first_of_group
        record_count = sum(append.record_count for _, appends in work for append in appends)
        must_flush = self._must_flush(work, first_put)
        commits = self._write(work)
        if must_flush:
            commits = self._answer_written(work, commits)
            commits = self._flush(commits)
        self._post(commits)
        if work:
            self.group_records.observe(record_count)
            self.append_to_ack_seconds.observe(time.perf_counter() - first_put)
        self.look_for_room()

    def _must_flush(self, work: Work, first_put: float) -> bool:
        """Whether somebody waits for the flush, or what is written has waited long enough."""
        if not self._unflushed:
            self._unflushed_since = first_put
        # Also while there is always more to write: `written` promises a flush within a second.
        is_due = first_put - self._unflushed_since > WRITTEN_FLUSH_SECONDS
        return (
            not work
            or self._is_closing
            or is_due
            or any(p.settings.durability is Durability.FLUSHED for p, _ in work)
        )

    def _write(self, work: Work) -> list[Commit]:
        now_ms = self._clock_ms()
        commits: list[Commit] = []
        for partition, appends in work:
            outcomes, frames = write_appends(partition, appends, now_ms)
            if frames:
                self._unflushed.setdefault(partition, []).extend(frames)
            commits.append(Commit(partition, outcomes))
        return commits

    def _answer_written(self, work: Work, commits: list[Commit]) -> list[Commit]:
        """Answer who does not wait for the flush that others need; return the others' commits.

        The answered leave `work` too, so that a failing flush does not answer them again.
        """
        written = [c for c in commits if c.partition.settings.durability is Durability.WRITTEN]
        if not written:
            return commits
        self._post(written)
        answered = {commit.partition for commit in written}
        work[:] = [(p, appends) for p, appends in work if p not in answered]
        return [commit for commit in commits if commit.partition not in answered]

    def _flush(self, commits: list[Commit]) -> list[Commit]:
        """Flush all that is written, and add to the commits what readers may see now."""
        if not self._unflushed:
            return commits
        started = time.perf_counter()
        self._flusher.flush([partition.log for partition in self._unflushed])
        self.flush_seconds.observe(time.perf_counter() - started)
        flushed, self._unflushed = self._unflushed, {}
        for commit in commits:
            commit.frames = flushed.pop(commit.partition, [])
        return commits + [Commit(partition, frames=frames) for partition, frames in flushed.items()]

    def _post(self, commits: list[Commit]) -> None:
        if commits:
            self._loop.call_soon_threadsafe(_apply, commits)

    def _fail(self, work: Work, error: StorageFailed) -> None:
        """The disk did not confirm: refuse every unanswered producer, then stop the broker.

        The flush is not tried again: the kernel reports a failed write-back once and marks the
        pages clean, so a second flush would succeed without the bytes being there.
        """
        with self._condition:
            self._has_ended = True
            self.refusal = storage_failed()
            work += self._handed.items()
            self._handed = {}
        outcome = refused(self.refusal)
        self._post([Commit(p, [(append, outcome) for append in appends]) for p, appends in work])
        self._loop.call_soon_threadsafe(self._on_failure, error)


def _apply(commits: list[Commit]) -> None:
    for commit in commits:
        commit.partition.on_commit(commit)
