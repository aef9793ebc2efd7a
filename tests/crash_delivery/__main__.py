"""`python -m tests.crash_delivery --runs 100`: what delivery promises, death after death."""

import argparse
import asyncio
import contextlib
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

from tests.crash.progress import Progress
from tests.crash_delivery.campaign import Campaign
from tests.crash_delivery.checker import Findings
from tests.crash_delivery.publishers import UnexpectedAnswer
from tests.crash_delivery.sinks import running_sinks
from tests.support.postgres import running_postgres

DATABASES = ("sqlite", "postgres")


def main() -> int:
    arguments = _parse()
    # Whoever ends the harness ends the broker, the sinks and Postgres with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    chosen = DATABASES if arguments.database == "both" else (arguments.database,)
    return max(_try(database, arguments.seed, arguments.runs) for database in chosen)


def _try(database: str, seed: int, runs: int) -> int:
    """One campaign; 0 when every rule was kept."""
    started = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="ibrik-crash-delivery-"))
    try:
        with _database_url(database) as url:
            campaign = Campaign(folder, url, seed, runs)
            findings = _run(campaign, folder / "sinks.diary", runs)
    except (ExceptionGroup, UnexpectedAnswer, AssertionError, TimeoutError):
        traceback.print_exc()
        print(f"the harness stopped; everything is kept in {folder}, {database}, seed {seed}")
        return 1
    for sentence in findings.sentences:
        print(sentence)
    if findings.are_none:
        shutil.rmtree(folder)
    else:
        print(f"everything is kept in {folder}")
    print(f"{time.monotonic() - started:.0f} s, dead letters {campaign.dead_letters:,}")
    print(
        f"published {campaign.acknowledged:,}, delivered {campaign.delivered:,}, {findings} "
        f"({campaign.kills:,} kills, {database}, seed {seed})"
    )
    return 0 if findings.are_none else 1


def _run(campaign: Campaign, diary: Path, runs: int) -> Findings:
    with Progress("kills", runs) as progress:

        def on_kill(kills: int) -> None:
            progress.show(kills, f"{campaign.acknowledged:,} published")

        with running_sinks(diary) as sinks:
            asyncio.run(campaign.run(sinks, on_kill))
    return campaign.judge(diary)


@contextlib.contextmanager
def _database_url(database: str) -> Iterator[str | None]:
    """None: the broker's own SQLite."""
    if database == "sqlite":
        yield None
        return
    with running_postgres() as server:
        yield server.new_database()


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.crash_delivery", description=__doc__)
    parser.add_argument("--runs", type=int, default=100, help="deaths of the broker (100)")
    parser.add_argument("--database", choices=(*DATABASES, "both"), default="both")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="repeat a run")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
