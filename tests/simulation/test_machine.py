"""A rule-based machine: a log against a Python list; and any prefix of a file."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ibrik_log.log import Log, LogConfig
from tests.log.logs import FOLDER, NOW_MS, batch_of, offsets, read_all, simulated
from tests.simulation.disk import SimulatedDisk


class LogMachine(RuleBasedStateMachine):
    """The list holds every value ever appended; `flushed` of them must survive a power loss."""

    @initialize(
        seed=st.integers(0, 1 << 32),
        segment_bytes=st.sampled_from([200, 1000, 1 << 20]),
        interval=st.sampled_from([0, 100, 4096]),
    )
    def begin(self, seed: int, segment_bytes: int, interval: int) -> None:
        self.disk = SimulatedDisk(seed)
        self.config = LogConfig(segment_bytes=segment_bytes, index_interval_bytes=interval)
        self.log = Log.open(self.disk, FOLDER, self.config)
        self.values: list[bytes] = []
        self.flushed = 0
        self.start = 0
        self.now_ms = NOW_MS

    @rule(
        batches=st.lists(st.lists(st.binary(max_size=50), min_size=1, max_size=4), min_size=1),
        step_ms=st.integers(-100, 100),
    )
    def append(self, batches: list[list[bytes]], step_ms: int) -> None:
        self.now_ms += step_ms
        base_offset = self.log.append([batch_of(*batch) for batch in batches], self.now_ms)
        assert base_offset == len(self.values)
        self.values += [value for batch in batches for value in batch]

    @rule()
    def flush(self) -> None:
        self.log.flush()
        self.flushed = len(self.values)

    @rule()
    def roll(self) -> None:
        self.log.roll(self.now_ms)

    @rule(share=st.floats(0, 1))
    def truncate(self, share: float) -> None:
        self.start = self.log.truncate_before(int(len(self.values) * share))

    @rule()
    def stop_and_start(self) -> None:
        self.log.close()
        self.flushed = len(self.values)
        self._open()
        assert self.log.recovered.scanned_bytes == 0
        assert self.log.end_offset == len(self.values)

    @rule()
    def kill(self) -> None:
        self.disk.kill()
        self._open()
        assert self.log.end_offset == len(self.values)

    @rule()
    def lose_power(self) -> None:
        known = {n for n in range(self.flushed) if self._is_damaged(n)}
        self.disk.lose_power()
        self._open()
        # A hole of unflushed records with others behind it stays, and is never served.
        assert known >= {n for n in range(self.flushed) if self._is_damaged(n)}
        assert self.log.end_offset >= max(self.flushed, self.start)
        self._check()
        del self.values[self.log.end_offset :]
        self.flushed = len(self.values)

    @rule()
    def damage_an_index(self) -> None:
        names = [n for n in self.disk.list_folder(FOLDER) if n.endswith("index")]
        for name in names[:2]:
            self.disk.damage(FOLDER / name, b"garbage!")

    @precondition(lambda self: self.values)
    @rule(share=st.floats(0, 1, exclude_max=True), max_bytes=st.integers(1, 2000))
    def read_from_anywhere(self, share: float, max_bytes: int) -> None:
        offset = max(int(len(self.values) * share), self.log.start_offset)
        found = read_all(self.log, offset, max_bytes=max_bytes)
        assert [r.value for r in found] == [
            self.values[n] for n in range(offset, len(self.values)) if not self._is_damaged(n)
        ]

    @invariant()
    def epochs_rise(self) -> None:
        if hasattr(self, "log"):
            assert self.log.leader_epoch >= max((e for e, _ in self.log.lineage.entries), default=0)

    def teardown(self) -> None:
        if hasattr(self, "log"):
            self._check()

    def _open(self) -> None:
        before = self.log.leader_epoch
        self.log = Log.open(self.disk, FOLDER, self.config)
        assert self.log.start_offset == self.start
        assert before < self.log.leader_epoch or not self.flushed

    def _is_damaged(self, offset: int) -> bool:
        return any(r.from_offset <= offset < r.to_offset for r in self.log.damaged)

    def _check(self) -> None:
        for record in read_all(self.log):
            assert record.value == self.values[record.offset]


TestLogMachine = LogMachine.TestCase
TestLogMachine.settings = settings(
    max_examples=60, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
TestLogMachine.pytestmark = [pytest.mark.slow]


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.lists(st.binary(max_size=60), min_size=1, max_size=12), st.data())
def test_any_prefix_of_a_file_opens_to_a_prefix_of_the_log(
    values: list[bytes], data: st.DataObject
) -> None:
    disk, log = simulated(LogConfig())
    for value in values:
        log.append([batch_of(value)], NOW_MS)
    log.flush()
    path = FOLDER / f"{0:020d}.log"
    content = bytes(disk.content(path))
    length = data.draw(st.integers(0, len(content)))
    disk.kill()
    disk.damage(path, content[:length])
    found = read_all(Log.open(disk, FOLDER, LogConfig()))
    assert [record.value for record in found] == values[: len(found)]
    assert offsets(found) == list(range(len(found)))


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.data())
def test_no_garbage_in_a_segment_stops_a_start(data: st.DataObject) -> None:
    """Recovery, fuzzed: what is served is what was written, and the log takes more."""
    disk, log = simulated(LogConfig(segment_bytes=400), frames=8)
    log.close(clean=data.draw(st.booleans()))
    names = disk.list_folder(FOLDER)
    for name in data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=4)):
        content = bytearray(disk.content(FOLDER / name))
        at = data.draw(st.integers(0, len(content)))
        content[at : at + data.draw(st.integers(0, 40))] = data.draw(st.binary(max_size=60))
        disk.damage(FOLDER / name, bytes(content))
    disk.kill()
    again = Log.open(disk, FOLDER, LogConfig())
    end = again.end_offset
    assert all(record.value == b"value %d" % record.offset for record in read_all(again))
    assert again.append([batch_of(b"value %d" % end)], NOW_MS) == end
    again.flush()
    assert read_all(again)[-1].offset == end
    list(again.verify())
