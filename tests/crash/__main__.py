"""`python -m tests.crash --runs 200`: the proof that an acknowledgement is a promise."""

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.crash import simulated
from tests.crash.campaign import Campaign
from tests.crash.http_load import UnexpectedAnswer
from tests.crash.progress import Progress

ACKNOWLEDGED_PER_RUN = 5_000  # 200 runs: a million
SIMULATIONS_PER_RUN = 25


def main() -> int:
    arguments = _parse()
    runs, seed = arguments.runs, arguments.seed
    minimum = arguments.minimum_acknowledged
    if minimum is None:
        minimum = runs * ACKNOWLEDGED_PER_RUN
    simulations = arguments.simulations
    if simulations is None:
        simulations = runs * SIMULATIONS_PER_RUN
    started = time.monotonic()
    with Progress("simulated crashes", simulations) as progress:
        failed_seeds = simulated.run_many(seed, simulations, progress.show)
    # A third more than asked for on average, so that chance does not miss the minimum.
    folder = Path(tempfile.mkdtemp(prefix="ibrik-crash-"))
    campaign = Campaign(folder, seed, minimum * 4 // (3 * runs) + 1)
    try:
        with Progress("kills", runs) as progress:
            findings = asyncio.run(
                campaign.run(
                    runs,
                    lambda run: progress.show(run, f"{campaign.ledger.acknowledged:,} acked"),
                )
            )
    except* (UnexpectedAnswer, AssertionError, TimeoutError) as errors:
        print(f"the harness stopped: {errors.exceptions}; everything is kept in {folder}")
        return 1
    acknowledged = campaign.ledger.acknowledged
    good = findings.are_none and not failed_seeds and acknowledged >= minimum
    for sentence in findings.sentences:
        print(sentence)
    for failure in failed_seeds:
        print(f"simulated crash: {failure}")
    if acknowledged < minimum:
        print(f"only {acknowledged:,} of {minimum:,} acknowledged: too few to prove anything")
    if campaign.ledger.refusals:
        print(f"asked to try again later: {dict(campaign.ledger.refusals)}")
    print(f"{time.monotonic() - started:.0f} s; folder {folder if not good else 'removed'}")
    if good:
        shutil.rmtree(folder)
    print(
        f"acknowledged {acknowledged:,}, {findings} "
        f"({campaign.kills:,} kills, {simulations:,} simulated crashes, seed {seed})"
    )
    return 0 if good else 1


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="lives of the broker (200)")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="repeat a run")
    parser.add_argument(
        "--minimum-acknowledged", type=int, help=f"default: {ACKNOWLEDGED_PER_RUN:,} for each run"
    )
    parser.add_argument(
        "--simulations", type=int, help=f"crashes of the simulated disk ({SIMULATIONS_PER_RUN}/run)"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
