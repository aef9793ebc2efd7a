"""The simulated disk itself: it keeps what was flushed, and only some of the rest."""

import errno
from pathlib import Path

import pytest

from tests.simulation.disk import PowerLoss, SimulatedDisk

PATH = Path("/folder/file")


def disk_with_file(seed: int = 0) -> tuple[SimulatedDisk, int]:
    disk = SimulatedDisk(seed)
    disk.make_folder(PATH.parent)
    disk.flush_folder(Path("/"))
    handle = disk.open(PATH, write=True, create=True)
    disk.flush_folder(PATH.parent)
    return disk, handle


def test_flushed_bytes_survive_and_others_may() -> None:
    outcomes = set()
    for seed in range(300):
        disk, handle = disk_with_file(seed)
        disk.pwritev(handle, [b"a" * 512], 0)
        disk.flush(handle)
        disk.pwritev(handle, [b"b" * 512, b"c" * 512], 512)
        disk.lose_power()
        content = bytes(disk.content(PATH))
        assert content[:512] == b"a" * 512
        outcomes.add(content[512:])
    zeros, b, c = bytes(512), b"b" * 512, b"c" * 512
    # Lost, torn, reordered, a size without data, and all of it.
    assert {b"", zeros + zeros, b + zeros, zeros + c, b + c} <= outcomes


def test_an_overwritten_or_cut_part_may_come_back() -> None:
    outcomes = set()
    for seed in range(100):
        disk, handle = disk_with_file(seed)
        disk.pwritev(handle, [b"old"], 0)
        disk.flush(handle)
        disk.truncate(handle, 0)
        disk.pwritev(handle, [b"new"], 0)
        disk.lose_power()
        outcomes.add(bytes(disk.content(PATH)))
    assert {b"old", b"new", b""} <= outcomes


def test_names_survive_a_flush_of_their_folder_and_otherwise_may_not() -> None:
    names = set()
    for seed in range(50):
        disk, _ = disk_with_file(seed)
        disk.rename(PATH, PATH.with_name("renamed"))
        disk.open(PATH.with_name("other"), write=True, create=True)
        disk.lose_power()
        names.add(tuple(disk.list_folder(PATH.parent)))
    assert names == {("file",), ("renamed",), ("file", "other"), ("other", "renamed")}


def test_a_crash_comes_at_its_operation_and_stops_everything() -> None:
    disk, handle = disk_with_file()
    disk.crash_at = disk.operations + 2
    disk.pwritev(handle, [b"x"], 0)
    with pytest.raises(PowerLoss):
        disk.flush(handle)
    with pytest.raises(PowerLoss):
        disk.pread(handle, 1, 0)
    with pytest.raises(PowerLoss):
        disk.rename(PATH, PATH.with_name("renamed"))
    disk.close(handle)
    disk.lose_power()
    assert disk.list_folder(PATH.parent) == ["file"]


def test_a_kill_keeps_the_cache_and_frees_the_lock() -> None:
    disk, handle = disk_with_file()
    disk.pwritev(handle, [b"x"], 0)
    other = disk.open(PATH)
    assert disk.lock(handle)
    assert not disk.lock(other)
    disk.kill()
    assert disk.lock(disk.open(PATH))
    assert disk.content(PATH) == b"x"


def test_faults_come_when_they_are_asked_for_and_once() -> None:
    disk, handle = disk_with_file()
    disk.fail("flush", errno.EIO, number=1)
    disk.flush(handle)
    with pytest.raises(OSError, match="Input/output"):
        disk.flush(handle)
    disk.flush(handle)


def test_a_full_disk_takes_a_part_and_then_nothing() -> None:
    disk, handle = disk_with_file()
    disk.capacity_bytes = 3
    assert disk.pwritev(handle, [b"abcde"], 0) == 3
    with pytest.raises(OSError, match="No space"):
        disk.pwritev(handle, [b"de"], 3)
    assert disk.free_bytes(PATH) == 0


def test_the_whole_file_system_can_be_flushed() -> None:
    disk, handle = disk_with_file()
    disk.pwritev(handle, [b"abc"], 0)
    disk.open(PATH.with_name("other"), create=True)
    disk.flush_filesystem(Path("/"))
    disk.lose_power()
    assert disk.content(PATH) == b"abc"
    assert disk.exists(PATH.with_name("other"))


def test_the_kernels_refusals_are_the_same() -> None:
    disk, _ = disk_with_file()
    for refused in (
        lambda: disk.open(Path("/none")),
        lambda: disk.list_folder(Path("/none")),
        lambda: disk.unlink(Path("/folder/none")),
        lambda: disk.rename(Path("/folder/none"), Path("/folder/x")),
    ):
        with pytest.raises(FileNotFoundError):
            refused()
    with pytest.raises(FileExistsError):
        disk.make_folder(PATH.parent)
    with pytest.raises(OSError, match="not empty"):
        disk.remove_folder(PATH.parent)
