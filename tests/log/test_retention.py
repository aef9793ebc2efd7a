"""Letting go of old segments: what goes, in which order, what readers and crashes see of it."""

import contextlib
import errno
from pathlib import Path

import pytest

from ibrik_log.batch import encode
from ibrik_log.checkpoint import SegmentSummary, decode_checkpoint
from ibrik_log.errors import OffsetOutOfRange, StorageFailed
from ibrik_log.log import Log, LogConfig
from ibrik_log.record import Record
from ibrik_log.retention import count_expired
from tests.log.logs import (
    FOLDER,
    NOW_MS,
    REAL,
    SMALL,
    batch_of,
    fill,
    offsets,
    read_all,
    reopen,
    simulated,
)
from tests.simulation.disk import PowerLoss

SEGMENTS = [
    SegmentSummary(n * 10, n * 10 + 10, 100, 1000 * n + 1, 1000 * n + 999) for n in range(5)
]


def expired(**kwargs: int | None) -> int:
    values: dict[str, int | None] = {
        "now_ms": 5000,
        "retention_ms": None,
        "retention_bytes": None,
        **kwargs,
    }
    return count_expired(SEGMENTS, 50, **values)  # type: ignore[arg-type]


def test_without_limits_nothing_goes() -> None:
    assert expired() == 0


@pytest.mark.parametrize(
    ("retention_ms", "count"), [(0, 5), (1, 4 + 1), (1001, 4), (4001, 0 + 1), (4002, 0)]
)
def test_a_segment_goes_when_all_of_it_is_too_old(retention_ms: int, count: int) -> None:
    last_times = [segment.last_append_ms for segment in SEGMENTS]
    assert expired(retention_ms=retention_ms) == sum(t < 5000 - retention_ms for t in last_times)
    assert expired(retention_ms=retention_ms) <= count


@pytest.mark.parametrize(
    ("retention_bytes", "count"),
    [(0, 5), (50, 5), (51, 4), (150, 4), (450, 1), (451, 0), (9999, 0)],
)
def test_at_least_the_retained_bytes_stay(retention_bytes: int, count: int) -> None:
    assert expired(retention_bytes=retention_bytes) == count


def test_what_is_still_needed_stays() -> None:
    assert expired(retention_bytes=0, keep_from=25) == 2
    assert expired(retention_bytes=0, keep_from=0) == 0


def test_an_old_segment_behind_a_young_one_stays() -> None:
    odd = [SEGMENTS[4], SEGMENTS[0]]
    assert count_expired(odd, 0, now_ms=3000, retention_ms=10, retention_bytes=None) == 0


def test_a_segment_without_a_readable_frame_is_not_old() -> None:
    damaged = [SegmentSummary(0, 10, 100, 0, 0)]
    assert count_expired(damaged, 0, now_ms=9000, retention_ms=1, retention_bytes=None) == 0


def test_retention_deletes_whole_sealed_segments_and_never_the_active_one() -> None:
    disk, log = simulated(LogConfig(segment_bytes=400, retention_ms=10), frames=30)
    assert log.apply_retention(NOW_MS + 1_000_000) == log.segments[0].base_offset
    assert len(log.segments) == 1
    assert log.segments[0].base_offset > 0
    assert [n for n in disk.list_folder(FOLDER) if n.endswith((".log", ".deleted"))] == [
        f"{log.start_offset:020d}.log"
    ]
    assert offsets(read_all(log)) == list(range(log.start_offset, 60))
    with pytest.raises(OffsetOutOfRange):
        log.read(0, 1000, 60)


def test_retention_by_bytes_counts_every_byte_once() -> None:
    _, log = simulated(LogConfig(segment_bytes=400, retention_bytes=1000), frames=30)
    log.apply_retention(NOW_MS)
    assert 1000 <= log.size_bytes < 1000 + log.segments[0].size_bytes
    size_bytes = log.size_bytes
    log.apply_retention(NOW_MS)
    assert log.size_bytes == size_bytes


def test_a_producers_clock_pins_and_expires_nothing() -> None:
    """Retention looks at append times, whatever time the producer wrote into its batch."""

    _, log = simulated(LogConfig(segment_bytes=100, retention_ms=1000))
    for timestamp_ms in (NOW_MS * 2, 0):
        log.append([encode([Record(None, bytes(60))], timestamp_ms=timestamp_ms)], NOW_MS)
    log.append([batch_of(b"x")], NOW_MS + 1)
    assert log.apply_retention(NOW_MS + 900) == 0
    assert log.apply_retention(NOW_MS + 1001) == 2


def test_the_new_start_is_durable_before_a_segment_is_renamed_and_unlinked() -> None:
    disk, log = simulated(frames=30)
    disk.calls.clear()
    log.truncate_before(20)
    calls = [call for call in disk.calls if call[0] in {"rename", "unlink", "flush_folder"}]
    checkpoint = calls.index(("rename", "checkpoint.tmp"))
    renames = [n for n, call in enumerate(calls) if call[0] == "rename" and ".log" in call[1]]
    unlinks = [n for n, call in enumerate(calls) if call[0] == "unlink" and "deleted" in call[1]]
    assert calls[checkpoint + 1] == ("flush_folder", "0")
    assert checkpoint + 1 < min(renames) < max(renames) < min(unlinks)
    assert ("flush_folder", "0") in calls[max(renames) : min(unlinks)]


def test_a_purge_moves_the_start_into_a_segment_and_stays_after_a_restart() -> None:
    disk, log = simulated(frames=10)
    assert log.truncate_before(7) == 7
    assert log.truncate_before(3) == 7
    assert offsets(read_all(log)) == list(range(7, 20))
    assert offsets(read_all(reopen(disk))) == list(range(7, 20))
    assert log.truncate_before(1000) == 20
    again = reopen(disk)
    assert (again.start_offset, again.end_offset) == (20, 20)
    fill(again, 1)
    assert offsets(read_all(reopen(disk))) == [20, 21]


def test_a_segment_in_use_is_unlinked_after_its_last_reader() -> None:
    disk, log = simulated(frames=30)
    segment = log._segments[0]
    deleted = FOLDER / f"{0:020d}.log.deleted"
    with log._deletion.pinned(segment) as is_there:
        assert is_there
        log.truncate_before(20)
        assert len(disk.content(deleted)) == segment.size_bytes
    log.apply_retention(NOW_MS)
    assert not disk.exists(deleted)
    with log._deletion.pinned(segment) as is_there:
        assert not is_there


def test_a_reader_that_loses_its_segment_is_told_the_new_start() -> None:
    """Retention runs between the choice of the segment and the opening of its file."""
    _, log = simulated(frames=30)
    segment = log._segments[0]
    log.truncate_before(20)
    with pytest.raises(OffsetOutOfRange) as error:
        log._read_segment(segment, 0, 1000, 60)
    assert error.value.earliest == 20


@pytest.mark.parametrize("crash_at", range(1, 45))
def test_a_crash_in_the_middle_of_a_deletion_leaves_one_start_or_the_other(crash_at: int) -> None:
    for seed in range(5):
        disk, log = simulated(frames=15, seed=seed)
        disk.crash_at = disk.operations + crash_at
        try:
            log.truncate_before(20)
            starts = {20}
        except PowerLoss:
            starts = {0, 20}
        disk.lose_power()
        again = reopen(disk)
        assert again.start_offset in starts
        assert offsets(read_all(again)) == list(range(again.start_offset, 30))
        assert again.damaged == []
        assert not [n for n in disk.list_folder(FOLDER) if n.endswith(".deleted")]


def test_retention_makes_room_on_a_disk_without_a_free_byte() -> None:
    disk, log = simulated(frames=30)
    disk.capacity_bytes = disk.used_bytes()
    assert log.truncate_before(20) == 20
    assert disk.free_bytes(FOLDER) > 0
    again = reopen(disk)
    assert again.start_offset == 20
    assert not [n for n in disk.list_folder(FOLDER) if n.endswith(".deleted")]
    fill(again, 1)


@pytest.mark.parametrize("crash_at", range(1, 40))
def test_a_crash_during_retention_on_a_full_disk_loses_nothing_else(crash_at: int) -> None:
    for seed in range(5):
        disk, log = simulated(frames=15, seed=seed)
        disk.capacity_bytes = disk.used_bytes()
        disk.crash_at = disk.operations + crash_at
        with contextlib.suppress(PowerLoss):
            log.truncate_before(20)
        disk.lose_power()
        again = reopen(disk)
        assert again.damaged == []
        assert offsets(read_all(again))[-10:] == list(range(20, 30))


def test_a_deletion_that_fails_is_a_storage_failure() -> None:
    disk, log = simulated(frames=30)
    disk.fail("rename", errno.EIO, number=2)
    with pytest.raises(StorageFailed):
        log.truncate_before(20)


def test_an_old_active_segment_is_rolled_by_the_writer_and_then_deleted() -> None:
    _, log = simulated(LogConfig(segment_ms=1000, retention_ms=5000), frames=3)
    assert log.apply_retention(NOW_MS + 10_000) == 0
    assert log.is_roll_due(NOW_MS + 10_000)
    log.roll(NOW_MS + 10_000)
    assert log.apply_retention(NOW_MS + 10_000) == 6
    assert (log.start_offset, log.end_offset) == (6, 6)


def test_a_deletion_on_the_real_disk_leaves_no_file(tmp_path: Path) -> None:
    log = Log.open(REAL, tmp_path / "0", SMALL)
    fill(log, 30)
    log.truncate_before(60)
    log.close()
    assert sorted(p.suffix for p in (tmp_path / "0").iterdir() if p.stem.isdecimal()) == [
        ".index",
        ".log",
        ".timeindex",
    ]
    assert decode_checkpoint((tmp_path / "0/checkpoint").read_bytes()).start_offset == 60


def test_a_leftover_below_the_start_is_removed_by_the_next_start() -> None:
    disk, log = simulated(frames=15)
    content = bytes(disk.content(FOLDER / f"{0:020d}.log"))
    log.truncate_before(20)
    log.close()
    handle = disk.open(FOLDER / f"{0:020d}.log", write=True, create=True)
    disk.pwritev(handle, [content], 0)
    again = reopen(disk)
    assert again.start_offset == 20
    assert not disk.exists(FOLDER / f"{0:020d}.log")
