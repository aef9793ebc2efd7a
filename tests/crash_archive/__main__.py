"""`python -m tests.crash_archive --runs 50`: a table equals its log, whatever dies when."""

import argparse
import asyncio
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.crash.progress import Progress
from tests.crash_archive.campaign import Campaign
from tests.support.broker import running_broker


def main() -> int:
    arguments = _parse()
    # Whoever ends the harness ends the broker and the jobs with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    started = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="ibrik-crash-archive-"))
    with running_broker(folder) as broker, Progress("runs", arguments.runs) as progress:
        campaign = Campaign(broker, folder, arguments.seed)

        def on_run(done: int) -> None:
            progress.show(done, f"{len(campaign.published):,} published")

        asyncio.run(campaign.run(arguments.runs, on_run))
    findings = campaign.findings
    for sentence in findings.broken:
        print(sentence)
    if findings.broken:
        print(f"everything is kept in {folder}")
    else:
        shutil.rmtree(folder)
    codes = ", ".join(f"{count} x {code}" for code, count in sorted(findings.codes.items()))
    print(
        f"{len(campaign.published):,} records, {arguments.runs} runs, {findings.kills} kills, "
        f"{findings.races} races, ended {codes}; {len(findings.broken)} rules broken "
        f"({time.monotonic() - started:.0f} s, seed {arguments.seed})"
    )
    return 1 if findings.broken else 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
