"""`python -m tests.crash --runs 200`: the proof that an acknowledgement is a promise."""

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path

from tests.crash import simulated
from tests.crash.campaign import Campaign
from tests.crash.checker import Findings
from tests.crash.http_load import UnexpectedAnswer
from tests.crash.progress import Progress

ACKNOWLEDGED_PER_RUN = 5_000  # 200 runs: a million
SIMULATIONS_PER_RUN = 25


def main() -> int:
    arguments = _parse()
    started = time.monotonic()
    with Progress("lives on the simulated disk", arguments.simulations) as progress:
        simulation = simulated.run_many(arguments.seed, arguments.simulations, progress.show)
    folder = Path(tempfile.mkdtemp(prefix="ibrik-crash-"))
    campaign = Campaign(folder, arguments.seed, arguments.runs, arguments.minimum_acknowledged)
    try:
        findings = _run_campaign(campaign, arguments.runs)
    except (ExceptionGroup, UnexpectedAnswer, AssertionError, TimeoutError):
        traceback.print_exc()
        print(f"the harness stopped; everything is kept in {folder}, seed {arguments.seed}")
        return 1
    findings.lost += simulation.lost
    findings.reordered += simulation.reordered
    acknowledged = campaign.ledger.acknowledged
    for sentence in findings.sentences + simulation.failures:
        print(sentence)
    ledger = campaign.ledger
    print(
        f"outcome unknown, sent again: {ledger.retries_found + ledger.retries_stored:,} messages, "
        f"of which {ledger.retries_found:,} had been stored"
    )
    print(f"topics rolled meanwhile: {campaign.roller.rolls:,} times")
    if ledger.refusals:
        print(f"asked to try again later: {dict(ledger.refusals)}")
    has_enough = acknowledged >= arguments.minimum_acknowledged
    if not has_enough:
        print(f"fewer than the {arguments.minimum_acknowledged:,} acknowledged that were asked for")
    is_good = has_enough and findings.are_none and not simulation.failures
    if is_good:
        shutil.rmtree(folder)
    else:
        print(f"everything is kept in {folder}")
    print(f"{time.monotonic() - started:.0f} s")
    print(
        f"acknowledged {acknowledged:,}, {findings} ({campaign.kills:,} kills, "
        f"{simulation.crashes:,} simulated crashes, seed {arguments.seed})"
    )
    return 0 if is_good else 1


def _run_campaign(campaign: Campaign, runs: int) -> Findings:
    with Progress("kills", runs) as progress:
        return asyncio.run(
            campaign.run(
                lambda run: progress.show(run, f"{campaign.ledger.acknowledged:,} acknowledged")
            )
        )


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="lives of the broker (200)")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="repeat a run")
    parser.add_argument(
        "--minimum-acknowledged", type=int, help=f"default: {ACKNOWLEDGED_PER_RUN:,} a run"
    )
    parser.add_argument(
        "--simulations", type=int, help=f"simulated lives, default: {SIMULATIONS_PER_RUN} a run"
    )
    arguments = parser.parse_args()
    if arguments.minimum_acknowledged is None:
        arguments.minimum_acknowledged = arguments.runs * ACKNOWLEDGED_PER_RUN
    if arguments.simulations is None:
        arguments.simulations = arguments.runs * SIMULATIONS_PER_RUN
    return arguments


if __name__ == "__main__":
    sys.exit(main())
