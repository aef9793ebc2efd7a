"""The door to the disk: short writes, write errors, flush errors, replaced and removed files."""

import errno
import os
from pathlib import Path

import pytest

from ibrik_log.errors import StorageFailed, StorageFull
from ibrik_log.files import (
    TRUNCATE_STEP_BYTES,
    AppendFile,
    ReadFile,
    RealDisk,
    empty_file,
    make_folders,
    read_file,
    remove_file,
    replace_file,
)
from tests.simulation.disk import PowerLoss, SimulatedDisk

PATH = Path("/file")


def opened(**kwargs: int) -> tuple[SimulatedDisk, AppendFile]:
    disk = SimulatedDisk(**kwargs)
    return disk, AppendFile(disk, PATH, create=True)


@pytest.mark.parametrize("first", range(1, 12))
def test_a_short_write_of_any_size_is_completed(first: int) -> None:
    disk, file = opened()
    disk.write_limits = [first, 1, 2]
    file.append([b"abc", b"", b"defgh", b"ijkl"])
    assert disk.content(PATH) == b"abcdefghijkl"
    assert file.end == 12


@pytest.mark.parametrize("taken", range(12))
def test_a_write_that_fails_midway_is_cut_back_to_the_last_good_end(taken: int) -> None:
    disk, file = opened()
    file.append([b"good"])
    disk.write_limits = [taken] if taken else []
    disk.fail("pwritev", errno.ENOSPC, number=1 if taken else 0)
    with pytest.raises(StorageFull):
        file.append([b"abcdef", b"ghijkl"])
    assert disk.content(PATH) == b"good"
    file.append([b" again"])
    assert disk.content(PATH) == b"good again"


def test_a_disk_that_is_full_in_the_middle_keeps_nothing_of_the_write() -> None:
    disk, file = opened(capacity_bytes=10)
    with pytest.raises(StorageFull):
        file.append([b"12345", b"67890", b"!"])
    assert disk.content(PATH) == b""


def test_a_write_error_is_the_end_of_the_file() -> None:
    disk, file = opened()
    disk.fail("pwritev", errno.EIO)
    with pytest.raises(StorageFailed):
        file.append([b"x"])
    with pytest.raises(StorageFailed, match="before"):
        file.append([b"y"])
    with pytest.raises(StorageFailed, match="before"):
        file.flush()


def test_a_failed_cut_is_worse_than_a_full_disk() -> None:
    disk, file = opened()
    disk.fail("pwritev", errno.ENOSPC)
    disk.fail("truncate", errno.EIO)
    with pytest.raises(StorageFailed, match="cut"):
        file.append([b"x"])
    assert file.has_failed


def test_a_disk_that_takes_no_byte_does_not_loop() -> None:
    disk, file = opened()
    disk.write_limits = [0]
    with pytest.raises(StorageFailed, match="no byte"):
        file.append([b"x"])


def test_a_failed_flush_is_never_tried_again() -> None:
    disk, file = opened()
    file.append([b"x"])
    disk.fail("flush", errno.EIO)
    with pytest.raises(StorageFailed):
        file.flush()
    flushes = disk.calls.count(("flush", "file"))
    with pytest.raises(StorageFailed, match="before"):
        file.flush()
    assert disk.calls.count(("flush", "file")) == flushes


def test_a_full_disk_at_a_flush_is_a_failure_too() -> None:
    disk, file = opened()
    file.append([b"x"])
    disk.fail("flush", errno.ENOSPC)
    with pytest.raises(StorageFailed):
        file.flush()


def test_more_buffers_than_one_call_takes_are_all_written(tmp_path: Path) -> None:
    file = AppendFile(RealDisk(), tmp_path / "file", create=True)
    file.append([b"%04d" % number for number in range(3000)])
    file.flush()
    file.close()
    assert (tmp_path / "file").read_bytes() == b"".join(b"%04d" % n for n in range(3000))


def test_appending_goes_on_behind_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    file = AppendFile(RealDisk(), tmp_path / "file")
    file.append([b"def"])
    file.truncate(4)
    file.append([b"!"])
    file.close()
    assert (tmp_path / "file").read_bytes() == b"abcd!"


@pytest.mark.parametrize("crash_at", range(1, 9))
def test_a_replaced_file_is_the_old_one_or_the_new_one(crash_at: int) -> None:
    for seed in range(20):
        disk = SimulatedDisk(seed)
        replace_file(disk, PATH, b"old" * 300)
        disk.crash_at = disk.operations + crash_at
        try:
            replace_file(disk, PATH, b"new" * 400)
            is_done = True
        except PowerLoss:
            is_done = False
        disk.lose_power()
        content = read_file(disk, PATH)
        assert content in ({b"new" * 400} if is_done else {b"old" * 300, b"new" * 400})


def test_a_leftover_of_a_replacement_is_overwritten() -> None:
    disk = SimulatedDisk()
    AppendFile(disk, Path("/file.tmp"), create=True).append([b"a long leftover"])
    replace_file(disk, PATH, b"new")
    assert read_file(disk, PATH) == b"new"


def test_a_full_disk_leaves_the_old_file() -> None:
    disk = SimulatedDisk(capacity_bytes=20)
    replace_file(disk, PATH, b"0123456789")
    with pytest.raises(StorageFull):
        replace_file(disk, PATH, b"0123456789ab")
    assert read_file(disk, PATH) == b"0123456789"


def test_removing_gives_a_large_file_back_in_steps(tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(3 * TRUNCATE_STEP_BYTES + 5)
    empty_file(RealDisk(), path)
    assert path.stat().st_size == 0
    with path.open("wb") as file:
        file.truncate(TRUNCATE_STEP_BYTES + 5)
    remove_file(RealDisk(), path)
    assert not path.exists()


@pytest.mark.parametrize(("is_paced", "pauses"), [(False, 0), (True, 3)])
def test_a_removal_goes_in_steps_and_lets_others_in_between(is_paced: bool, pauses: int) -> None:
    disk = SimulatedDisk()
    file = AppendFile(disk, PATH, create=True)
    file.truncate(2 * TRUNCATE_STEP_BYTES + 1)
    before = disk.calls.count(("truncate", "file"))
    empty_file(disk, PATH, is_paced=is_paced)
    assert disk.calls.count(("truncate", "file")) - before == 3
    assert [name for name, _ in disk.calls].count("pause") == pauses


def test_removing_what_is_gone_is_no_failure(tmp_path: Path) -> None:
    remove_file(RealDisk(), tmp_path / "gone")
    disk = SimulatedDisk()
    AppendFile(disk, PATH, create=True)
    disk.fail("unlink", errno.EIO)
    with pytest.raises(StorageFailed):
        remove_file(disk, PATH)


def test_reading_past_the_end_is_short_and_errors_are_told() -> None:
    disk, file = opened()
    file.append([b"abc"])
    with ReadFile(disk, PATH) as reader:
        assert reader.read(10, 1) == b"bc"
        assert reader.read(10, 3) == b""
        disk.fail("pread", errno.EIO)
        with pytest.raises(StorageFailed):
            reader.read(1, 0)


def test_a_missing_small_file_is_none(tmp_path: Path) -> None:
    assert read_file(RealDisk(), tmp_path / "none") is None


def test_folders_are_made_with_all_above_them(tmp_path: Path) -> None:
    make_folders(RealDisk(), tmp_path / "a/b/c")
    make_folders(RealDisk(), tmp_path / "a/b/c")
    assert (tmp_path / "a/b/c").is_dir()


def test_the_real_disk_locks_lists_and_measures(tmp_path: Path) -> None:
    disk = RealDisk()
    first = disk.open(tmp_path / "lock", write=True, create=True)
    second = disk.open(tmp_path / "lock", write=True)
    assert disk.lock(first)
    assert not disk.lock(second)
    disk.close(first)
    assert disk.lock(second)
    disk.close(second)
    disk.make_folder(tmp_path / "folder")
    assert disk.list_folder(tmp_path) == ["folder", "lock"]
    assert disk.is_folder(tmp_path / "folder")
    disk.remove_folder(tmp_path / "folder")
    assert not disk.exists(tmp_path / "folder")
    assert disk.free_bytes(tmp_path) > 0
    disk.flush_filesystem(tmp_path)


def test_a_file_that_may_not_be_opened_is_a_storage_failure(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(StorageFailed):
        AppendFile(RealDisk(), tmp_path / "folder")


def test_a_real_short_read_is_completed(tmp_path: Path) -> None:
    class Stingy(RealDisk):
        def pread(self, handle: int, length_bytes: int, position: int) -> bytes:
            return os.pread(handle, min(length_bytes, 3), position)

    (tmp_path / "file").write_bytes(b"0123456789")
    with ReadFile(Stingy(), tmp_path / "file") as file:
        assert file.read(8, 1) == b"12345678"
        assert file.read(80, 1) == b"123456789"
