"""`python -m tests.interop`: a segment of ours in the hands of others, record for record."""

import argparse
import asyncio
import operator
import random
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from tests.interop import kafka, pure
from tests.interop.publishing import LIVES, Published, publish_all
from tests.interop.record import ReadRecord

MOST_DIFFERENCES = 5

Left = TypeVar("Left")
Right = TypeVar("Right")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.interop", description=__doc__)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    seed = parser.parse_args().seed
    kafka.fetch()
    with tempfile.TemporaryDirectory(prefix="ibrik-interop-") as name:
        published = asyncio.run(publish_all(Path(name), seed))
        logs = sorted(Path(name, "data", "topics").glob("*/0/*.log"))
        indexes = sorted(
            path
            for log in logs
            for path in log.parent.glob(f"{log.stem}.*index")
            if path.stat().st_size
        )
        problems = [*check_pure(logs, published), *check_kafka(logs, published)]
        problems += [f"index: {each}" for each in kafka.check_indexes(indexes)]
    for problem in problems:
        print(problem)
    print(
        f"published {len(published):,} records in {LIVES} epochs and {len(logs)} segments: read"
        f" alike by aiokafka in pure Python, Kafka's library and DumpLogSegments;"
        f" {len(indexes)} indexes fit; problems {len(problems)} (seed {seed})"
    )
    return 1 if problems or not published else 0


def check_pure(logs: Sequence[Path], published: Sequence[Published]) -> list[str]:
    return compare("aiokafka", pure.read(logs), published)


def check_kafka(logs: Sequence[Path], published: Sequence[Published]) -> list[str]:
    """Kafka's library against what was published, and its tool against its library."""
    read = kafka.read(logs)
    problems = compare("Kafka's library", read, published)
    dump = kafka.dump(logs)
    problems += [f"DumpLogSegments says: {line}" for line in dump.complaints[:MOST_DIFFERENCES]]
    if dump.invalid_batches:
        problems.append(f"DumpLogSegments finds {dump.invalid_batches} batches invalid")
    if len(dump.epochs) < LIVES:
        problems.append(f"{LIVES} lives of the broker left the epochs {sorted(dump.epochs)}")
    bare = [record._replace(headers=()) for record in read]
    problems += differences("DumpLogSegments", dump.records, bare, operator.eq)
    keys = [",".join(name for name, _ in record.headers) for record in read]
    problems += differences("DumpLogSegments (headers)", dump.header_keys, keys, operator.eq)
    return problems


def compare(
    reader: str, records: Sequence[ReadRecord], published: Sequence[Published]
) -> list[str]:
    """What a reader saw against what was published: dense offsets, rising times, equal content."""
    problems = differences(reader, records, published, _is_same)
    if [record.offset for record in records] != list(range(len(records))):
        problems.append(f"{reader}: the offsets are not dense")
    times = [record.timestamp_ms for record in records]
    if times != sorted(times):
        problems.append(f"{reader}: append times go back")
    return problems


def _is_same(record: ReadRecord, published: Published) -> bool:
    if (record.key, record.value) != (published.key, published.value):
        return False
    return published.headers is None or list(record.headers) == published.headers


def differences(
    reader: str,
    found: Sequence[Left],
    expected: Sequence[Right],
    is_same: Callable[[Left, Right], bool],
) -> list[str]:
    problems = []
    if len(found) != len(expected):
        problems.append(f"{reader}: {len(found)} records instead of {len(expected)}")
    unequal = [
        index
        for index, (left, right) in enumerate(zip(found, expected, strict=False))
        if not is_same(left, right)
    ]
    problems += [
        f"{reader}: record {index} is {found[index]!r:.300} instead of {expected[index]!r:.300}"
        for index in unequal[:MOST_DIFFERENCES]
    ]
    return problems


if __name__ == "__main__":
    sys.exit(main())
