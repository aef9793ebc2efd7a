"""The one door to the disk: nothing else here opens, writes, flushes, renames or removes.

`Disk` is the kernel as we use it: it raises OSError. `AppendFile`, `ReadFile` and the functions
below hold what we demand of it (short writes, write errors, the order of flushes) and raise
StorageFull or StorageFailed. The tests put a simulated disk behind the same protocol, so all that
is demanded here is tested against every crash.
"""

import contextlib
import ctypes
import errno
import fcntl
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from .errors import StorageFailed, StorageFull

Buffer = bytes | bytearray | memoryview

MAX_BUFFERS = 1024  # IOV_MAX of Linux and macOS
TRUNCATE_STEP_BYTES = 8 * 1024 * 1024
TRUNCATE_PAUSE_SECONDS = 0.01  # lets the flushes of others into the journal between two steps
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT}
_F_FULLFSYNC = 51  # macOS: fsync alone leaves the data in the drive's cache


class Disk(Protocol):
    """The calls of the kernel that the log uses. Handles are file descriptors."""

    def open(self, path: Path, *, write: bool = False, create: bool = False) -> int: ...
    def close(self, handle: int) -> None: ...
    def pread(self, handle: int, length_bytes: int, position: int) -> bytes: ...
    def pwritev(self, handle: int, buffers: Sequence[Buffer], position: int) -> int: ...
    def truncate(self, handle: int, length_bytes: int) -> None: ...
    def size(self, handle: int) -> int: ...
    def flush(self, handle: int) -> None: ...
    def lock(self, handle: int) -> bool: ...
    def flush_folder(self, path: Path) -> None: ...
    def flush_filesystem(self, path: Path) -> None: ...
    def rename(self, source: Path, target: Path) -> None: ...
    def unlink(self, path: Path) -> None: ...
    def list_folder(self, path: Path) -> list[str]: ...
    def make_folder(self, path: Path) -> None: ...
    def remove_folder(self, path: Path) -> None: ...
    def exists(self, path: Path) -> bool: ...
    def is_folder(self, path: Path) -> bool: ...
    def file_size(self, path: Path) -> int: ...
    def free_bytes(self, path: Path) -> int: ...
    def total_bytes(self, path: Path) -> int: ...
    def pause(self, seconds: float) -> None: ...


class RealDisk:
    """The operating system's disk."""

    def open(self, path: Path, *, write: bool = False, create: bool = False) -> int:
        flags = (os.O_RDWR if write else os.O_RDONLY) | (os.O_CREAT if create else 0)
        return os.open(path, flags | os.O_CLOEXEC, 0o640)

    def close(self, handle: int) -> None:
        os.close(handle)

    def pread(self, handle: int, length_bytes: int, position: int) -> bytes:
        return os.pread(handle, length_bytes, position)

    def pwritev(self, handle: int, buffers: Sequence[Buffer], position: int) -> int:
        if hasattr(os, "pwritev"):
            return os.pwritev(handle, buffers, position)
        # macOS: one thread writes a file and readers use pread, so the file's own position is ours.
        os.lseek(handle, position, os.SEEK_SET)
        return os.writev(handle, buffers)

    def truncate(self, handle: int, length_bytes: int) -> None:
        os.ftruncate(handle, length_bytes)

    def size(self, handle: int) -> int:
        return os.fstat(handle).st_size

    def flush(self, handle: int) -> None:
        if sys.platform == "darwin":
            fcntl.fcntl(handle, _F_FULLFSYNC)
        else:
            os.fdatasync(handle)

    def lock(self, handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def flush_folder(self, path: Path) -> None:
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def flush_filesystem(self, path: Path) -> None:
        """Flush all files of the file system that holds `path` with one call (Linux syncfs)."""
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            libc = ctypes.CDLL(None, use_errno=True)  # Python has no os.syncfs
            if libc.syncfs(handle) != 0:
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number), str(path))
        finally:
            os.close(handle)

    def rename(self, source: Path, target: Path) -> None:
        source.rename(target)

    def unlink(self, path: Path) -> None:
        path.unlink()

    def list_folder(self, path: Path) -> list[str]:
        return sorted(os.listdir(path))  # noqa: PTH208 - names, not paths

    def make_folder(self, path: Path) -> None:
        path.mkdir(mode=0o750)

    def remove_folder(self, path: Path) -> None:
        path.rmdir()

    def exists(self, path: Path) -> bool:
        return path.exists()

    def is_folder(self, path: Path) -> bool:
        return path.is_dir()

    def file_size(self, path: Path) -> int:
        return path.stat().st_size

    def free_bytes(self, path: Path) -> int:
        status = os.statvfs(path)
        return status.f_bavail * status.f_frsize

    def total_bytes(self, path: Path) -> int:
        status = os.statvfs(path)
        return status.f_blocks * status.f_frsize

    def pause(self, seconds: float) -> None:
        threading.Event().wait(seconds)


@contextlib.contextmanager
def storage_errors(what: str) -> Iterator[None]:
    """Translate the kernel's refusal of `what`: no room can pass, anything else is the end."""
    try:
        yield
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise StorageFull(f"{what}: {error.strerror}") from error
        raise StorageFailed(f"{what}: {error}") from error


class AppendFile:
    """A file that only grows, written by one thread. `end` is the end of the last whole append."""

    def __init__(self, disk: Disk, path: Path, *, create: bool = False) -> None:
        self.path = path
        self._disk = disk
        with storage_errors(f"open {path}"):
            self._handle = disk.open(path, write=True, create=create)
            self.end = disk.size(self._handle)
        self.has_failed = False

    def file_descriptor(self) -> int:
        return self._handle

    def append(self, buffers: Sequence[Buffer]) -> None:
        """Write all of `buffers` or nothing: a failed write is cut back before it is reported."""
        self._refuse_after_failure()
        end = self.end
        try:
            for first in range(0, len(buffers), MAX_BUFFERS):
                end = self._write(buffers[first : first + MAX_BUFFERS], end)
        except OSError as error:
            self._cut_back(error)
            if error.errno in _NO_ROOM:
                raise StorageFull(f"append to {self.path}: {error.strerror}") from error
            self.has_failed = True
            raise StorageFailed(f"append to {self.path}: {error}") from error
        self.end = end

    def flush(self) -> None:
        """Make all appends last. Never tried twice: a kernel forgets pages it could not write."""
        self._refuse_after_failure()
        try:
            self._disk.flush(self._handle)
        except OSError as error:
            self.has_failed = True
            raise StorageFailed(f"flush {self.path}: {error}") from error

    def truncate(self, length_bytes: int) -> None:
        with storage_errors(f"truncate {self.path}"):
            self._disk.truncate(self._handle, length_bytes)
        self.end = length_bytes

    def close(self) -> None:
        with storage_errors(f"close {self.path}"):
            self._disk.close(self._handle)

    def _write(self, buffers: Sequence[Buffer], end: int) -> int:
        pending = [memoryview(buffer) for buffer in buffers if len(buffer)]
        while pending:
            written = self._disk.pwritev(self._handle, pending, end)
            if written == 0:  # POSIX allows it, and it would loop for ever
                raise OSError(errno.EIO, "the disk took no byte", str(self.path))
            end += written
            pending = _after(pending, written)
        return end

    def _cut_back(self, cause: OSError) -> None:
        try:
            self._disk.truncate(self._handle, self.end)
        except OSError as error:
            self.has_failed = True
            raise StorageFailed(
                f"cut {self.path} back to {self.end} after {cause}: {error}"
            ) from error

    def _refuse_after_failure(self) -> None:
        if self.has_failed:
            raise StorageFailed(f"{self.path} failed before; what it holds is unknown")


def _after(buffers: list[memoryview], written_bytes: int) -> list[memoryview]:
    """What is left of `buffers` when the kernel took the first `written_bytes` of them."""
    for number, buffer in enumerate(buffers):
        if written_bytes < len(buffer):
            return [buffer[written_bytes:], *buffers[number + 1 :]]
        written_bytes -= len(buffer)
    return []


class ReadFile:
    """A file open for reading; a context manager. Errors of reading are StorageFailed."""

    def __init__(self, disk: Disk, path: Path) -> None:
        self.path = path
        self._disk = disk
        self._handle = disk.open(path)  # FileNotFoundError is the caller's business

    def __enter__(self) -> "ReadFile":
        return self

    def __exit__(self, *_: object) -> None:
        self._disk.close(self._handle)

    def size(self) -> int:
        return self._disk.size(self._handle)

    def read(self, length_bytes: int, position: int) -> bytes:
        """Read up to `length_bytes`; less only at the end of the file."""
        with storage_errors(f"read {self.path}"):
            block = self._disk.pread(self._handle, length_bytes, position)
            if len(block) == length_bytes or not block:
                return block
            parts = [block]
            missing = length_bytes - len(block)
            while missing and (
                block := self._disk.pread(self._handle, missing, position + length_bytes - missing)
            ):
                parts.append(block)
                missing -= len(block)
            return b"".join(parts)


def read_file(disk: Disk, path: Path, limit_bytes: int = 64 * 1024 * 1024) -> bytes | None:
    """Load a small file whole; None when there is none."""
    try:
        with ReadFile(disk, path) as file:
            return file.read(min(file.size(), limit_bytes), 0)
    except FileNotFoundError:
        return None


def replace_file(disk: Disk, path: Path, content: Buffer, *, durable: bool = True) -> None:
    """Write `path` anew so that a crash leaves the old content or the new, never a part.

    Temp file, flush, rename, flush of the folder. Caches pass `durable=False`: a crash may garble
    them, and they are rebuilt.
    """
    temporary = path.with_name(path.name + ".tmp")
    file = AppendFile(disk, temporary, create=True)
    try:
        file.truncate(0)
        file.append([content])
        if durable:
            file.flush()
    finally:
        file.close()
    with storage_errors(f"replace {path}"):
        disk.rename(temporary, path)
        if durable:
            disk.flush_folder(path.parent)


def remove_file(disk: Disk, path: Path, *, is_paced: bool = False) -> None:
    """Unlink, after giving the blocks back in steps: one big unlink stalls the file system.

    Paced where others write meanwhile. A file that is gone already is no failure.
    """
    try:
        with storage_errors(f"remove {path}"):
            if disk.file_size(path) > TRUNCATE_STEP_BYTES:
                empty_file(disk, path, is_paced=is_paced)
            disk.unlink(path)
    except StorageFailed as error:
        if not isinstance(error.__cause__, FileNotFoundError):
            raise


def empty_file(disk: Disk, path: Path, *, is_paced: bool = False) -> None:
    """Give a file's blocks back in steps, and keep its name."""
    file = AppendFile(disk, path)
    try:
        for length_bytes in range(
            (file.end - 1) // TRUNCATE_STEP_BYTES * TRUNCATE_STEP_BYTES, -1, -TRUNCATE_STEP_BYTES
        ):
            file.truncate(length_bytes)
            if is_paced:
                disk.pause(TRUNCATE_PAUSE_SECONDS)
    finally:
        file.close()


def make_folders(disk: Disk, path: Path) -> None:
    """Create `path` and what is missing above it, each name durable.

    Also when it exists: whoever created it may have died before its name was durable. Above that,
    names were durable before anything was created below them.
    """
    with storage_errors(f"create {path}"):
        if disk.is_folder(path):
            with contextlib.suppress(PermissionError):  # a mount point below a closed folder
                disk.flush_folder(path.parent)
            return
        make_folders(disk, path.parent)
        with contextlib.suppress(FileExistsError):
            disk.make_folder(path)
        disk.flush_folder(path.parent)
