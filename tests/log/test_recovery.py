"""What a start makes of a log that was killed, torn, damaged or robbed of its small files."""

import errno
from pathlib import Path

import pytest

from ibrik_log.batch import stamp
from ibrik_log.checkpoint import OffsetRange
from ibrik_log.errors import CorruptRange
from ibrik_log.log import Log, LogConfig
from tests.log.logs import (
    FOLDER,
    NOW_MS,
    SMALL,
    assert_values_fit,
    batch_of,
    fill,
    numbered,
    offsets,
    positions,
    read_all,
    reopen,
    simulated,
    state,
)

ONE_SEGMENT = LogConfig(index_interval_bytes=100)
LOG = FOLDER / f"{0:020d}.log"


def test_a_killed_log_is_found_whole() -> None:
    disk, log = simulated(frames=30)
    again = reopen(disk)
    assert offsets(read_all(again)) == list(range(60))
    assert again.recovered.cut_bytes == 0
    assert again.recovered.scanned_bytes > 0
    assert again.end_offset == log.end_offset
    assert again.last_append_ms == log.last_append_ms


def test_only_the_active_segment_is_scanned_after_a_kill() -> None:
    disk, log = simulated(frames=50)
    assert reopen(disk).recovered.scanned_bytes == log.segments[-1].size_bytes


def test_nothing_is_scanned_after_a_clean_stop() -> None:
    disk, log = simulated(frames=50)
    log.close()
    disk.calls.clear()
    again = reopen(disk)
    assert again.recovered.scanned_bytes == 0
    reads = [name for operation, name in disk.calls if operation == "pread" and ".log" in name]
    assert reads == []
    assert offsets(read_all(again)) == list(range(100))
    assert again.segments[:-1] == log.segments[:-1]


def test_a_torn_tail_is_never_a_record() -> None:
    """Every cut of the last three frames: a prefix is found, the tail is kept aside, once."""
    disk, log = simulated(ONE_SEGMENT, frames=6)
    log.close(clean=False)
    content = bytes(disk.content(LOG))
    ends = positions(content)
    for length in range(ends[3], len(content)):
        disk, _ = simulated(ONE_SEGMENT, frames=6)
        disk.damage(LOG, content[:length])
        again = reopen(disk, ONE_SEGMENT)
        whole = sum(end <= length for end in ends) - 1
        assert offsets(read_all(again)) == list(range(2 * whole))
        assert again.recovered.cut_bytes == length - ends[whole]
        assert again.damaged == []
        tail = content[ends[whole] : length].rstrip(b"\0")
        quarantined = again.recovered.quarantined
        assert (bytes(disk.content(quarantined)) if quarantined else b"") == tail
        assert again.append([numbered(2 * whole)], NOW_MS) == 2 * whole
        again.flush()
        third = reopen(disk, ONE_SEGMENT)
        assert third.recovered.cut_bytes == 0
        assert_values_fit(read_all(third))


@pytest.mark.parametrize("operation", ["create", "pwritev"])
def test_a_torn_tail_is_cut_also_when_there_is_no_room_to_keep_it(operation: str) -> None:
    disk, _ = simulated(ONE_SEGMENT, frames=4)
    disk.damage(LOG, bytes(disk.content(LOG))[:-3])
    disk.kill()
    disk.fail(operation, errno.ENOSPC)
    again = Log.open(disk, FOLDER, ONE_SEGMENT)
    assert (again.end_offset, again.recovered.quarantined) == (6, None)
    assert again.recovered.cut_bytes > 0
    assert not [n for n in disk.list_folder(FOLDER) if "quarantine" in n]


def test_a_second_start_changes_nothing_more() -> None:
    disk, _ = simulated(frames=20)
    active = (
        FOLDER / f"{max(int(n[:20]) for n in disk.list_folder(FOLDER) if '.log' in n):020d}.log"
    )
    disk.damage(active, bytes(disk.content(active))[:-5])
    reopen(disk)
    first = state(disk)
    assert reopen(disk).recovered.cut_bytes == 0
    assert state(disk) == first


@pytest.mark.parametrize("zeros", [1, 60, 61, 512, 100_000])
def test_zeros_and_file_size_prove_nothing(zeros: int) -> None:
    """A preallocated file: restart twice, append between."""
    disk, log = simulated(ONE_SEGMENT, frames=5)
    disk.damage(LOG, bytes(disk.content(LOG)) + bytes(zeros))
    again = reopen(disk, ONE_SEGMENT)
    assert again.end_offset == log.end_offset
    assert again.recovered.quarantined is None
    fill(again, 1)
    assert offsets(read_all(reopen(disk, ONE_SEGMENT))) == list(range(12))


def test_a_hole_of_zeros_before_valid_frames_is_damage() -> None:
    disk, _ = simulated(ONE_SEGMENT, frames=6)
    content = bytearray(disk.content(LOG))
    ends = positions(content)
    content[ends[2] : ends[4]] = bytes(ends[4] - ends[2])
    disk.damage(LOG, bytes(content))
    again = reopen(disk, ONE_SEGMENT)
    assert again.damaged == [OffsetRange(4, 8)]
    assert offsets(read_all(again)) == [0, 1, 2, 3, 8, 9, 10, 11]


@pytest.mark.parametrize("broken", range(5))
def test_a_bad_frame_with_good_ones_behind_it_is_damage_and_nothing_is_cut(broken: int) -> None:
    disk, _ = simulated(ONE_SEGMENT, frames=6)
    content = bytearray(disk.content(LOG))
    content[positions(content)[broken] + 70] ^= 4
    disk.damage(LOG, bytes(content))
    again = reopen(disk, ONE_SEGMENT)
    lost = [2 * broken, 2 * broken + 1]
    assert again.damaged == [OffsetRange(lost[0], lost[1] + 1)]
    assert again.recovered.cut_bytes == 0
    assert bytes(disk.content(LOG)) == content
    for offset in lost:
        with pytest.raises(CorruptRange) as error:
            again.read(offset, 1000, again.end_offset)
        assert (error.value.from_offset, error.value.to_offset) == (lost[0], lost[1] + 1)
    assert again.append([numbered(12, 2)], NOW_MS) == 12
    again.flush()
    records = read_all(again)
    assert offsets(records) == [n for n in range(14) if n not in lost]
    assert_values_fit(records)
    assert reopen(disk, ONE_SEGMENT).damaged == again.damaged


def test_damage_and_a_torn_tail_are_told_apart_in_one_file() -> None:
    disk, _ = simulated(ONE_SEGMENT, frames=6)
    content = bytearray(disk.content(LOG))
    content[positions(content)[1] + 70] ^= 4
    disk.damage(LOG, bytes(content[:-3]))
    again = reopen(disk, ONE_SEGMENT)
    assert again.damaged == [OffsetRange(2, 4)]
    assert again.end_offset == 10
    assert again.recovered.cut_bytes > 0


@pytest.mark.parametrize("length", [0, -1, 5, 1 << 20, (1 << 31) - 1])
def test_a_damaged_length_does_not_swallow_what_follows(length: int) -> None:
    disk, _ = simulated(ONE_SEGMENT, frames=6)
    content = bytearray(disk.content(LOG))
    at = positions(content)[2] + 8
    content[at : at + 4] = length.to_bytes(4, "big", signed=True)
    disk.damage(LOG, bytes(content))
    again = reopen(disk, ONE_SEGMENT)
    assert again.damaged == [OffsetRange(4, 6)]
    assert offsets(read_all(again)) == [0, 1, 2, 3, *range(6, 12)]


def test_a_batch_inside_a_value_is_not_taken_for_a_frame() -> None:
    """A torn frame whose value holds a whole batch of ours, of a higher offset."""
    disk, log = simulated(ONE_SEGMENT, frames=3)
    inner = numbered(0, 3)

    stamp(inner, base_offset=500, leader_epoch=0, append_time_ms=NOW_MS)
    log.append([batch_of(bytes(inner) + bytes(100))], NOW_MS)
    disk.damage(LOG, bytes(disk.content(LOG))[:-50])
    again = reopen(disk, ONE_SEGMENT)
    assert again.damaged == []
    assert again.end_offset == 6


def test_the_tail_of_a_sealed_segment_is_damage_not_a_torn_tail() -> None:
    disk, log = simulated(frames=20)
    first, second = log.segments[0], log.segments[1]
    disk.damage(LOG, bytes(disk.content(LOG))[:-3])
    again = reopen(disk)
    assert again.damaged == [OffsetRange(first.next_offset - 2, second.base_offset)]
    assert len(disk.content(LOG)) == first.size_bytes - 3
    assert offsets(read_all(again)) == [
        n for n in range(40) if not first.next_offset - 2 <= n < second.base_offset
    ]


def test_a_missing_segment_is_a_damaged_range() -> None:
    disk, log = simulated(frames=20)
    gone = log.segments[1]
    disk.unlink(FOLDER / f"{gone.base_offset:020d}.log")
    again = reopen(disk)
    assert again.damaged == [OffsetRange(gone.base_offset, gone.next_offset)]
    with pytest.raises(CorruptRange):
        again.read(gone.base_offset, 1000, 40)
    assert len(read_all(again)) == 40 - (gone.next_offset - gone.base_offset)
    assert [p.to_offset for p in again.verify()] == [gone.next_offset]


def test_a_missing_first_segment_is_damage_and_not_retention() -> None:
    disk, log = simulated(frames=20)
    disk.unlink(LOG)
    again = reopen(disk)
    assert again.start_offset == 0
    assert again.damaged == [OffsetRange(0, log.segments[0].next_offset)]
    with pytest.raises(CorruptRange):
        again.read(0, 1000, 40)


@pytest.mark.parametrize("clean", [True, False])
def test_offsets_that_were_given_out_are_never_given_out_again(clean: bool) -> None:
    """The active segment is gone: the log goes on where it is known to have ended."""
    disk, log = simulated(frames=20)
    log.close(clean=clean)
    active = log.segments[-1]
    disk.unlink(FOLDER / f"{active.base_offset:020d}.log")
    again = reopen(disk)
    end = 40 if clean else active.base_offset
    assert again.end_offset == end
    assert again.damaged == ([OffsetRange(active.base_offset, 40)] if clean else [])
    assert again.append([numbered(end)], NOW_MS) == end
    again.flush()
    assert read_all(again)[-1].offset == end
    assert read_all(reopen(disk))[-1].offset == end


def test_a_tail_that_a_clean_stop_had_written_is_damage() -> None:
    disk, log = simulated(ONE_SEGMENT, frames=6)
    log.close()
    disk.damage(LOG, bytes(disk.content(LOG))[:-3])
    again = reopen(disk, ONE_SEGMENT)
    assert again.damaged == [OffsetRange(10, 12)]
    assert again.append([numbered(12)], NOW_MS) == 12
    with pytest.raises(CorruptRange):
        again.read(10, 1000, 13)
    assert read_all(again)[-1].offset == 12


@pytest.mark.parametrize("number", range(8))
def test_a_segment_that_retention_takes_during_a_read_only_start_is_below_it(number: int) -> None:
    """Another process lets segments go between the listing of the folder and the scan."""
    disk, log = simulated(frames=20)
    disk.unlink(FOLDER / "checkpoint")
    size = disk.file_size
    calls = 0

    def watched(path: Path) -> int:
        nonlocal calls
        calls += 1
        if calls == number:
            disk.file_size = size  # type: ignore[method-assign]
            log.truncate_before(30)
        return size(path)

    disk.file_size = watched  # type: ignore[method-assign]
    other = Log.open(disk, FOLDER, SMALL, read_only=True)
    headers = list(other.scan_headers(0))
    assert [h.next_offset for h in headers] == list(range(headers[0].next_offset, 41, 2))
    assert headers[-1].next_offset == 40


def test_a_segment_that_overlaps_is_reported_and_kept() -> None:
    disk, log = simulated(frames=20)
    log.close(clean=False)
    strange = FOLDER / f"{1:020d}.log"
    disk.close(disk.open(strange, write=True, create=True))
    again = reopen(disk)
    assert again.recovered.ignored == [strange.name]
    assert disk.exists(strange)
    assert offsets(read_all(again)) == list(range(40))


def test_a_start_reads_in_chunks_whatever_a_length_says(tmp_path: Path) -> None:
    """Memory is bounded by a chunk or the largest frame, not by the file."""
    disk, log = simulated(ONE_SEGMENT)
    fill(log, 3)
    content = bytearray(disk.content(LOG)) + b"\x02" * 3_000_000
    disk.damage(LOG, bytes(content))
    largest = 0
    read = disk.pread

    def watched(handle: int, length_bytes: int, position: int) -> bytes:
        nonlocal largest
        largest = max(largest, length_bytes)
        return read(handle, length_bytes, position)

    disk.pread = watched  # type: ignore[method-assign]
    again = Log.open(disk, FOLDER, ONE_SEGMENT)
    assert again.end_offset == 6
    assert again.recovered.cut_bytes == 3_000_000
    assert largest <= 1 << 20


def test_a_log_opened_read_only_cuts_nothing() -> None:
    disk, _ = simulated(ONE_SEGMENT, frames=4)
    disk.damage(LOG, bytes(disk.content(LOG))[:-3])
    before = state(disk)
    other = Log.open(disk, FOLDER, ONE_SEGMENT, read_only=True)
    assert offsets(read_all(other)) == list(range(6))
    assert state(disk) == before
