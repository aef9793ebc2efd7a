"""Removing segments from disk: rename first, unlink when the last reader is gone.

`<base>.log.deleted` says that retention let the segment go, also after a crash and on a full disk.
Runs on the maintenance thread: to give back a gigabyte takes a good part of a second.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from .files import Disk, empty_file, remove_file, storage_errors
from .segment import (
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    Segment,
    segment_name,
)

TEMPORARY_SUFFIX = ".tmp"


class Deletion:
    """The segments of one log that were let go, and the pins that keep them a while."""

    def __init__(self, disk: Disk, folder: Path) -> None:
        self._disk = disk
        self._folder = folder
        self._waiting: list[Segment] = []
        self._pins_lock = threading.Lock()

    @contextmanager
    def pinned(self, segment: Segment) -> Iterator[bool]:
        """Keep a segment's bytes while reading; False when it was let go before."""
        with self._pins_lock:
            is_there = not segment.is_deleted
            segment.pins += is_there
        try:
            yield is_there
        finally:
            with self._pins_lock:
                segment.pins -= is_there

    def rename(self, segments: Sequence[Segment]) -> None:
        """Let segments go by name; a crash from here on finds them let go."""
        for segment in segments:
            with self._pins_lock:
                segment.is_deleted = True
            with storage_errors(f"rename {segment.path}"):
                self._disk.rename(segment.path, self._deleted_path(segment.base_offset))
            for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX):
                remove_file(self._disk, self._folder / segment_name(segment.base_offset, suffix))
        with storage_errors(f"flush {self._folder}"):
            self._disk.flush_folder(self._folder)
        self._waiting += segments

    def free_space(self) -> None:
        """Give back the bytes but keep the names, while the log start is not written elsewhere."""
        for segment in self._waiting:
            if not segment.pins:
                empty_file(self._disk, self._deleted_path(segment.base_offset))

    def unlink(self) -> None:
        """Remove what no reader holds any more."""
        gone = [segment for segment in self._waiting if not segment.pins]
        for segment in gone:
            remove_file(self._disk, self._deleted_path(segment.base_offset), is_paced=True)
        self._waiting = [segment for segment in self._waiting if segment not in gone]

    def sweep(self, kept_bases: set[int], *, is_start_durable: bool) -> None:
        """At a start: remove leftovers of deletions and of replaced files, and orphaned indexes.

        A segment file is a leftover when it was renamed or lies wholly below the log start, that
        is below the first one kept. Any other unknown file stays.
        """
        first_base = min(kept_bases)
        for name in self._disk.list_folder(self._folder):
            path = self._folder / name
            stem, _, suffix = name.partition(".")
            base_offset = int(stem) if stem.isdecimal() else first_base
            is_orphan = (
                suffix in {INDEX_SUFFIX[1:], TIME_INDEX_SUFFIX[1:]}
                and base_offset not in kept_bases
            ) or (suffix == LOG_SUFFIX[1:] and base_offset < first_base and is_start_durable)
            if name.endswith(DELETED_SUFFIX) and not is_start_durable:
                empty_file(self._disk, path)
            elif is_orphan or name.endswith((DELETED_SUFFIX, TEMPORARY_SUFFIX)):
                remove_file(self._disk, path)

    def _deleted_path(self, base_offset: int) -> Path:
        return self._folder / (segment_name(base_offset, LOG_SUFFIX) + DELETED_SUFFIX)
