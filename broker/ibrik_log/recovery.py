"""What a start makes of a log's folder: its segments, where it ends, what is damaged.

A clean start trusts the clean marker and looks at names and sizes only. Any other start walks the
frames from the recovery point on. Opened read-only, nothing is changed. Doing it twice changes
nothing more.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

from .checkpoint import (
    Checkpoint,
    CleanMarker,
    OffsetRange,
    SealedSegments,
    SegmentSummary,
    decode_checkpoint,
    decode_clean_marker,
    decode_sealed,
)
from .epochs import EpochRun, Lineage, decode_epochs
from .errors import StorageFull, UnreadableDocument
from .files import AppendFile, Disk, ReadFile, read_file, remove_file, storage_errors
from .scan import SegmentScan, scan_segment
from .segment import DELETED_SUFFIX, LOG_SUFFIX, Segment, segment_name

CHECKPOINT = "checkpoint"
CLEAN = "clean"
EPOCHS = "epochs"
SEALED = "sealed.json"
QUARANTINE_SUFFIX = ".quarantine"
COPY_BYTES = 1024 * 1024

T = TypeVar("T")


@dataclass(slots=True)
class RecoveryReport:
    """What recovery did; all zero and empty after a clean stop."""

    scanned_bytes: int = 0
    cut_bytes: int = 0
    cut_reason: str = ""
    quarantined: Path | None = None
    unreadable: list[str] = field(default_factory=list)  # small files that had to be done without
    ignored: list[str] = field(default_factory=list)  # segment files that overlap others


@dataclass(slots=True)
class Recovered:
    """The log as found. The last segment is the active one; there is none in a new folder."""

    start_offset: int
    end_offset: int
    segments: list[Segment]
    lineage: Lineage
    last_epoch: int
    damaged: list[OffsetRange]
    was_clean: bool
    ends_in_damage: bool  # the active segment cannot take the next offset
    report: RecoveryReport


@dataclass(frozen=True, slots=True)
class _Memory:
    """The small files, as far as they could be read."""

    checkpoint: Checkpoint | None
    sealed: SealedSegments | None
    sealed_by_base: dict[int, SegmentSummary]
    lineage: Lineage | None
    clean: CleanMarker | None

    def trusted(self, base_offset: int, *, is_last: bool) -> SegmentSummary | None:
        """What may be believed of a segment without walking it; None: walk it.

        Without a checkpoint nothing is known to be flushed; without a lineage no frame is known.
        """
        if self.lineage is None:
            return None
        if is_last:
            return self.clean.active if self.clean else None
        if self.checkpoint is None or base_offset >= self.checkpoint.recovery_point:
            return None
        return self.sealed_by_base.get(base_offset)


class Recovery:
    """One recovery of one folder."""

    def __init__(
        self, disk: Disk, folder: Path, index_interval_bytes: int, *, is_read_only: bool
    ) -> None:
        self._disk = disk
        self._folder = folder
        self._interval_bytes = index_interval_bytes
        self._is_read_only = is_read_only
        self._report = RecoveryReport()
        self._damaged: list[OffsetRange] = []
        self._runs: list[EpochRun] = []

    def run(self) -> Recovered:
        names = self._disk.list_folder(self._folder)
        sealed = self._read(SEALED, decode_sealed)
        memory = _Memory(
            checkpoint=self._read(CHECKPOINT, decode_checkpoint),
            sealed=sealed,
            sealed_by_base={s.base_offset: s for s in sealed.segments} if sealed else {},
            lineage=self._read(EPOCHS, decode_epochs),
            clean=self._read(CLEAN, decode_clean_marker),
        )
        self._consume_clean_marker(names)
        bases = _bases(names, LOG_SUFFIX)
        start_offset = _start_offset(names, bases, memory)
        self._damaged += sealed.damaged if sealed else ()

        segments: list[Segment] = []
        for base_offset in (bases := _above_start(bases, start_offset)):
            is_last = base_offset == bases[-1]
            if segments and base_offset < segments[-1].next_offset:
                self._report.ignored.append(segment_name(base_offset))
                continue
            trusted = memory.trusted(base_offset, is_last=is_last)
            segment = self._open_segment(base_offset, trusted, memory.lineage, is_last=is_last)
            if segment is None:  # retention of the process that writes was faster
                segments.clear()
                start_offset = min((b for b in bases if b > base_offset), default=0)
                continue
            segments.append(segment)
        return self._conclude(segments, start_offset, memory)

    # --- small files --------------------------------------------------------------------------

    def _read(self, name: str, decode: Callable[[bytes], T]) -> T | None:
        content = read_file(self._disk, self._folder / name)
        if content is None:
            return None
        try:
            return decode(content)
        except UnreadableDocument:
            self._report.unreadable.append(name)
            return None

    def _consume_clean_marker(self, names: list[str]) -> None:
        if CLEAN in names and not self._is_read_only:
            with storage_errors(f"consume the clean marker of {self._folder}"):
                self._disk.unlink(self._folder / CLEAN)
                self._disk.flush_folder(self._folder)

    # --- segments -----------------------------------------------------------------------------

    def _open_segment(
        self,
        base_offset: int,
        trusted: SegmentSummary | None,
        lineage: Lineage | None,
        *,
        is_last: bool,
    ) -> Segment | None:
        path = self._folder / segment_name(base_offset)
        try:
            size_bytes = self._disk.file_size(path)
        except FileNotFoundError:
            return None
        if (
            trusted is not None
            and trusted.base_offset == base_offset
            and trusted.size_bytes == size_bytes
        ):
            return Segment(self._disk, self._folder, trusted)
        try:
            file = ReadFile(self._disk, path)
        except FileNotFoundError:
            return None
        with file:
            scan = scan_segment(file, base_offset, size_bytes, lineage, self._interval_bytes)
            if is_last and scan.end_position < size_bytes and not self._is_read_only:
                self._cut(file, path, scan, size_bytes)
        self._report.scanned_bytes += size_bytes
        self._runs += scan.runs
        self._damaged += [OffsetRange(d.from_offset, d.to_offset) for d in scan.damages]
        segment = Segment(
            self._disk,
            self._folder,
            scan.summary(scan.end_position if is_last else size_bytes),
        )
        segment.adopt_scan(scan)
        return segment

    def _cut(self, file: ReadFile, path: Path, scan: SegmentScan, size_bytes: int) -> None:
        """Cut a torn tail; keep what was in it beside the log, unless there is no room for it."""
        self._report.cut_bytes = size_bytes - scan.end_position
        self._report.cut_reason = scan.fault or ""
        try:
            self._report.quarantined = self._quarantine(file, path, scan.end_position, size_bytes)
        except StorageFull:  # unacknowledged bytes; a start must not need room
            self._report.quarantined = None
        tail = AppendFile(self._disk, path)
        try:
            tail.truncate(scan.end_position)
            tail.flush()
        finally:
            tail.close()

    def _quarantine(
        self, file: ReadFile, path: Path, position: int, end_position: int
    ) -> Path | None:
        end_position = _end_without_zeros(file, position, end_position)
        if end_position == position:
            return None
        target = path.with_suffix(f".{position}{QUARANTINE_SUFFIX}")
        number = 1
        while self._disk.exists(target):
            target = path.with_suffix(f".{position}.{number}{QUARANTINE_SUFFIX}")
            number += 1
        kept = AppendFile(self._disk, target, create=True)
        try:
            for at in range(position, end_position, COPY_BYTES):
                kept.append([file.read(min(COPY_BYTES, end_position - at), at)])
            kept.flush()
        except StorageFull:
            remove_file(self._disk, target)
            raise
        finally:
            kept.close()
        with storage_errors(f"keep {target}"):
            self._disk.flush_folder(self._folder)
        return target

    # --- conclusion ---------------------------------------------------------------------------

    def _conclude(self, segments: list[Segment], start_offset: int, memory: _Memory) -> Recovered:
        lineage, clean, checkpoint = memory.lineage, memory.clean, memory.checkpoint
        if lineage is None:
            lineage = Lineage.from_runs(self._runs)
        # Offsets that were given out are never given out again.
        known_end = max(
            start_offset,
            clean.end_offset if clean else 0,
            checkpoint.recovery_point if checkpoint else 0,
        )
        found_end = segments[-1].next_offset if segments else start_offset
        end_offset = max(found_end, known_end)
        # Each segment was flushed before the next was made, and the last one up to the known end:
        # what lies between was there and is lost.
        expected = start_offset
        for segment in segments:
            self._damaged.append(OffsetRange(expected, segment.base_offset))
            expected = segment.next_offset
        self._damaged.append(OffsetRange(expected, end_offset))
        for earlier, later in pairwise(segments):
            earlier.next_offset = later.base_offset
        if segments:
            segments[-1].next_offset = end_offset
        return Recovered(
            start_offset=start_offset,
            end_offset=end_offset,
            segments=segments,
            lineage=lineage.truncate(end_offset),
            last_epoch=max(lineage.latest, clean.leader_epoch if clean else -1),
            damaged=merge_ranges(self._damaged, start_offset),
            ends_in_damage=found_end < end_offset,
            was_clean=clean is not None and self._report.scanned_bytes == 0,
            report=self._report,
        )


def merge_ranges(ranges: list[OffsetRange], start_offset: int) -> list[OffsetRange]:
    """Sort, join what touches, and forget what lies below the log start."""
    merged: list[OffsetRange] = []
    for lower, to_offset in sorted(ranges):
        from_offset = max(lower, start_offset)
        if from_offset >= to_offset:
            continue
        if merged and from_offset <= merged[-1].to_offset:
            last = merged[-1]
            merged[-1] = OffsetRange(last.from_offset, max(last.to_offset, to_offset))
        else:
            merged.append(OffsetRange(from_offset, to_offset))
    return merged


def _bases(names: list[str], suffix: str) -> list[int]:
    stems = [name.removesuffix(suffix) for name in names if name.endswith(suffix)]
    return sorted(int(stem) for stem in stems if len(stem) == 20 and stem.isdecimal())


def _start_offset(names: list[str], bases: list[int], memory: _Memory) -> int:
    """The log start: as written, or as a retention shows that could only rename, on a full disk."""
    checkpoint, sealed = memory.checkpoint, memory.sealed
    candidates = [checkpoint.start_offset if checkpoint else 0]
    candidates.append(sealed.start_offset if sealed else 0)
    deleted = _bases(names, LOG_SUFFIX + DELETED_SUFFIX)
    if deleted:
        candidates.append(min((base for base in bases if base > deleted[-1]), default=0))
    if checkpoint is None and sealed is None and bases:
        candidates.append(bases[0])
    return max(candidates)


def _above_start(bases: list[int], start_offset: int) -> list[int]:
    """Without segments that retention let go but did not get to rename."""
    first = max((n for n, base in enumerate(bases) if base <= start_offset), default=0)
    return bases[first:]


def _end_without_zeros(file: ReadFile, position: int, end_position: int) -> int:
    """Where the last byte that is not zero ends: nobody wants a copy of a preallocated file."""
    while end_position > position:
        at = max(position, end_position - COPY_BYTES)
        block = file.read(end_position - at, at).rstrip(b"\0")
        if block:
            return at + len(block)
        end_position = at
    return position
