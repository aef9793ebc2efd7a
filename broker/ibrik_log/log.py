"""The log of one partition: append, flush, read, roll, retention (docs/formats/).

`append`, `flush`, `roll` and `seal` belong to one thread, the writer. `read` and other questions
may come from any thread, retention from the maintenance thread. The list of segments is a tuple
that is replaced, so readers take no lock. Time is passed in.
"""

import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from .active import ActiveSegment, create_active
from .batch import BatchHeader
from .checkpoint import Checkpoint, CleanMarker, OffsetRange, SealedSegments, SegmentSummary
from .config import LogConfig
from .deletion import Deletion
from .documents import Documents
from .errors import CorruptRange, OffsetOutOfRange, StorageFailed, StorageFull
from .files import Disk, make_folders, storage_errors
from .reader import SegmentReader, walk_headers
from .recovery import Recovered, Recovery, RecoveryReport, merge_ranges
from .retention import count_expired
from .segment import LoadedIndexes, Segment
from .verify import Problem, verify_segments

__all__ = ["Log", "LogConfig"]


class Log:
    """One partition's records on one disk."""

    def __init__(
        self,
        disk: Disk,
        folder: Path,
        config: LogConfig,
        found: Recovered,
        *,
        is_read_only: bool,
    ) -> None:
        self.folder = folder
        self.config = config
        self.recovered: RecoveryReport = found.report
        self.on_roll: Callable[[], None] | None = None
        self.start_offset = found.start_offset
        self.end_offset = found.end_offset
        self.leader_epoch = found.last_epoch
        self.lineage = found.lineage
        self.last_append_ms = max((s.last_append_ms for s in found.segments), default=0)
        self.is_read_only = is_read_only
        self._disk = disk
        self._segments: tuple[Segment, ...] = tuple(found.segments)
        self._damaged = found.damaged
        self._documents = Documents(disk, folder)
        self._deletion = Deletion(disk, folder)
        self._lock = threading.Lock()  # the list of segments and the small files
        self._maintenance_lock = threading.Lock()  # one deletion at a time
        self._loaded = LoadedIndexes()
        self._written_damaged: tuple[OffsetRange, ...] = tuple(found.damaged)
        self._active: ActiveSegment | None = None
        self._has_failed = False

    @classmethod
    def open(cls, disk: Disk, folder: Path, config: LogConfig, *, read_only: bool = False) -> "Log":
        """Open the log in `folder`; creates it, or recovers it.

        Read-only takes no lock and changes nothing: another process may be writing.
        """
        if not read_only:
            make_folders(disk, folder)
        recovery = Recovery(disk, folder, config.index_interval_bytes, is_read_only=read_only)
        with storage_errors(f"open {folder}"):
            found = recovery.run()
            log = cls(disk, folder, config, found, is_read_only=read_only)
            if not read_only:
                log._begin(found)
        return log

    # --- facts --------------------------------------------------------------------------------

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self._segments)

    @property
    def segments(self) -> tuple[SegmentSummary, ...]:
        """All segments, oldest first; the last is the active one."""
        return tuple(segment.summary() for segment in self._segments)

    @property
    def sealed_offset(self) -> int:
        """The end of what is sealed: where the active segment begins."""
        return self._segments[-1].base_offset if self._segments else self.end_offset

    @property
    def damaged(self) -> list[OffsetRange]:
        """The ranges known to be unreadable."""
        found = [
            OffsetRange(damage.from_offset, damage.to_offset)
            for segment in self._segments
            for damage in segment.damages
        ]
        return merge_ranges(self._damaged + found, self.start_offset)

    def file_descriptor(self) -> int:
        """That of the active segment, for whoever flushes many logs at once."""
        return self._writable().file_descriptor()

    # --- writing ------------------------------------------------------------------------------

    def append(self, batches: Sequence[bytearray], now_ms: int) -> int:
        """Stamp checked batches in place and write them at once; the offset of the first record.

        Raises StorageFull (nothing was written, try later) or StorageFailed (end the process).
        """
        active = self._writable()
        if not batches:
            return self.end_offset
        if active.is_roll_due(self.config, now_ms, sum(map(len, batches))):
            self.roll(now_ms)
            active = self._writable()
        if self._documents.needs_epochs and not self._documents.write_epochs(self.lineage):
            raise StorageFull(f"no room for the lineage of {self.folder}")
        append_ms = max(now_ms, self.last_append_ms)
        base_offset = self.end_offset
        self.end_offset = active.append(batches, self.leader_epoch, append_ms)
        self.last_append_ms = append_ms
        return base_offset

    def is_roll_due(self, now_ms: int) -> bool:
        """Whether the active segment is so old that retention would wait for it."""
        return self._writable().is_roll_due(self.config, now_ms, 0)

    def flush(self) -> None:
        """Make all appends durable; a failure is final."""
        self._writable().flush()

    def roll(self, now_ms: int) -> None:
        """Seal the active segment and begin the next; nothing to do when it is empty."""
        active = self._writable()
        if active.segment.size_bytes == 0:
            return
        with self._remembering_failure():
            active.flush()
            self._begin_segment()
            active.close()
            active.segment.write_indexes()
        self._loaded.note(active.segment)
        if self.on_roll is not None:
            self.on_roll()

    def seal(self, now_ms: int, *, min_age_ms: int = 0) -> int:
        """Roll, if the oldest record of the active segment is that old; the end of what is sealed.

        Another process finds it sealed when this returns. Raises StorageFull: nothing was lost.
        """
        active = self._writable().segment
        age_ms = max(now_ms, self.last_append_ms) - active.first_append_ms
        if active.next_offset > active.base_offset and age_ms >= min_age_ms:
            self.roll(now_ms)
        with self._lock, self._remembering_failure():
            if not self._documents.is_complete and not self._write_documents():
                raise StorageFull(f"no room for the list of segments of {self.folder}")
        return self.sealed_offset

    def close(self, *, clean: bool = True) -> None:
        """Flush and leave the clean marker, last and only if nothing failed; or just let go."""
        active, self._active = self._active, None
        if active is None:
            return
        try:
            if clean and not active.has_failed and not self._has_failed:
                self._close_clean(active)
        finally:
            active.close()

    def update_config(self, config: LogConfig) -> None:
        self.config = config

    # --- reading ------------------------------------------------------------------------------

    def read(self, offset: int, max_bytes: int, end: int) -> list[bytes]:
        """Whole checked frames from the one with `offset`, all ending at or before `end`.

        At least one, even if larger than `max_bytes`; may stop at a segment's end. None at the end.
        Raises OffsetOutOfRange and CorruptRange.
        """
        segments = self._segments
        if not self.start_offset <= offset <= self.end_offset:
            raise OffsetOutOfRange(offset, self.start_offset, self.end_offset)
        end = min(end, self.end_offset)
        if offset >= end:
            return []
        if not segments or offset < segments[0].base_offset:
            to_offset = segments[0].base_offset if segments else self.end_offset
            raise CorruptRange(offset, to_offset, "the segment is missing")
        segment = segments[bisect_right(segments, offset, key=_base_offset) - 1]
        return self._read_segment(segment, offset, max_bytes, end)

    def scan_headers(self, from_offset: int) -> Iterator[BatchHeader]:
        """The headers of all readable frames from the one with `from_offset` on."""
        return walk_headers(self.read, max(from_offset, self.start_offset), self.end_offset)

    def offset_for_timestamp(self, timestamp_ms: int) -> int | None:
        """The first offset appended at or after `timestamp_ms`; None when there is none."""
        for segment in self._segments:
            if segment.last_append_ms < timestamp_ms:
                continue
            with self._deletion.pinned(segment) as is_there:
                if not is_there:
                    continue
                from_offset = self._reader(segment).first_offset_before(timestamp_ms)
            for header in self.scan_headers(from_offset):
                if header.max_timestamp_ms >= timestamp_ms:
                    return max(header.base_offset, self.start_offset)
        return None

    def verify(self) -> Iterator[Problem]:
        """Read everything once; yields what is not as it was written, in order."""
        return verify_segments(
            self._segments,
            self.start_offset,
            self._deletion.pinned,
            self.lineage,
            self.config.index_interval_bytes,
        )

    # --- deleting -----------------------------------------------------------------------------

    def apply_retention(self, now_ms: int, *, keep_from: int | None = None) -> int:
        """Delete whole sealed segments that are too old or too many; the new log start."""
        going = self.expired(now_ms, keep_from=keep_from)
        return self.truncate_before(going[-1].next_offset if going else 0)

    def expired(self, now_ms: int, *, keep_from: int | None = None) -> list[SegmentSummary]:
        """The sealed segments that retention lets go, oldest first; none from `keep_from` on."""
        *sealed, active = self.segments
        count = count_expired(
            sealed,
            active.size_bytes,
            now_ms=now_ms,
            retention_ms=self.config.retention_ms,
            retention_bytes=self.config.retention_bytes,
            keep_from=keep_from,
        )
        return sealed[:count]

    def truncate_before(self, offset: int, *, free: bool = True) -> int:
        """Move the log start up to `offset` (not beyond the end) and delete what lies below it.

        `free` False leaves the bytes to the next retention: giving them back takes its time.
        """
        with self._maintenance_lock, self._remembering_failure():
            with self._lock:
                start_offset = max(self.start_offset, min(offset, self.end_offset))
                gone = [s for s in self._segments[:-1] if s.next_offset <= start_offset]
                has_moved = start_offset > self.start_offset
                self.start_offset = start_offset
                self._segments = self._segments[len(gone) :]
                # First the new start, then the names, then the bytes. On a full disk the names
                # have to say it until there is room.
                is_written = self._write_documents() if has_moved else self._documents.is_complete
                if gone:
                    self._deletion.rename(gone)
            if free:
                self._free(is_written=is_written)
        return start_offset

    def _free(self, *, is_written: bool) -> None:
        # Bytes take long, and the writer may want to roll: not under its lock.
        if not is_written:
            self._deletion.free_space()
            with self._lock:
                is_written = self._write_documents()
        if is_written:
            self._deletion.unlink()

    # --- inside -------------------------------------------------------------------------------

    @contextmanager
    def _remembering_failure(self) -> Iterator[None]:
        """After any failure of the disk, no stop is a clean one."""
        try:
            yield
        except StorageFailed:
            self._has_failed = True
            raise

    def _writable(self) -> ActiveSegment:
        if self._active is None:
            raise StorageFailed(f"{self.folder} is not open for writing")
        return self._active

    def _begin(self, found: Recovered) -> None:
        """Make the log writable: a durable end, an active segment, a new epoch."""
        self.leader_epoch = found.last_epoch + 1
        # Frames below the log start may lie in the first segment, and are walked over.
        first_offset = self._segments[0].base_offset if self._segments else self.end_offset
        self.lineage = found.lineage.assign(
            self.leader_epoch, self.end_offset
        ).without_epochs_before(first_offset)
        if self._segments:
            self._active = ActiveSegment(
                self._disk, self._segments[-1], self.config.index_interval_bytes
            )
            self._active.prepare(found.lineage)
            if not found.was_clean:
                self._active.flush()
        if self._active is None or found.ends_in_damage:
            damaged, self._active = self._active, None
            self._begin_segment()
            if damaged is not None:
                damaged.close()
        elif not found.was_clean or found.report.unreadable:
            self._write_documents()
        self._documents.write_epochs(self.lineage)
        self._deletion.sweep(
            {segment.base_offset for segment in self._segments},
            is_start_durable=self._documents.is_complete,
        )

    def _begin_segment(self) -> None:
        """Create the next active segment, durable before anything is acknowledged from it."""
        segment = Segment(
            self._disk, self.folder, SegmentSummary(self.end_offset, self.end_offset, 0, 0, 0)
        )
        active = create_active(self._disk, segment, self.config.index_interval_bytes)
        with self._lock:
            self._segments = (*self._segments, segment)
            self._active = active
            self._write_documents()

    def _write_documents(self) -> bool:
        """Write what the next start needs to know; False when there is no room for it."""
        recovery_point = self._segments[-1].base_offset
        sealed = SealedSegments(
            self.start_offset,
            tuple(segment.summary() for segment in self._segments[:-1]),
            tuple(self.damaged),
        )
        # What lies below the recovery point must be listed, so the list comes first.
        is_listed = self._documents.write_sealed(sealed)
        is_written = self._documents.write_checkpoint(Checkpoint(self.start_offset, recovery_point))
        self._written_damaged = sealed.damaged
        return is_listed and is_written

    def _close_clean(self, active: ActiveSegment) -> None:
        active.flush()
        active.segment.write_indexes()
        if self._documents.needs_epochs:
            self._documents.write_epochs(self.lineage)
        if not self._documents.is_complete or tuple(self.damaged) != self._written_damaged:
            self._write_documents()
        if self._documents.is_complete:
            self._documents.write_clean_marker(
                CleanMarker(self.end_offset, self.leader_epoch, active.segment.summary())
            )

    def _reader(self, segment: Segment) -> SegmentReader:
        return SegmentReader(
            segment,
            self.lineage,
            self.config.index_interval_bytes,
            is_active=segment is self._segments[-1],
            is_read_only=self.is_read_only,
        )

    def _read_segment(self, segment: Segment, offset: int, max_bytes: int, end: int) -> list[bytes]:
        reason = "the segment file is missing"
        with self._deletion.pinned(segment) as is_there:
            try:
                if is_there:
                    reader = self._reader(segment)
                    frames = reader.read(offset, max_bytes, min(end, reader.next_offset))
                    if segment is not self._segments[-1]:
                        self._loaded.note(segment)
                    return frames
            except FileNotFoundError:
                pass
            except StorageFailed as error:  # one bad sector is no reason to end the process
                reason = str(error)
            except CorruptRange:
                # The process that writes may have emptied the file while we read it.
                if not self.is_read_only or segment.is_on_disk():
                    raise
        if self.is_read_only and not segment.is_on_disk():
            self.start_offset = max(self.start_offset, segment.next_offset)
        if offset < self.start_offset:
            raise OffsetOutOfRange(offset, self.start_offset, self.end_offset)
        raise CorruptRange(offset, segment.next_offset, reason)


def _base_offset(segment: Segment) -> int:
    return segment.base_offset
