"""Errors of the disk under a log: no room, and the errors after which nothing is known any more."""

import errno

import pytest

from ibrik_log.errors import CorruptRange, StorageFailed, StorageFull
from ibrik_log.log import Log, LogConfig
from tests.log.logs import (
    FOLDER,
    NOW_MS,
    SMALL,
    fill,
    numbered,
    offsets,
    read_all,
    reopen,
    simulated,
)

LOG = FOLDER / f"{0:020d}.log"
CONFIG = LogConfig(index_interval_bytes=100)


@pytest.mark.parametrize("size", range(0, 160, 7))
def test_no_room_in_the_middle_of_a_frame_leaves_a_usable_log(size: int) -> None:
    disk, log = simulated(CONFIG, frames=3)
    disk.capacity_bytes = disk.used_bytes() + size
    with pytest.raises(StorageFull):
        log.append([numbered(6, 3), numbered(9, 3)], NOW_MS)
    assert log.end_offset == 6
    assert offsets(read_all(log)) == list(range(6))
    disk.capacity_bytes = 1 << 40
    assert log.append([numbered(6, 3)], NOW_MS) == 6
    log.flush()
    assert offsets(read_all(reopen(disk, CONFIG))) == list(range(9))


def test_no_room_for_the_next_segment_keeps_the_active_one() -> None:
    disk, log = simulated(frames=3)
    full = disk.used_bytes()
    disk.capacity_bytes = full
    with pytest.raises(StorageFull):
        log.roll(NOW_MS)
    with pytest.raises(StorageFull):
        fill(log, 10)
    assert len(log.segments) == 1
    disk.capacity_bytes = 1 << 40
    fill(log, 10)
    assert offsets(read_all(reopen(disk))) == list(range(26))


def test_no_room_for_a_name_leaves_no_empty_segment_behind() -> None:
    disk, log = simulated(frames=3)
    disk.fail("flush_folder", errno.ENOSPC)
    with pytest.raises(StorageFull):
        log.roll(NOW_MS)
    assert [n for n in disk.list_folder(FOLDER) if n.endswith(".log")] == [LOG.name]
    log.roll(NOW_MS)
    assert len(log.segments) == 2


@pytest.mark.parametrize("number", range(12))
def test_no_room_at_any_step_of_a_roll_loses_nothing(number: int) -> None:
    for operation in ("create", "pwritev", "truncate"):
        disk, log = simulated(frames=3)
        disk.fail(operation, errno.ENOSPC, number=number)
        for _ in range(4):
            try:
                fill(log, 2)
            except StorageFull:
                continue
        end = log.end_offset
        assert offsets(read_all(log)) == list(range(end))
        disk.faults.clear()
        log.close()
        again = reopen(disk)
        assert offsets(read_all(again)) == list(range(end))
        assert again.damaged == []


def test_nothing_counts_as_sealed_before_the_list_says_so() -> None:
    disk, log = simulated(LogConfig(), frames=3)
    log.append([numbered(6)], NOW_MS)
    for number in range(1, 8):  # after the next segment: all small files
        disk.fail("create", errno.ENOSPC, number=number)
    with pytest.raises(StorageFull, match="list of segments"):
        log.seal(NOW_MS)
    disk.faults.clear()
    assert log.seal(NOW_MS) == 7
    assert Log.open(disk, FOLDER, LogConfig(), read_only=True).sealed_offset == 7


def test_a_log_opens_reads_and_closes_on_a_full_disk() -> None:
    disk, log = simulated(frames=20)
    log.close()
    disk.damage(FOLDER / f"{log.segments[-1].base_offset:020d}.log", b"torn")
    disk.capacity_bytes = disk.used_bytes()
    disk.unlink(FOLDER / "epochs")
    disk.capacity_bytes = disk.used_bytes()
    again = reopen(disk)
    assert len(read_all(again)) > 30
    again.close()
    disk.capacity_bytes = 1 << 40
    fill(reopen(disk), 1)


def test_an_epoch_that_is_not_durable_writes_nothing() -> None:
    disk, log = simulated(CONFIG, frames=3)
    disk.capacity_bytes = disk.used_bytes()
    again = reopen(disk, CONFIG)
    disk.capacity_bytes = disk.used_bytes() + 10
    with pytest.raises(StorageFull, match="lineage"):
        again.append([numbered(6)], NOW_MS)
    disk.capacity_bytes = 1 << 40
    assert again.append([numbered(6)], NOW_MS) == log.end_offset
    again.flush()
    assert reopen(disk, CONFIG).lineage.entries[:2] == ((0, 0), (1, 6))


def test_a_clean_stop_without_room_leaves_no_marker() -> None:
    disk, log = simulated(frames=3)
    disk.capacity_bytes = disk.used_bytes()
    log.close()
    assert not disk.exists(FOLDER / "clean")
    assert offsets(read_all(reopen(disk))) == list(range(6))


@pytest.mark.parametrize("number", range(3))
def test_nothing_is_acknowledged_after_a_failed_flush(number: int) -> None:
    disk, log = simulated(CONFIG, frames=2)
    disk.fail("flush", errno.EIO, number=number)
    for _ in range(number):
        fill(log, 1)
    flushed = log.end_offset
    with pytest.raises(StorageFailed):
        fill(log, 1)
    flushes = disk.calls.count(("flush", LOG.name))
    for action in (lambda: log.append([numbered(99)], NOW_MS), log.flush, lambda: log.roll(NOW_MS)):
        with pytest.raises(StorageFailed):
            action()
    log.close()
    assert disk.calls.count(("flush", LOG.name)) == flushes
    assert not disk.exists(FOLDER / "clean")
    disk.lose_power()
    assert offsets(read_all(reopen(disk, CONFIG)))[:flushed] == list(range(flushed))


def test_a_write_error_ends_the_log_and_keeps_what_was_flushed() -> None:
    disk, log = simulated(CONFIG, frames=2)
    disk.fail("pwritev", errno.EIO)
    with pytest.raises(StorageFailed):
        fill(log, 1)
    with pytest.raises(StorageFailed):
        fill(log, 1)
    disk.lose_power()
    assert offsets(read_all(reopen(disk, CONFIG))) == list(range(4))


@pytest.mark.parametrize("operation", ["flush", "flush_folder", "rename", "truncate"])
@pytest.mark.parametrize("number", range(6))
def test_an_error_in_the_small_files_leaves_no_clean_marker(operation: str, number: int) -> None:
    disk, log = simulated(frames=3)
    disk.fail(operation, errno.EIO, number=number)
    try:
        fill(log, 6)
    except StorageFailed:
        log.close()
        assert not disk.exists(FOLDER / "clean")
    disk.kill()
    again = Log.open(disk, FOLDER, SMALL)
    assert offsets(read_all(again)) == list(range(again.end_offset))
    assert again.end_offset >= 6


@pytest.mark.parametrize("operation", ["open", "list_folder", "flush", "unlink", "flush_folder"])
def test_an_error_at_a_start_is_told_and_changes_nothing(operation: str) -> None:
    disk, log = simulated(frames=20)
    log.close()
    disk.kill()
    disk.fail(operation, errno.EIO)
    with pytest.raises(StorageFailed):
        Log.open(disk, FOLDER, SMALL)
    assert offsets(read_all(reopen(disk))) == list(range(40))


def test_a_sector_that_cannot_be_read_is_a_damaged_range_and_not_the_end() -> None:
    disk, log = simulated(frames=20)
    disk.fail("pread", errno.EIO)
    with pytest.raises(CorruptRange) as error:
        log.read(1, 1000, 40)
    assert (error.value.from_offset, error.value.to_offset) == (1, log.segments[0].next_offset)
    assert offsets(read_all(log)) == list(range(40))


def test_a_segment_file_that_somebody_took_away_is_a_damaged_range() -> None:
    disk, log = simulated(frames=20)
    disk.unlink(LOG)
    with pytest.raises(CorruptRange, match="missing"):
        log.read(0, 1000, 40)
    assert next(log.verify()).reason == "the file is missing"
    assert len(read_all(log)) == 40 - log.segments[0].next_offset


def test_a_slow_flush_lets_readers_and_retention_go_on() -> None:
    disk, log = simulated(frames=20)
    seen: list[int] = []

    def meanwhile() -> None:
        disk.before_flush = None
        seen.append(len(read_all(log)))
        log.truncate_before(10)

    log.append([numbered(40)], NOW_MS)
    disk.before_flush = meanwhile
    log.flush()
    assert seen == [41]
    assert log.start_offset == 10
