"""What a start makes of a log that was killed, torn, damaged or robbed of its small files."""

from pathlib import Path

import pytest

from ibrik_log.batch import read_header, stamp
from ibrik_log.checkpoint import OffsetRange
from ibrik_log.errors import CorruptRange
from ibrik_log.log import Log, LogConfig
from tests.log.logs import (
    FOLDER,
    NOW_MS,
    assert_values_fit,
    batch_of,
    fill,
    numbered,
    offsets,
    read_all,
    reopen,
    simulated,
)
from tests.simulation.disk import SimulatedDisk

ONE_SEGMENT = LogConfig(index_interval_bytes=100)
LOG = FOLDER / f"{0:020d}.log"
SMALL_FILES = ["checkpoint", "sealed.json", "epochs", "clean"]


def positions(content: bytes | bytearray) -> list[int]:
    """Where each frame of a good segment starts, and where the last one ends."""
    found = [0]
    while found[-1] < len(content):
        found.append(found[-1] + read_header(content, found[-1]).length_bytes)
    return found


def state(disk: SimulatedDisk) -> dict[str, bytes]:
    """All that lies in the folder, but for what every start writes anew."""
    names = set(disk.list_folder(FOLDER)) - {"epochs"}
    return {name: bytes(disk.content(FOLDER / name)) for name in names}


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


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("content", [b"", b"{", b"\xff" * 100, b'{"kind":"x"}', b"[" * 100_000])
@pytest.mark.parametrize("name", SMALL_FILES)
def test_no_small_file_is_needed_for_a_start(name: str, content: bytes, clean: bool) -> None:
    disk, log = simulated(frames=20)
    log.close(clean=clean)
    if disk.exists(FOLDER / name):
        disk.damage(FOLDER / name, content)
    again = reopen(disk)
    assert offsets(read_all(again)) == list(range(40))
    assert again.damaged == []
    assert again.leader_epoch == 1
    assert reopen(disk).recovered.unreadable == []


def test_a_log_whose_small_files_are_all_gone_is_found_by_its_frames() -> None:
    disk, log = simulated(frames=20)
    fill(reopen(disk), 10)
    for name in SMALL_FILES:
        if disk.exists(FOLDER / name):
            disk.unlink(FOLDER / name)
    again = reopen(disk)
    assert offsets(read_all(again)) == list(range(60))
    assert again.lineage.entries == ((0, 0), (1, 40), (2, 60))
    assert log.leader_epoch == 0


def test_a_lost_checkpoint_does_not_bring_purged_records_back() -> None:
    disk, log = simulated(frames=20)
    log.truncate_before(13)
    disk.unlink(FOLDER / "checkpoint")
    assert reopen(disk).start_offset == 13
    disk.unlink(FOLDER / "sealed.json")
    assert reopen(disk).start_offset == 13


def test_the_clean_marker_is_consumed_before_anything_else() -> None:
    disk, log = simulated(frames=3)
    log.close()
    disk.calls.clear()
    reopen(disk)
    changes = [call for call in disk.calls if call[0] not in {"open", "pread", "list_folder"}]
    unlink = changes.index(("unlink", "clean"))
    assert changes[unlink + 1] == ("flush_folder", "0")
    assert {operation for operation, _ in changes[:unlink]} <= {"flush_folder"}


def test_a_start_that_dies_leaves_no_clean_marker_behind() -> None:
    disk, log = simulated(frames=3)
    log.close()
    reopen(disk)
    assert not disk.exists(FOLDER / "clean")
    assert reopen(disk).recovered.scanned_bytes > 0


def test_the_epoch_rises_with_every_start_and_is_in_every_frame() -> None:
    disk, log = simulated(ONE_SEGMENT, frames=1)
    for epoch in range(1, 4):
        log = reopen(disk, ONE_SEGMENT)
        assert log.leader_epoch == epoch
        fill(log, 1)
    assert [header.leader_epoch for header in log.scan_headers(0)] == [0, 1, 2, 3]
    assert log.lineage.entries == ((0, 0), (1, 2), (2, 4), (3, 6))


def test_an_epoch_that_wrote_nothing_leaves_no_entry_but_is_not_used_again() -> None:
    disk, log = simulated(frames=1)
    for _ in range(3):
        log = reopen(disk)
    assert log.leader_epoch == 3
    assert log.lineage.entries == ((0, 0), (3, 2))


@pytest.mark.parametrize("has_lineage", [True, False])
@pytest.mark.parametrize("bit", [0, 1, 30])
def test_an_epoch_that_falls_or_jumps_is_damage(bit: int, has_lineage: bool) -> None:
    disk, _ = simulated(ONE_SEGMENT, frames=2)
    fill(reopen(disk, ONE_SEGMENT), 6)
    content = bytearray(disk.content(LOG))
    content[positions(content)[4] + 15 - bit // 8] ^= 1 << bit % 8
    disk.damage(LOG, bytes(content))
    if not has_lineage:
        disk.unlink(FOLDER / "epochs")
    again = reopen(disk, ONE_SEGMENT)
    assert offsets(read_all(again)) == [*range(8), *range(10, 16)]
    assert again.damaged == [OffsetRange(8, 10)]


@pytest.mark.parametrize(
    "garbage", [b"", b"\0" * 8, b"\xff" * 24, b"\0\0\0\1\0\0\0\2" * 50, b"12345"]
)
@pytest.mark.parametrize("suffix", ["index", "timeindex"])
def test_an_index_is_only_a_cache(suffix: str, garbage: bytes) -> None:
    config = LogConfig(segment_bytes=2000, index_interval_bytes=150)
    disk, log = simulated(config)
    fill(log, 60, step_ms=10)
    log.close()
    good = state(disk)
    for segment in log.segments:
        disk.damage(FOLDER / f"{segment.base_offset:020d}.{suffix}", garbage)
    again = reopen(disk, config)
    for offset in range(0, 120, 3):
        assert read_header(again.read(offset, 1, 120)[0]).base_offset == offset // 2 * 2
    for number in range(60):
        assert again.offset_for_timestamp(NOW_MS + number * 10) == number * 2
    again.close()
    for segment in log.segments[:-1]:
        name = f"{segment.base_offset:020d}.{suffix}"
        if suffix == "index" and garbage != b"":
            assert bytes(disk.content(FOLDER / name)) == good[name]


def test_a_missing_a_stale_and_a_short_index_are_rebuilt() -> None:
    config = LogConfig(segment_bytes=900, index_interval_bytes=150)
    disk, log = simulated(config, frames=60)
    log.close()
    good = state(disk)
    indexes = [f"{segment.base_offset:020d}.index" for segment in log.segments[:-1]]
    missing, stale, short = indexes[:3]
    disk.unlink(FOLDER / missing)
    disk.damage(FOLDER / stale, bytes(8) + good[stale][8:])
    disk.damage(FOLDER / short, good[short][:8])
    again = reopen(disk, config)
    assert offsets(read_all(again)) == list(range(120))
    for segment in log.segments:
        again.read(segment.next_offset - 1, 1, 120)
    for name in (missing, short):
        assert bytes(disk.content(FOLDER / name)) == good[name]


def test_leftovers_of_replacements_and_orphaned_indexes_are_removed() -> None:
    disk, _ = simulated(frames=3)
    for name in ("checkpoint.tmp", f"{77:020d}.index", f"{77:020d}.timeindex"):
        disk.close(disk.open(FOLDER / name, write=True, create=True))
    disk.close(disk.open(FOLDER / "note.txt", write=True, create=True))
    reopen(disk)
    names = disk.list_folder(FOLDER)
    assert "note.txt" in names
    assert not [name for name in names if name.endswith(".tmp") or "77" in name]


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
