"""Thousands of lives on the simulated disk, which loses what was not flushed; SIGKILL cannot."""

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

from tests.simulation.crash import run_crash

PROCESSES = 2
SEEDS_A_TASK = 25


@dataclass(slots=True)
class Simulated:
    crashes: int = 0
    acknowledged: int = 0
    lost: int = 0
    reordered: int = 0
    failures: list[str] = field(default_factory=list)


def run_many(seed: int, lives: int, on_progress: Callable[[int], None]) -> Simulated:
    """Run `lives` seeds that follow from `seed`; each failure names the one that repeats it."""
    first = seed * 1_000_003
    seeds = [
        range(at, min(at + SEEDS_A_TASK, first + lives))
        for at in range(first, first + lives, SEEDS_A_TASK)
    ]
    total = Simulated()
    done = 0
    with ProcessPoolExecutor(PROCESSES) as pool:
        for chunk, found in zip(seeds, pool.map(_run_chunk, seeds), strict=True):
            done += len(chunk)
            total.crashes += found.crashes
            total.acknowledged += found.acknowledged
            total.lost += found.lost
            total.reordered += found.reordered
            total.failures += found.failures
            on_progress(done)
    return total


def _run_chunk(seeds: range) -> Simulated:
    total = Simulated()
    for seed in seeds:
        result = run_crash(seed)
        total.crashes += result.crashes
        total.acknowledged += result.acknowledged
        total.lost += result.lost
        total.reordered += result.reordered
        total.failures += [f"run_crash({seed}): {problem}" for problem in result.problems]
    return total
