"""`python -m bench [names…]`: measure, print one table, exit 1 when a bar is missed."""

import argparse
import os
import sys
import time
from collections.abc import Callable

from bench import (
    archive,
    beside,
    deletion,
    fairness,
    group_commit,
    http_publish,
    memory,
    partitions,
    pull,
    push,
    reads,
    retries,
    segments,
    starts,
    subscriptions,
    tcp_publish,
)
from bench.framework import Bench, Row
from bench.table import conclude

BENCHMARKS: dict[str, Callable[[Bench], list[Row]]] = {
    "tcp": tcp_publish.measure,
    "http": http_publish.measure,
    "group-commit": group_commit.measure,
    "reads": reads.measure,
    "partitions": partitions.measure,
    "deletion": deletion.measure,
    "starts": starts.measure,
    "memory": memory.measure,
    "push": push.measure,
    "pull": pull.measure,
    "fairness": fairness.measure,
    "subscriptions": subscriptions.measure,
    "retries": retries.measure,
    "segments": segments.measure,
    "archive": archive.measure,
    "beside": beside.measure,
}


def main() -> int:
    arguments = _parse()
    # What is installed has its bytecode; a checkout keeps it from its first start on.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    bench = Bench(is_quick=arguments.quick)
    started = time.monotonic()
    rows: list[Row] = []
    for name in arguments.names or BENCHMARKS:
        print(f"{name} …", file=sys.stderr, flush=True)
        rows += BENCHMARKS[name](bench)
    return conclude(rows, arguments.output, started)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(BENCHMARKS)}; default: all")
    parser.add_argument("--quick", action="store_true", help="one short round: is it alive?")
    parser.add_argument("--output", choices=("table", "json"), default="table")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - BENCHMARKS.keys()
    if unknown:
        parser.error(
            f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}"
        )
    return arguments


if __name__ == "__main__":
    sys.exit(main())
