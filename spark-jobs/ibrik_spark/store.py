"""The folder of a table: the one place that makes files in it, and makes them last.

A file is never overwritten, and it is on the disk, together with its name, before it is committed.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from .errors import TableFailed, WrongTable


class Store:
    """The folder of one table."""

    def __init__(self, location: str) -> None:
        if "://" in location:
            raise WrongTable(f"{location}: a target is a folder; other stores are not served yet")
        self.location = location
        self._root = Path(location)

    def make(self) -> None:
        """Make the folder, durably."""
        with self._failing("make the folder"):
            self._make_folder(self._root)

    def is_in_use(self) -> bool:
        """Whether something lies there that is not the beginning of a table."""
        with self._failing("list"):
            if not self._root.is_dir():
                return self._root.exists()
            return any(entry.name != "_delta_log" for entry in self._root.iterdir())

    @contextmanager
    def create(self, path: str) -> Iterator[BinaryIO]:
        """A new file; when the block ends without an error, file and name survive a power cut."""
        target = self._root / path
        with self._failing(f"write {path}"):
            self._make_folder(target.parent)
            with target.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            self._flush_folder(target.parent)

    def read(self, path: str) -> Path:
        return self._root / path

    def size_bytes(self, path: str) -> int:
        with self._failing(f"read {path}"):
            return (self._root / path).stat().st_size

    def flush_log(self) -> None:
        """Make the commits survive a power cut; what writes them does not.

        Only then may anybody be told, who deletes what is in the table from the log.
        """
        log = self._root / "_delta_log"
        with self._failing("flush the commits"):
            newest = max(log.glob("*.json"), default=None)
            if newest is not None:
                handle = os.open(newest, os.O_RDONLY)
                try:
                    os.fsync(handle)
                finally:
                    os.close(handle)
            self._flush_folder(log)

    def _make_folder(self, folder: Path) -> None:
        if not folder.is_dir():
            self._make_folder(folder.parent)
            folder.mkdir(exist_ok=True)
            self._flush_folder(folder.parent)

    def _flush_folder(self, folder: Path) -> None:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    @contextmanager
    def _failing(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise TableFailed(
                f"cannot {what} in {self.location}: {error.strerror or error}; check that the "
                "target is mounted, writable and not full. The next run goes on from here"
            ) from error
