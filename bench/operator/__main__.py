"""`python -m bench.operator`: measure the operator, print a table, exit 1 when a bar is missed."""

import argparse
import sys
import time

from bench.operator.crowd import Crowd
from bench.operator.measures import measure
from bench.table import conclude
from tests.support import kube_assets

TOPICS = 1_000


def main() -> int:
    arguments = _parse()
    if not kube_assets.are_there():
        needed = ", ".join(kube_assets.NEEDED)
        print(f"Set KUBE_ASSETS to the folder that holds {needed}.", file=sys.stderr)
        return 2
    started = time.monotonic()
    topics = max(1, round(TOPICS * arguments.scale))
    rows = measure(Crowd(topics, 2 * topics), arguments.idle)
    return conclude(rows, arguments.output, started)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.operator", description=__doc__)
    parser.add_argument(
        "--scale", type=float, default=1.0, help="share of 1,000 Topics and 2,000 Subscriptions"
    )
    parser.add_argument("--idle", type=int, default=600, help="seconds without a change")
    parser.add_argument("--output", choices=("table", "json"), default="table")
    arguments = parser.parse_args()
    if not 0 < arguments.scale <= 10:
        parser.error("--scale: more than 0, at most 10")
    return arguments


if __name__ == "__main__":
    sys.exit(main())
