"""Every flipped bit of a segment is noticed, on read and by verify, and nothing else is lost."""

import pytest

from ibrik_log.errors import CorruptRange
from ibrik_log.log import Log, LogConfig
from tests.log.logs import FOLDER, assert_values_fit, fill, offsets, read_all, reopen, simulated
from tests.simulation.disk import SimulatedDisk

CONFIG = LogConfig(segment_bytes=450, index_interval_bytes=150)


def sealed_log() -> tuple[SimulatedDisk, Log]:
    """Three sealed segments of a few frames, of two epochs."""
    disk, _ = simulated(CONFIG, frames=6)
    log = reopen(disk, CONFIG)
    fill(log, 12)
    return disk, log


def flip_every(number: int, step: int, first: int = 0) -> None:
    """Flip bits of sealed segment `number` one at a time; an open and a fresh log must notice."""
    disk, log = sealed_log()
    segment = log.segments[number]
    path = FOLDER / f"{segment.base_offset:020d}.log"
    good = bytes(disk.content(path))
    everything = list(range(log.end_offset))
    log.close()
    for bit in range(first, len(good) * 8, step):
        damaged = bytearray(good)
        damaged[bit // 8] ^= 1 << bit % 8
        disk.damage(path, bytes(damaged))
        found = Log.open(disk, FOLDER, CONFIG, read_only=True)
        records = read_all(found)
        assert_values_fit(records)
        missing = sorted(set(everything) - set(offsets(records)))
        assert 1 <= len(missing) <= 2, f"bit {bit}: {missing}"
        assert segment.base_offset <= missing[0]
        assert missing[-1] < segment.next_offset
        assert [(r.from_offset, r.to_offset) for r in found.damaged] == [
            (missing[0], missing[-1] + 1)
        ]
        with pytest.raises(CorruptRange):
            found.read(missing[0], 1000, found.end_offset)
        problems = list(Log.open(disk, FOLDER, CONFIG, read_only=True).verify())
        assert [(p.from_offset, p.to_offset) for p in problems] == [(missing[0], missing[-1] + 1)]


@pytest.mark.parametrize("number", [0, 2])
def test_flipped_bits_of_sealed_segments_are_noticed(number: int) -> None:
    flip_every(number, 37)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("number", [0, 1, 2, 3])
def test_every_flipped_bit_of_a_sealed_segment_is_noticed(number: int) -> None:
    flip_every(number, 1)


def test_a_bit_that_flips_under_a_running_broker_is_noticed_and_reported() -> None:
    disk, log = sealed_log()
    path = FOLDER / f"{log.segments[1].base_offset:020d}.log"
    read_all(log)
    disk.content(path)[80] ^= 1
    with pytest.raises(CorruptRange):
        log.read(log.segments[1].base_offset, 1000, log.end_offset)
    assert len(log.damaged) == 1
    assert len(read_all(log)) == log.end_offset - 2
    log.close()
    assert len(reopen(disk, CONFIG).damaged) == 1


def test_a_bit_that_flips_in_the_active_segment_is_noticed() -> None:
    disk, log = simulated(LogConfig(index_interval_bytes=150), frames=10)
    disk.content(FOLDER / f"{0:020d}.log")[300] ^= 1
    assert len(read_all(log)) == 18
    assert len(list(log.verify())) == 1
