"""A table in a folder, where nothing lasts that was not flushed, and no name without its folder."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
from pyarrow.fs import FileSystem, LocalFileSystem, SubTreeFileSystem

from .errors import TableFailed
from .store import ADVICE, Store


class Folder(Store):
    """A folder on a volume, or on a laptop."""

    def __init__(self, location: str) -> None:
        self.location = location
        self._root = Path(location)

    @property
    def filesystem(self) -> FileSystem:
        return SubTreeFileSystem(self.location, LocalFileSystem())

    def make(self) -> None:
        with self._failing("make the folder"):
            self._make_folder(self._root)

    def is_in_use(self) -> bool:
        with self._failing("list"):
            if not self._root.is_dir():
                return self._root.exists()
            return any(entry.name != "_delta_log" for entry in self._root.iterdir())

    def folders(self) -> list[str]:
        with self._failing("list"):
            if not self._root.is_dir():
                return []
            return sorted(entry.name for entry in self._root.iterdir() if entry.is_dir())

    @contextmanager
    def create(self, path: str) -> Iterator[BinaryIO]:
        target = self._root / path
        with self._failing(f"write {path}"):
            self._make_folder(target.parent)
            with target.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            self._flush_folder(target.parent)

    def read(self, path: str) -> pa.NativeFile:
        with self._failing(f"read {path}"):
            return pa.OSFile(str(self._root / path))

    def size_bytes(self, path: str) -> int:
        with self._failing(f"read {path}"):
            return (self._root / path).stat().st_size

    def delete(self, path: str) -> None:
        with self._failing(f"delete {path}"):
            (self._root / path).unlink(missing_ok=True)

    def flush_log(self) -> None:
        # What writes the commits does not flush them.
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
                f"cannot {what} in {self.location}: {error.strerror or error}; {ADVICE}"
            ) from error
