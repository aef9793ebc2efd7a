"""One campaign: publish, archive, kill; after every death the table must be a prefix of the log.

A death is aimed: after a random time, or when a file of the table or a commit has just appeared, so
that the moments between writing, committing and telling the broker are hit often.
"""

import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

import ibrik_client
from tests.support.broker import Broker

TOPIC = "orders"
PARTITIONS = 3
GOOD_CODES = (0, 2, 3)
LONGEST_RUN_S = 60.0
LOOK_S = 0.001
COLUMNS = ["partition", "offset", "key", "value", "gap_to"]

Row = tuple[int, int, bytes | None, bytes | None]


@dataclass
class Findings:
    """What was seen, and every sentence about a rule that was broken."""

    kills: int = 0
    races: int = 0
    codes: Counter[int] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)


class Campaign:
    def __init__(self, broker: Broker, folder: Path, seed: int) -> None:
        self.findings = Findings()
        self.published: dict[tuple[int, int], tuple[bytes, bytes]] = {}
        self._broker = broker
        self._lake = folder / "lake"
        self._random = random.Random(seed)

    async def run(self, runs: int, on_run: Callable[[int], None]) -> None:
        async with ibrik_client.connect(
            self._broker.http_url, admin_url=self._broker.admin_url
        ) as client:
            await client.admin.create_topic(
                TOPIC, {"partitions": PARTITIONS, "archive": {"enabled": True}}
            )
            for number in range(runs):
                await self._publish(client)
                self._archive_and_kill()
                self.judge(await client.admin.archive(TOPIC), is_complete=False)
                on_run(number + 1)
            await self._publish(client)
            self._finish()
            self.judge(await client.admin.archive(TOPIC), is_complete=True)

    async def _publish(self, client: ibrik_client.Client) -> None:
        count = self._random.choice([1, 7, 300])
        for number in range(count):
            value = b"%d-%d" % (len(self.published), number) + b"x" * self._random.randrange(200)
            key = b"%d" % self._random.randrange(50)
            ack = await client.publish(TOPIC, value, key=key)
            self.published[ack.partition, ack.offset] = (key, value)

    def _archive_and_kill(self) -> None:
        """One run or two at once; each killed at a moment of its own, or left alone."""
        count = self._random.choice([1, 2])
        self.findings.races += count - 1
        threads = [
            threading.Thread(target=self._one, args=(self._start(), random.Random(seed)))
            for seed in [self._random.random() for _ in range(count)]
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _one(self, job: subprocess.Popen[str], chance: random.Random) -> None:
        _wait_for_moment(job, chance, self._lake)
        if chance.random() < 0.75 and job.poll() is None:
            job.kill()
            job.communicate()
            self.findings.kills += 1
            return
        self._ended(job)

    def _finish(self) -> None:
        """A last run that nobody disturbs brings everything."""
        self._ended(self._start())

    def _ended(self, job: subprocess.Popen[str]) -> None:
        output, errors = job.communicate(timeout=LONGEST_RUN_S)
        self.findings.codes[job.returncode] += 1
        if job.returncode not in GOOD_CODES:
            self.findings.broken.append(f"a run ended with {job.returncode}: {output}{errors}")

    def _start(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "ibrik_spark", "archive", "--period", "0s"]
        command += ["--data", str(self._broker.data), "--target", str(self._lake)]
        command += ["--admin", self._broker.admin_url]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def judge(self, view: Mapping[str, Any], *, is_complete: bool) -> None:
        """The table holds what was published, once each, and all that the broker was told of."""
        broken = self.findings.broken
        rows = _rows(self._lake / view["topicId"])
        held = Counter(rows)
        wanted = {(*place, *parts) for place, parts in self.published.items()}
        twice = [row[:2] for row, count in held.items() if count > 1]
        if twice:
            broken.append(f"{len(twice)} records are in the table twice, such as {twice[0]}")
        strange = set(held) - wanted
        if strange:
            broken.append(f"{len(strange)} rows were never published, such as {min(strange)[:2]}")
        ends = Counter(partition for partition, *_ in held)
        for partition in view["partitions"]:
            number, told = partition["partition"], partition["archivedUpTo"]
            missing = set(range(told)) - {offset for at, offset, *_ in held if at == number}
            if missing:
                broken.append(f"the broker may delete {number}/{min(missing)}, which is not held")
            if ends[number] and max(o for p, o, *_ in held if p == number) != ends[number] - 1:
                broken.append(f"partition {number} has a hole")
        if is_complete and held != Counter(wanted):
            broken.append(f"the table holds {len(rows):,} rows of {len(wanted):,} published")


def _wait_for_moment(job: subprocess.Popen[str], chance: random.Random, lake: Path) -> None:
    """Until a random time has passed, or something has just appeared in the table."""
    pattern = chance.choice(["", "*.parquet", "*.parquet", "*.json", "*.json"])
    deadline = time.monotonic() + (chance.uniform(0, 8) if not pattern else LONGEST_RUN_S)
    before = len(list(lake.rglob(pattern))) if pattern else 0
    pause = threading.Event()
    while time.monotonic() < deadline and job.poll() is None:
        if pattern and len(list(lake.rglob(pattern))) > before:
            pause.wait(chance.choice([0, 0, chance.uniform(0, 0.05)]))
            return
        pause.wait(LOOK_S)


def _rows(location: Path) -> list[Row]:
    try:
        files = SubTreeFileSystem(str(location), LocalFileSystem())
        table = DeltaTable(str(location)).to_pyarrow_table(columns=COLUMNS, filesystem=files)
    except TableNotFoundError:
        return []
    columns = [table.column(name).to_pylist() for name in COLUMNS]
    assert not any(columns[4]), "a gap was recorded without being allowed"
    return list(zip(*columns[:4], strict=True))
