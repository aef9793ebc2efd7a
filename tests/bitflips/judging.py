"""One damaged byte, and all that may be said about it: read everything, compare, verify."""

import random
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ibrik_log.batch import read_header
from ibrik_log.errors import CorruptRange
from ibrik_log.files import RealDisk
from ibrik_log.log import Log
from tests.bitflips.content import CONFIG, Frame, Original

# One flip in this many is also met by a start that may write: it must not cut or move anything.
WRITABLE_EVERY = 20

# The header's fields, by their first byte.
REGIONS = (
    (0, "base offset"),
    (8, "length"),
    (12, "leader epoch"),
    (16, "magic"),
    (17, "checksum"),
    (21, "attributes"),
    (23, "last offset delta"),
    (27, "first timestamp"),
    (35, "append time"),
    (43, "producer id"),
    (51, "producer epoch"),
    (53, "sequence"),
    (57, "record count"),
    (61, "records"),
)


@dataclass(frozen=True, slots=True)
class Flip:
    frame: Frame
    byte: int  # within the frame
    bit: int

    @property
    def region(self) -> str:
        return next(name for start, name in reversed(REGIONS) if self.byte >= start)

    def __str__(self) -> str:
        return f"{self.frame.path.name} byte {self.frame.position + self.byte} bit {self.bit}"


@dataclass(slots=True)
class Verdict:
    """What one flip led to. Numbers of frames, but `noticed`."""

    noticed: bool = True
    served: int = 0
    lost: int = 0
    sentences: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Reading:
    frames: list[bytes] = field(default_factory=list)
    gaps: list[tuple[int, int]] = field(default_factory=list)


def judge(original: Original, flip: Flip, rng: random.Random, *, number: int) -> Verdict:
    """Damage the file, look at the log in every way, repair the file."""
    path = flip.frame.path
    at = flip.frame.position + flip.byte
    _xor(path, at, 1 << flip.bit)
    verdict = Verdict()
    try:
        log = Log.open(RealDisk(), original.folder, CONFIG, read_only=True)
        judge_reading(verdict, original.frames, flip.frame, read_all(log, rng), "")
        _judge_random_access(verdict, original, flip, rng)
        if not any(True for _ in log.verify()):
            verdict.noticed = False
            verdict.sentences.append("verify finds nothing")
        log.close()
        if number % WRITABLE_EVERY == 0:
            _judge_writable(verdict, original, flip, rng)
    finally:
        _xor(path, at, 1 << flip.bit)
    verdict.sentences = [f"{flip} ({flip.region}): {each}" for each in verdict.sentences]
    return verdict


def read_all(log: Log, rng: random.Random) -> Reading:
    """Everything from the start, over what is refused, in requests of varying size."""
    found = Reading()
    offset = log.start_offset
    while offset < log.end_offset:
        try:
            frames = log.read(offset, rng.choice((1, 500, 1 << 20)), log.end_offset)
        except CorruptRange as gap:
            if not gap.from_offset <= offset < gap.to_offset:
                raise RuntimeError(f"a read at {offset} names another range") from gap
            found.gaps.append((gap.from_offset, gap.to_offset))
            offset = gap.to_offset
            continue
        assert frames, f"nothing at {offset}, below the end at {log.end_offset}"
        found.frames += frames
        offset = read_header(frames[-1]).next_offset
    return found


def judge_reading(
    verdict: Verdict, frames: Sequence[Frame], damaged: Frame, found: Reading, how: str
) -> None:
    """Served: a frame that never was. Lost: a good frame that is not served."""
    good = {frame.content for frame in frames if frame is not damaged}
    foreign = [frame for frame in found.frames if frame not in good]
    lost = len(good) - len(good & set(found.frames))
    if foreign:
        verdict.served += len(foreign)
        verdict.sentences.append(f"served a frame at {read_header(foreign[0]).base_offset}{how}")
    if lost:
        verdict.lost += lost
        verdict.sentences.append(f"lost {lost} good frames{how}; refused {found.gaps}")
    covered = any(a <= damaged.base_offset and damaged.next_offset <= b for a, b in found.gaps)
    if not covered:
        verdict.noticed = False
        verdict.sentences.append(f"not refused{how}; refused {found.gaps}")


def _judge_random_access(
    verdict: Verdict, original: Original, flip: Flip, rng: random.Random
) -> None:
    """A reader that did not come from the beginning: inside the damage, and somewhere else."""
    log = Log.open(RealDisk(), original.folder, CONFIG, read_only=True)
    inside = rng.randrange(flip.frame.base_offset, flip.frame.next_offset)
    try:
        log.read(inside, 1, log.end_offset)
    except CorruptRange:
        pass
    else:
        verdict.noticed = False
        verdict.sentences.append(f"a read at {inside} is not refused")
    other = rng.choice([frame for frame in original.frames if frame is not flip.frame])
    offset = rng.randrange(other.base_offset, other.next_offset)
    try:
        frames = log.read(offset, 1, log.end_offset)
    except CorruptRange as gap:
        verdict.lost += 1
        verdict.sentences.append(f"a read at {offset} is refused: {gap}")
    else:
        if frames[0] != other.content:
            verdict.served += 1
            verdict.sentences.append(f"a read at {offset} is answered with another frame")
    log.close()


def _judge_writable(verdict: Verdict, original: Original, flip: Flip, rng: random.Random) -> None:
    """A start of the broker on the damage, clean or not: nothing is cut, appending goes on."""
    copy = original.folder.with_name(original.folder.name + "-copy")
    shutil.copytree(original.folder, copy)
    if rng.random() < 0.5:
        (copy / "clean").unlink()
    before = {path.name: path.stat().st_size for path in copy.glob("*.log")}
    log = Log.open(RealDisk(), copy, CONFIG)
    cut = [name for name, size in before.items() if (copy / name).stat().st_size < size]
    if cut:
        verdict.lost += 1
        verdict.sentences.append(f"a start cut {cut}")
    judge_reading(verdict, original.frames, flip.frame, read_all(log, rng), " after a start")
    end = original.frames[-1].next_offset
    if log.end_offset != end:
        verdict.lost += 1
        verdict.sentences.append(f"after a start the log ends at {log.end_offset}, not at {end}")
    log.close(clean=False)
    shutil.rmtree(copy)


def _xor(path: Path, at: int, mask: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        value = file.read(1)[0]
        file.seek(at)
        file.write(bytes([value ^ mask]))
