"""A random life of one log on the simulated disk, cut short by crashes, and its judge.

`run_crash(seed)` is one life; `make crash` runs thousands. Everything random comes from the seed.
"""

import random
from dataclasses import dataclass, field
from pathlib import Path

from ibrik_log.batch import decode, encode
from ibrik_log.errors import CorruptRange, StorageFailed, StorageFull
from ibrik_log.log import Log, LogConfig
from ibrik_log.record import Record

from .disk import PowerLoss, SimulatedDisk

FOLDER = Path("/data/topics/t/0")
CRASHES = 4
GROUPS_PER_LIFE = 12


@dataclass
class CrashResult:
    """What was promised and what became of it. All but `acknowledged` must be 0."""

    acknowledged: int = 0
    lost: int = 0
    reordered: int = 0
    crashes: int = 0
    problems: list[str] = field(default_factory=list)


class _Life:
    """One log with a model beside it: what was acknowledged, at which offset."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.disk = SimulatedDisk(self.chance.getrandbits(32))
        self.result = CrashResult()
        self.acknowledged: dict[int, bytes] = {}
        self.start_offset = 0  # the highest log start that may have become durable
        self.durable_start_offset = 0  # the lowest that must have
        self.next_value = 0
        self.now_ms = 1_700_000_000_000
        self.epoch = -1
        self.config = LogConfig(
            segment_bytes=self.chance.choice([600, 2000, 8000]),
            segment_ms=self.chance.choice([50, 1 << 40]),
            retention_ms=self.chance.choice([None, 400]),
            retention_bytes=self.chance.choice([None, 5000]),
            index_interval_bytes=self.chance.choice([0, 300, 4096]),
        )

    def run(self) -> CrashResult:
        for _ in range(CRASHES):
            self.disk.crash_at = self.disk.operations + self.chance.randint(1, 60)
            try:
                self._live()
            except PowerLoss:
                self._crash()
        self.disk.crash_at = None
        self._judge(self._open())
        self.result.acknowledged = len(self.acknowledged)
        return self.result

    def _crash(self) -> None:
        """The machine loses power, or only the process ends; then a start may crash as well."""
        self.result.crashes += 1
        if self.chance.random() < 0.7:
            self.disk.lose_power()
        else:
            self.disk.kill()

    def _open(self) -> Log:
        log = Log.open(self.disk, FOLDER, self.config)
        if log.leader_epoch <= self.epoch:
            self.result.problems.append(f"epoch {log.leader_epoch} after {self.epoch}")
        return log

    def _live(self) -> None:
        log = self._open()
        self._judge(log)
        for _ in range(self.chance.randint(1, GROUPS_PER_LIFE)):
            self._do_something(log)
        log.close(clean=self.chance.random() < 0.8)
        self._live()

    def _do_something(self, log: Log) -> None:
        self.now_ms += self.chance.choice([0, 1, 30, -20])
        try:
            match self.chance.random():
                case x if x < 0.75:
                    self._publish(log)
                case x if x < 0.8:
                    log.roll(self.now_ms)
                case x if x < 0.95:
                    self._retain(log)
                case _:
                    self._purge(log)
        except StorageFull:
            return

    def _publish(self, log: Log) -> None:
        """One group: append, sometimes twice, then flush, then acknowledge."""
        promised: dict[int, bytes] = {}
        for _ in range(self.chance.choice([1, 1, 2])):
            batches = []
            values = []
            for _ in range(self.chance.choice([1, 1, 2, 5])):
                batch = [self._record() for _ in range(self.chance.choice([1, 1, 3, 20]))]
                values += [record.value for record in batch]
                batches.append(encode(batch))
            base_offset = log.append(batches, self.now_ms)
            self.epoch = log.leader_epoch
            promised.update(enumerate(values, base_offset))
        log.flush()
        self.acknowledged.update(promised)

    def _record(self) -> Record:
        self.next_value += 1
        padding = bytes(self.chance.choice([0, 10, 400]))
        return Record(None, b"%d:" % self.next_value + padding, [])

    def _retain(self, log: Log) -> None:
        sealed = log.segments[:-1]
        if sealed:
            self.start_offset = max(self.start_offset, sealed[-1].next_offset)
        self.durable_start_offset = log.apply_retention(self.now_ms)

    def _purge(self, log: Log) -> None:
        offset = self.chance.randint(log.start_offset, log.end_offset)
        self.start_offset = max(self.start_offset, offset)
        self.durable_start_offset = log.truncate_before(offset)

    def _judge(self, log: Log) -> None:
        """Every acknowledged record is there, at its offset, unless it was let go on purpose."""
        if not self.durable_start_offset <= log.start_offset <= self.start_offset:
            self.result.problems.append(
                f"log start {log.start_offset}, "
                f"not {self.durable_start_offset} to {self.start_offset}"
            )
        found: dict[int, bytes] = {}
        offset = log.start_offset
        while offset < log.end_offset:
            try:
                frames = log.read(offset, 4096, log.end_offset)
            except CorruptRange as error:
                offset = error.to_offset
                continue
            for frame in frames:
                for record in decode(frame):
                    found[record.offset] = record.value or b""
            offset = max(found) + 1
        by_value = {value: offset for offset, value in found.items()}
        for offset, value in self.acknowledged.items():
            if offset < log.start_offset or found.get(offset) == value:
                continue
            if value in by_value:
                self.result.reordered += 1
                self.result.problems.append(f"offset {offset} is now at {by_value[value]}")
            else:
                self.result.lost += 1
                self.result.problems.append(f"offset {offset} is lost")


def run_crash(seed: int) -> CrashResult:
    """Live, crash, recover and judge, a few times over, all from `seed`."""
    try:
        return _Life(seed).run()
    except StorageFailed as error:
        return CrashResult(problems=[f"no fault was injected, but: {error}"], lost=1)
