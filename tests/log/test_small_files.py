"""Checkpoint, clean marker, list of segments and lineage: none is needed, each is used."""

import pytest

from ibrik_log.checkpoint import OffsetRange
from ibrik_log.log import LogConfig
from tests.log.logs import FOLDER, fill, offsets, positions, read_all, reopen, simulated

ONE_SEGMENT = LogConfig(index_interval_bytes=100)
LOG = FOLDER / f"{0:020d}.log"
SMALL_FILES = ["checkpoint", "sealed.json", "epochs", "clean"]


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
