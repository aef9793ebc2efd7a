"""`python -m tests.bitflips --flips 10000`: no damaged bit of a sealed segment goes unnoticed.

Every bit of the smallest segment, then random ones of larger segments: half of them in headers,
whose bytes would be rare otherwise. Two processes, each on its own copy, in memory if it can be.
"""

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from ibrik_log.batch import HEADER_BYTES
from ibrik_log.files import RealDisk
from ibrik_log.log import Log
from tests.bitflips.content import CONFIG, KINDS, Original, write
from tests.bitflips.judging import Flip, judge, read_all

PROCESSES = 2
MOST_SENTENCES = 20
IN_MEMORY = Path("/dev/shm")


@dataclass(slots=True)
class Sum:
    flipped: int = 0
    noticed: int = 0
    served: int = 0
    lost: int = 0
    regions: Counter[str] = field(default_factory=Counter)
    sentences: list[str] = field(default_factory=list)

    def add(self, other: "Sum") -> None:
        self.flipped += other.flipped
        self.noticed += other.noticed
        self.served += other.served
        self.lost += other.lost
        self.regions += other.regions
        self.sentences += other.sentences


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bitflips", description=__doc__)
    parser.add_argument("--flips", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    arguments = parser.parse_args()
    started = time.monotonic()
    parts = [(arguments.seed, arguments.flips, part) for part in range(PROCESSES)]
    total = Sum()
    with ProcessPoolExecutor(PROCESSES) as pool:
        for part in pool.map(run_part, parts):
            total.add(part)
    for sentence in total.sentences[:MOST_SENTENCES]:
        print(sentence)
    print(", ".join(f"{name} {count:,}" for name, count in sorted(total.regions.items())))
    print(f"seed {arguments.seed}, {time.monotonic() - started:.0f} s")
    print(
        f"flipped {total.flipped:,}, noticed {total.noticed:,}, "
        f"served {total.served:,}, lost after damage {total.lost:,}"
    )
    is_good = total.noticed == total.flipped and not total.served and not total.lost
    return 0 if is_good else 1


def run_part(part: tuple[int, int, int]) -> Sum:
    """The flips of one process: those whose number leaves `index` when divided."""
    seed, flips, index = part
    folder = Path(tempfile.mkdtemp(dir=IN_MEMORY if IN_MEMORY.is_dir() else None))
    try:
        original = write(folder / "log", seed)
        _check_undamaged(original)
        planned = plan(original, flips, random.Random(seed))
        found = Sum()
        for number in range(index, len(planned), PROCESSES):
            flip = planned[number]
            rng = random.Random(f"{seed} {number}")
            verdict = judge(original, flip, rng, number=number // PROCESSES)
            found.flipped += 1
            found.noticed += verdict.noticed
            found.served += verdict.served
            found.lost += verdict.lost
            found.regions[flip.region] += 1
            found.sentences += verdict.sentences
        return found
    finally:
        shutil.rmtree(folder)


def plan(original: Original, flips: int, rng: random.Random) -> list[Flip]:
    """Every bit of the tiny segment if that leaves half for the others, else a sample of them."""
    smallest = original.sealed["tiny"][0]
    every = [
        Flip(frame, byte, bit)
        for frame in original.frames
        if frame.path == smallest
        for byte in range(len(frame.content))
        for bit in range(8)
    ]
    planned = every if len(every) <= flips // 2 else rng.sample(every, flips // 2)
    frames = {
        kind: [frame for frame in original.frames if frame.path in original.sealed[kind]]
        for kind in KINDS
    }
    while len(planned) < flips:
        frame = rng.choice(frames[rng.choice(list(KINDS))])
        length = HEADER_BYTES if rng.random() < 0.5 else len(frame.content)
        planned.append(Flip(frame, rng.randrange(length), rng.randrange(8)))
    return planned


def _check_undamaged(original: Original) -> None:
    """Without a flip all is served and verify is silent, or the result means nothing."""
    log = Log.open(RealDisk(), original.folder, CONFIG, read_only=True)
    found = read_all(log, random.Random(0))
    assert found.frames == [frame.content for frame in original.frames], "not all is served"
    assert not found.gaps, f"gaps without damage: {found.gaps}"
    problems = list(log.verify())
    assert not problems, f"verify complains without damage: {problems}"
    log.close()


if __name__ == "__main__":
    sys.exit(main())
