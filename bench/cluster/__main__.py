"""`python -m bench.cluster`: measure on a kind cluster; exit 1 when a bar is missed."""

import argparse
import sys
import time

from bench.cluster.measures import measure
from bench.framework import Bench
from bench.table import conclude
from e2e.support.kind import running_cluster


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.cluster", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short round: is it alive?")
    parser.add_argument("--output", choices=("table", "json"), default="table")
    arguments = parser.parse_args()
    started = time.monotonic()
    with running_cluster() as cluster:
        rows = measure(cluster, Bench(is_quick=arguments.quick))
    return conclude(rows, arguments.output, started)


if __name__ == "__main__":
    sys.exit(main())
