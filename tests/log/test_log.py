"""Appending, reading, rolling and asking one log, without accidents."""

import threading
from pathlib import Path

import pytest

from ibrik_log.batch import decode, encode, read_header
from ibrik_log.checkpoint import decode_sealed
from ibrik_log.errors import OffsetOutOfRange, StorageFailed
from ibrik_log.log import Log, LogConfig
from ibrik_log.record import Record
from tests.log.logs import (
    FOLDER,
    NOW_MS,
    REAL,
    SMALL,
    assert_values_fit,
    batch_of,
    fill,
    numbered,
    offsets,
    read_all,
    reopen,
    simulated,
)


def test_a_new_log_is_empty(tmp_path: Path) -> None:
    log = Log.open(REAL, tmp_path / "0", LogConfig())
    assert (log.start_offset, log.end_offset, log.size_bytes) == (0, 0, 0)
    assert log.read(0, 1000, 0) == []
    assert log.offset_for_timestamp(0) is None
    assert log.leader_epoch == 0
    assert log.append([], NOW_MS) == 0
    log.close()


def test_offsets_are_dense_over_batches_groups_and_segments(tmp_path: Path) -> None:
    log = Log.open(REAL, tmp_path / "0", SMALL)
    assert log.append([numbered(0, 3), numbered(3, 1)], NOW_MS) == 0
    assert log.append([numbered(4, 2)], NOW_MS) == 4
    fill(log, 20)
    records = read_all(log)
    assert offsets(records) == list(range(46))
    assert_values_fit(records)
    assert len(log.segments) > 5
    log.close()


def test_a_read_gives_whole_frames_from_the_one_with_the_offset() -> None:
    _, log = simulated(frames=4)
    frames = log.read(3, 1, log.end_offset)
    assert [read_header(frame).base_offset for frame in frames] == [2]


def test_a_read_stops_before_a_frame_that_ends_behind_the_end() -> None:
    _, log = simulated(LogConfig(), frames=4)
    frames = log.read(0, 10_000, 5)
    assert [read_header(frame).next_offset for frame in frames] == [2, 4]
    assert log.read(4, 10_000, 5) == []


def test_a_frame_larger_than_asked_for_is_still_given() -> None:
    _, log = simulated(LogConfig())
    log.append([batch_of(bytes(100_000)), batch_of(b"x")], NOW_MS)
    assert len(log.read(0, 10, log.end_offset)) == 1
    assert len(log.read(0, 1 << 20, log.end_offset)) == 2


def test_a_read_stays_within_the_bytes_asked_for() -> None:
    _, log = simulated(LogConfig(), frames=30)
    for max_bytes in (1, 200, 500, 1000, 100_000):
        frames = log.read(0, max_bytes, log.end_offset)
        assert len(frames) == 1 or sum(map(len, frames)) <= max_bytes


def test_outside_the_log_there_is_no_silent_jump() -> None:
    _, log = simulated(frames=10)
    log.truncate_before(9)
    with pytest.raises(OffsetOutOfRange) as below:
        log.read(8, 1000, log.end_offset)
    assert (below.value.earliest, below.value.latest, below.value.is_below) == (9, 20, True)
    with pytest.raises(OffsetOutOfRange) as above:
        log.read(21, 1000, log.end_offset)
    assert not above.value.is_below
    assert log.read(20, 1000, log.end_offset) == []


def test_every_offset_is_found_through_the_index() -> None:
    _, log = simulated(LogConfig(segment_bytes=3000, index_interval_bytes=150), frames=100)
    for offset in range(log.end_offset):
        frames = log.read(offset, 1, log.end_offset)
        assert read_header(frames[0]).base_offset <= offset < read_header(frames[0]).next_offset


def test_time_never_goes_back() -> None:
    _, log = simulated(LogConfig())
    for now_ms in (NOW_MS, NOW_MS - 3_600_000, NOW_MS + 1):
        log.append([numbered(log.end_offset)], now_ms)
    assert [record.timestamp_ms for record in read_all(log)] == [NOW_MS, NOW_MS, NOW_MS + 1]
    assert log.last_append_ms == NOW_MS + 1


def test_a_time_is_found_at_its_first_record() -> None:
    _, log = simulated(LogConfig(segment_bytes=900, index_interval_bytes=100))
    fill(log, 60, step_ms=10)
    for number in range(60):
        assert log.offset_for_timestamp(NOW_MS + number * 10) == number * 2
        assert log.offset_for_timestamp(NOW_MS + number * 10 - 5) == number * 2
    assert log.offset_for_timestamp(NOW_MS + 591) is None
    log.truncate_before(31)
    assert log.offset_for_timestamp(0) == 31


def test_a_time_that_many_frames_share_is_found_at_the_first() -> None:
    _, log = simulated(LogConfig(segment_bytes=2000, index_interval_bytes=100))
    fill(log, 30, now_ms=NOW_MS, step_ms=0)
    fill(log, 30, now_ms=NOW_MS + 5, step_ms=0)
    assert log.offset_for_timestamp(NOW_MS) == 0
    assert log.offset_for_timestamp(NOW_MS + 1) == 60
    assert log.offset_for_timestamp(NOW_MS + 5) == 60


def test_a_segment_rolls_when_it_is_full_or_old() -> None:
    _, log = simulated(LogConfig(segment_bytes=1000, segment_ms=60_000))
    log.append([batch_of(bytes(600))], NOW_MS)
    log.append([batch_of(bytes(600))], NOW_MS)
    assert [segment.base_offset for segment in log.segments] == [0, 1]
    assert not log.is_roll_due(NOW_MS + 59_999)
    assert log.is_roll_due(NOW_MS + 60_000)
    log.append([batch_of(b"x")], NOW_MS + 60_000)
    assert [segment.base_offset for segment in log.segments] == [0, 1, 2]


def test_a_roll_is_told_and_an_empty_segment_is_not_rolled() -> None:
    _, log = simulated()
    rolls: list[int] = []
    log.on_roll = lambda: rolls.append(log.end_offset)
    log.roll(NOW_MS)
    assert rolls == []
    log.append([numbered(0)], NOW_MS)
    log.roll(NOW_MS)
    log.roll(NOW_MS)
    assert rolls == [1]
    assert log.is_roll_due(NOW_MS + (1 << 50)) is False


def test_only_what_is_old_enough_is_sealed_on_demand() -> None:
    _, log = simulated(LogConfig())
    assert log.seal(NOW_MS) == 0
    log.append([numbered(0)], NOW_MS)
    log.append([numbered(1)], NOW_MS + 5_000)
    assert log.seal(NOW_MS + 9_999, min_age_ms=10_000) == 0
    assert log.seal(NOW_MS + 10_000, min_age_ms=10_000) == 2
    assert log.seal(NOW_MS + 20_000) == 2
    assert [segment.base_offset for segment in log.segments] == [0, 2]


def test_a_clock_that_went_back_keeps_nothing_from_being_sealed() -> None:
    _, log = simulated(LogConfig())
    log.append([numbered(0)], NOW_MS)
    assert log.seal(NOW_MS - 60_000) == 1


@pytest.mark.parametrize("seed", range(10))
def test_what_was_sealed_is_so_after_a_power_cut(seed: int) -> None:
    disk, log = simulated(LogConfig(), seed=seed)
    log.append([numbered(0, 3)], NOW_MS)
    end = log.seal(NOW_MS)
    log.append([numbered(3, 3)], NOW_MS)
    disk.lose_power()
    listed = Log.open(disk, FOLDER, LogConfig(), read_only=True)
    assert listed.sealed_offset == end == 3
    assert offsets(read_all(reopen(disk, LogConfig())))[:3] == [0, 1, 2]


def test_a_changed_config_holds_for_the_next_append() -> None:
    _, log = simulated(LogConfig())
    fill(log, 3)
    log.update_config(LogConfig(segment_bytes=1))
    fill(log, 2)
    assert len(log.segments) == 3


def test_headers_are_scanned_from_any_offset() -> None:
    _, log = simulated(frames=30)
    assert [h.base_offset for h in log.scan_headers(0)] == list(range(0, 60, 2))
    assert [h.base_offset for h in log.scan_headers(31)] == list(range(30, 60, 2))
    assert list(log.scan_headers(60)) == []


def test_a_closed_log_takes_nothing() -> None:
    _, log = simulated(frames=1)
    log.close()
    log.close()
    with pytest.raises(StorageFailed):
        log.append([numbered(2)], NOW_MS)


def test_the_descriptor_is_that_of_the_active_segment(tmp_path: Path) -> None:
    log = Log.open(REAL, tmp_path / "0", SMALL)
    fill(log, 10)
    active = tmp_path / "0" / f"{log.segments[-1].base_offset:020d}.log"
    assert Path(f"/proc/self/fd/{log.file_descriptor()}").readlink() == active
    log.close()


def test_sealed_segments_are_listed_for_other_processes(tmp_path: Path) -> None:
    log = Log.open(REAL, tmp_path / "0", SMALL)
    fill(log, 30)
    log.truncate_before(10)
    sealed = decode_sealed((tmp_path / "0/sealed.json").read_bytes())
    assert sealed.segments == log.segments[:-1]
    assert sealed.start_offset == 10
    for segment in sealed.segments:
        path = tmp_path / f"0/{segment.base_offset:020d}.log"
        assert path.stat().st_size == segment.size_bytes
    log.close()


def test_another_process_reads_while_the_broker_writes(tmp_path: Path) -> None:
    folder = tmp_path / "0"
    log = Log.open(REAL, folder, SMALL)
    fill(log, 20)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    other = Log.open(REAL, folder, SMALL, read_only=True)
    assert offsets(read_all(other)) == list(range(40))
    assert list(other.verify()) == []
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    with pytest.raises(StorageFailed):
        other.append([numbered(40)], NOW_MS)
    fill(log, 20)
    log.truncate_before(60)
    with pytest.raises(OffsetOutOfRange):
        other.read(4, 1000, other.end_offset)
    assert other.start_offset > 4
    other.close()
    log.close()
    assert (folder / "clean").exists()


def test_readers_beside_the_writer_see_each_offset_once(tmp_path: Path) -> None:
    log = Log.open(REAL, tmp_path / "0", LogConfig(segment_bytes=20_000, index_interval_bytes=500))
    total = 6_000
    failures: list[str] = []

    def follow() -> None:
        expected = 0
        while expected < total:
            for frame in log.read(expected, 4000, log.end_offset):
                for record in decode(frame):
                    if record.offset != expected or record.value != b"value %d" % expected:
                        failures.append(f"{record} instead of {expected}")
                        return
                    expected += 1

    threads = [threading.Thread(target=follow) for _ in range(3)]
    for thread in threads:
        thread.start()
    for first in range(0, total, 20):
        log.append([numbered(first, 15), numbered(first + 15, 5)], NOW_MS)
    for thread in threads:
        thread.join()
    assert failures == []
    log.close()


def test_indexes_of_only_a_few_sealed_segments_stay_in_memory() -> None:
    _, log = simulated(frames=200)
    read_all(log)
    assert sum(segment.has_indexes for segment in log._segments) <= 9


def test_a_large_group_goes_into_one_segment() -> None:
    _, log = simulated()
    log.append([encode([Record(None, bytes(300))]) for _ in range(5)], NOW_MS)
    assert len(log.segments) == 1
    assert offsets(read_all(log)) == list(range(5))
