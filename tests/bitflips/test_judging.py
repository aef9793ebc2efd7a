"""The judge of a bit flip sees what a log would do wrong: the run's zeros mean something."""

import random

import pytest

from ibrik_log.files import RealDisk
from ibrik_log.log import Log
from tests.bitflips.content import CONFIG, Frame, Original, write
from tests.bitflips.judging import Flip, Reading, Verdict, judge, judge_reading, read_all


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Original:
    return write(tmp_path_factory.mktemp("bitflips") / "log", seed=1)


@pytest.fixture
def damaged(original: Original) -> Frame:
    return next(f for f in original.frames if f.path == original.sealed["mixed"][0])


def right_reading(original: Original, damaged: Frame) -> Reading:
    return Reading(
        [frame.content for frame in original.frames if frame is not damaged],
        [(damaged.base_offset, damaged.next_offset)],
    )


def verdict_on(original: Original, damaged: Frame, reading: Reading) -> Verdict:
    verdict = Verdict()
    judge_reading(verdict, original.frames, damaged, reading, "")
    return verdict


def test_all_but_the_damaged_frame_is_right(original: Original, damaged: Frame) -> None:
    verdict = verdict_on(original, damaged, right_reading(original, damaged))
    assert verdict == Verdict()


def test_a_damaged_frame_that_is_served_is_seen(original: Original, damaged: Frame) -> None:
    reading = right_reading(original, damaged)
    reading.frames.append(damaged.content[:-1] + b"?")
    assert verdict_on(original, damaged, reading).served == 1


def test_a_good_frame_that_is_not_served_is_seen(original: Original, damaged: Frame) -> None:
    reading = right_reading(original, damaged)
    del reading.frames[5]
    assert verdict_on(original, damaged, reading).lost == 1


def test_damage_that_is_not_refused_is_seen(original: Original, damaged: Frame) -> None:
    reading = right_reading(original, damaged)
    reading.gaps = [(damaged.base_offset + 1, damaged.next_offset + 1)]
    assert not verdict_on(original, damaged, reading).noticed


def test_a_flip_is_undone_after_it_was_judged(original: Original, damaged: Frame) -> None:
    before = damaged.path.read_bytes()
    verdict = judge(original, Flip(damaged, byte=70, bit=3), random.Random(1), number=0)
    assert (verdict.noticed, verdict.served, verdict.lost) == (True, 0, 0)
    assert damaged.path.read_bytes() == before
    log = Log.open(RealDisk(), original.folder, CONFIG, read_only=True)
    assert read_all(log, random.Random(1)).gaps == []


def test_batches_inside_a_value_are_never_taken_for_records(original: Original) -> None:
    """They have all that a frame needs; only the damaged frame itself can say where it ends."""
    path = original.sealed["batches as values"][0]
    outer = next(frame for frame in original.frames if frame.path == path)
    for number, byte in enumerate([*range(61), 100, len(outer.content) - 1]):
        verdict = judge(original, Flip(outer, byte, number % 8), random.Random(number), number=1)
        assert verdict == Verdict()


@pytest.mark.parametrize(
    ("byte", "region"),
    [(0, "base offset"), (11, "length"), (17, "checksum"), (60, "record count"), (61, "records")],
)
def test_a_flip_names_the_field_it_hits(damaged: Frame, byte: int, region: str) -> None:
    assert Flip(damaged, byte, bit=0).region == region
