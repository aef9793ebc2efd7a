"""A disk in memory that can lose power: the twin of `ibrik_log.files.RealDisk`.

It keeps what is durable and what is only in the cache apart, for each sector of each file and for
each entry of each folder. A power loss keeps any subset of what was not flushed, in any order: torn
and reordered writes, sizes without data, names without files. Faults are injected at chosen
operations.
"""

import errno
import os
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

SECTOR_BYTES = 512
Buffer = bytes | bytearray | memoryview


class PowerLoss(BaseException):
    """Raised by every operation from the crash on; no program catches a power loss."""


@dataclass(eq=False)
class SimulatedFile:
    """Cached content, durable content, and every version a sector had since the last flush."""

    content: bytearray = field(default_factory=bytearray)
    durable: bytes = b""
    versions: dict[int, list[bytes]] = field(default_factory=dict)
    sizes: list[int] = field(default_factory=list)
    locked_by: int | None = None

    def write(self, buffer: Buffer, position: int) -> None:
        if position > len(self.content):
            self.content.extend(bytes(position - len(self.content)))
        self.content[position : position + len(buffer)] = buffer
        first, last = position // SECTOR_BYTES, (position + len(buffer) - 1) // SECTOR_BYTES
        for sector in range(first, last + 1):
            version = bytes(self.content[sector * SECTOR_BYTES : (sector + 1) * SECTOR_BYTES])
            self.versions.setdefault(sector, []).append(version)
        self.sizes.append(len(self.content))

    def truncate(self, length_bytes: int) -> None:
        del self.content[length_bytes:]
        self.content.extend(bytes(length_bytes - len(self.content)))
        self.sizes.append(length_bytes)

    def flush(self) -> None:
        if self.sizes:
            self.durable = bytes(self.content)
            self.versions.clear()
            self.sizes.clear()

    def lose_power(self, chance: random.Random) -> None:
        if self.sizes:
            size = chance.choice([len(self.durable), self.sizes[-1], *self.sizes])
            kept = bytearray(self.durable[:size].ljust(size, b"\0"))
            for sector, versions in self.versions.items():
                version = chance.choice([None, *versions[-3:]])
                if version is not None:
                    at = sector * SECTOR_BYTES
                    kept[at : at + len(version)] = version
            self.content = kept[:size]
        self.flush()
        self.locked_by = None


@dataclass(eq=False)
class SimulatedFolder:
    """Names in the cache, durable names, and the changes between them."""

    entries: dict[str, "SimulatedFile | SimulatedFolder"] = field(default_factory=dict)
    durable: dict[str, "SimulatedFile | SimulatedFolder"] = field(default_factory=dict)
    changes: list[dict[str, "SimulatedFile | SimulatedFolder | None"]] = field(default_factory=list)

    def change(self, **changed: "SimulatedFile | SimulatedFolder | None") -> None:
        """Change names together; None removes. Durable together, or not at all."""
        _apply(self.entries, changed)
        self.changes.append(changed)

    def flush(self) -> None:
        self.durable = dict(self.entries)
        self.changes.clear()

    def lose_power(self, chance: random.Random) -> None:
        for change in self.changes:
            if chance.random() < 0.5:
                _apply(self.durable, change)
        self.entries = dict(self.durable)
        self.changes.clear()
        for entry in self.entries.values():
            entry.lose_power(chance)


def _apply(
    entries: dict[str, SimulatedFile | SimulatedFolder],
    changed: dict[str, SimulatedFile | SimulatedFolder | None],
) -> None:
    for name, entry in changed.items():
        if entry is None:
            entries.pop(name, None)
        else:
            entries[name] = entry


@dataclass
class Fault:
    """Fail the `number`-th call of `operation` from now on (counted from 0) with `code`."""

    operation: str
    number: int
    code: int


class SimulatedDisk:
    """Implements `ibrik_log.files.Disk`. Every change counts as one operation."""

    def __init__(self, seed: int = 0, *, capacity_bytes: int = 1 << 40) -> None:
        self.chance = random.Random(seed)
        self.capacity_bytes = capacity_bytes
        self.operations = 0
        self.crash_at: int | None = None
        self.has_crashed = False
        self.faults: list[Fault] = []
        self.calls: list[tuple[str, str]] = []
        self.write_limits: list[int] = []  # how many bytes the next writes take at most
        self.before_flush: Callable[[], None] | None = None  # a slow flush: what happens meanwhile
        self._root = SimulatedFolder()
        self._handles: dict[int, tuple[SimulatedFile, Path]] = {}
        self._next_handle = 1000

    # --- control ------------------------------------------------------------------------------

    def fail(self, operation: str, code: int, *, number: int = 0) -> None:
        self.faults.append(Fault(operation, number, code))

    def lose_power(self) -> None:
        """Keep what is durable and a random part of the rest; all handles are gone."""
        self._root.lose_power(self.chance)
        self.kill()

    def kill(self) -> None:
        """The process ends, the machine goes on: the cache survives, handles and locks do not."""
        for file, _ in self._handles.values():
            file.locked_by = None
        self._handles.clear()
        self.faults.clear()
        self.write_limits.clear()
        self.crash_at = None
        self.has_crashed = False

    def content(self, path: Path) -> bytearray:
        """The cached bytes of a file, to look at or to damage."""
        return self._file(path).content

    def damage(self, path: Path, content: bytes) -> None:
        """Replace a file's bytes, durably, behind the program's back."""
        file = self._file(path)
        file.content = bytearray(content)
        file.durable = bytes(content)
        file.versions.clear()
        file.sizes.clear()

    def used_bytes(self) -> int:
        return _used_bytes(self._root)

    # --- the protocol -------------------------------------------------------------------------

    def open(self, path: Path, *, write: bool = False, create: bool = False) -> int:
        self._check("open", path)
        folder = self._folder(path.parent)
        entry = folder.entries.get(path.name)
        if entry is None and create:
            self._change("create", path)
            if self.used_bytes() >= self.capacity_bytes:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
            entry = SimulatedFile()
            folder.change(**{path.name: entry})
        if not isinstance(entry, SimulatedFile):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        self._next_handle += 1
        self._handles[self._next_handle] = (entry, path)
        return self._next_handle

    def close(self, handle: int) -> None:
        file, _ = self._handles.pop(handle, (None, None))
        if file is not None and file.locked_by == handle:
            file.locked_by = None

    def pread(self, handle: int, length_bytes: int, position: int) -> bytes:
        file, path = self._handles[handle]
        self._check("pread", path)
        return bytes(file.content[position : position + length_bytes])

    def pwritev(self, handle: int, buffers: Sequence[Buffer], position: int) -> int:
        file, path = self._handles[handle]
        content = b"".join(buffers)
        room = self.capacity_bytes - self.used_bytes()
        if self.write_limits:
            content = content[: self.write_limits.pop(0)]
        if self._is_last_operation():
            file.write(content[: self.chance.randint(0, len(content))], position)
        self._change("pwritev", path)
        if room <= 0 and content:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        content = content[:room]
        if content:
            file.write(content, position)
        return len(content)

    def truncate(self, handle: int, length_bytes: int) -> None:
        file, path = self._handles[handle]
        self._change("truncate", path)
        file.truncate(length_bytes)

    def size(self, handle: int) -> int:
        return len(self._handles[handle][0].content)

    def flush(self, handle: int) -> None:
        file, path = self._handles[handle]
        if self.before_flush is not None:
            self.before_flush()
        self._change("flush", path)
        file.flush()

    def lock(self, handle: int) -> bool:
        file, _ = self._handles[handle]
        if file.locked_by not in {None, handle}:
            return False
        file.locked_by = handle
        return True

    def flush_folder(self, path: Path) -> None:
        self._change("flush_folder", path)
        self._folder(path).flush()

    def flush_filesystem(self, path: Path) -> None:
        self._change("flush_filesystem", path)
        _flush_all(self._root)

    def rename(self, source: Path, target: Path) -> None:
        self._change("rename", source)
        assert source.parent == target.parent, "we only rename inside a folder"
        folder = self._folder(source.parent)
        if source.name not in folder.entries:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(source))
        folder.change(**{source.name: None, target.name: folder.entries[source.name]})

    def unlink(self, path: Path) -> None:
        self._change("unlink", path)
        self._file(path)
        self._folder(path.parent).change(**{path.name: None})

    def list_folder(self, path: Path) -> list[str]:
        self._check("list_folder", path)
        return sorted(self._folder(path).entries)

    def make_folder(self, path: Path) -> None:
        self._change("make_folder", path)
        parent = self._folder(path.parent)
        if path.name in parent.entries:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
        parent.change(**{path.name: SimulatedFolder()})

    def remove_folder(self, path: Path) -> None:
        self._change("remove_folder", path)
        if self._folder(path).entries:
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), str(path))
        self._folder(path.parent).change(**{path.name: None})

    def exists(self, path: Path) -> bool:
        return self._find(path) is not None

    def is_folder(self, path: Path) -> bool:
        return isinstance(self._find(path), SimulatedFolder)

    def file_size(self, path: Path) -> int:
        return len(self._file(path).content)

    def pause(self, seconds: float) -> None:
        """Time does not pass here."""
        self.calls.append(("pause", f"{seconds}"))

    def free_bytes(self, path: Path) -> int:
        return max(self.capacity_bytes - self.used_bytes(), 0)

    def total_bytes(self, path: Path) -> int:
        return self.capacity_bytes

    # --- inside -------------------------------------------------------------------------------

    def _is_last_operation(self) -> bool:
        return self.operations + 1 == self.crash_at

    def _change(self, operation: str, path: Path) -> None:
        self.operations += 1
        if self.operations == self.crash_at:
            self.has_crashed = True
        self._check(operation, path)

    def _check(self, operation: str, path: Path) -> None:
        if self.has_crashed:
            raise PowerLoss(operation)
        self.calls.append((operation, path.name))
        for fault in self.faults:
            if fault.operation == operation:
                fault.number -= 1
                if fault.number < 0:
                    self.faults.remove(fault)
                    raise OSError(fault.code, os.strerror(fault.code), str(path))

    def _find(self, path: Path) -> SimulatedFile | SimulatedFolder | None:
        entry: SimulatedFile | SimulatedFolder | None = self._root
        for part in path.parts[1:]:
            entry = entry.entries.get(part) if isinstance(entry, SimulatedFolder) else None
        return entry

    def _folder(self, path: Path) -> SimulatedFolder:
        entry = self._find(path)
        if not isinstance(entry, SimulatedFolder):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        return entry

    def _file(self, path: Path) -> SimulatedFile:
        entry = self._find(path)
        if not isinstance(entry, SimulatedFile):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        return entry


def _used_bytes(entry: SimulatedFile | SimulatedFolder) -> int:
    if isinstance(entry, SimulatedFile):
        return len(entry.content)
    return sum(map(_used_bytes, entry.entries.values()))


def _flush_all(entry: SimulatedFile | SimulatedFolder) -> None:
    entry.flush()
    if isinstance(entry, SimulatedFolder):
        for child in entry.entries.values():
            _flush_all(child)
