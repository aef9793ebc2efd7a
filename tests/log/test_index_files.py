"""Index files are caches: whatever is in them, the log finds its records."""

import struct

import pytest

from ibrik_log.batch import read_header
from ibrik_log.log import LogConfig
from tests.log.logs import FOLDER, NOW_MS, fill, offsets, read_all, reopen, simulated, state


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


@pytest.mark.parametrize("shift_ms", [-100_000, -35, 35, 100_000])
def test_a_time_index_that_lies_skips_nothing(shift_ms: int) -> None:
    config = LogConfig(segment_bytes=900, index_interval_bytes=150)
    disk, log = simulated(config)
    fill(log, 60, step_ms=10)
    log.close()
    for segment in log.segments:
        path = FOLDER / f"{segment.base_offset:020d}.timeindex"
        entries = struct.iter_unpack(">qi", bytes(disk.content(path)))
        lies = [struct.pack(">qi", time_ms + shift_ms, offset) for time_ms, offset in entries]
        disk.damage(path, b"".join(lies))
    again = reopen(disk, config)
    for number in range(60):
        assert again.offset_for_timestamp(NOW_MS + number * 10) == number * 2


def test_headers_and_times_are_found_over_damage() -> None:
    disk, log = simulated(frames=30)
    log.close()
    disk.content(FOLDER / f"{0:020d}.log")[70] ^= 1
    again = reopen(disk)
    assert [header.base_offset for header in again.scan_headers(0)] == list(range(2, 60, 2))
    assert again.offset_for_timestamp(0) == 2


def test_leftovers_of_replacements_and_orphaned_indexes_are_removed() -> None:
    disk, _ = simulated(frames=3)
    for name in ("checkpoint.tmp", f"{77:020d}.index", f"{77:020d}.timeindex"):
        disk.close(disk.open(FOLDER / name, write=True, create=True))
    disk.close(disk.open(FOLDER / "note.txt", write=True, create=True))
    reopen(disk)
    names = disk.list_folder(FOLDER)
    assert "note.txt" in names
    assert not [name for name in names if name.endswith(".tmp") or "77" in name]
