"""Helpers of the log's tests: logs on the real and the simulated disk, filled and read whole."""

from collections.abc import Iterable
from pathlib import Path

from ibrik_log.batch import decode, encode, read_header
from ibrik_log.errors import CorruptRange
from ibrik_log.files import Disk, RealDisk
from ibrik_log.log import Log, LogConfig
from ibrik_log.record import Record, StoredRecord
from tests.simulation.disk import SimulatedDisk

FOLDER = Path("/data/topics/t/0")
NOW_MS = 1_700_000_000_000
SMALL = LogConfig(segment_bytes=400, index_interval_bytes=100)
REAL = RealDisk()


def batch_of(*values: bytes) -> bytearray:
    return encode([Record(None, value, []) for value in values])


def numbered(first: int, count: int = 1) -> bytearray:
    return batch_of(*(b"value %d" % n for n in range(first, first + count)))


def fill(
    log: Log, frames: int, *, records: int = 2, now_ms: int = NOW_MS, step_ms: int = 1
) -> None:
    """Append frames whose values are their offsets, and flush."""
    for number in range(frames):
        log.append([numbered(log.end_offset, records)], now_ms + number * step_ms)
    log.flush()


def read_all(log: Log, offset: int | None = None, *, max_bytes: int = 1000) -> list[StoredRecord]:
    """Every readable record from `offset` on, over damage."""
    records: list[StoredRecord] = []
    offset = log.start_offset if offset is None else offset
    while offset < log.end_offset:
        try:
            frames = log.read(offset, max_bytes, log.end_offset)
        except CorruptRange as error:
            offset = error.to_offset
            continue
        assert frames
        for frame in frames:
            records += [record for record in decode(frame) if record.offset >= offset]
        offset = records[-1].offset + 1
    return records


def offsets(records: Iterable[StoredRecord]) -> list[int]:
    return [record.offset for record in records]


def assert_values_fit(records: Iterable[StoredRecord]) -> None:
    assert all(record.value == b"value %d" % record.offset for record in records)


def simulated(
    config: LogConfig = SMALL, *, frames: int = 0, seed: int = 0
) -> tuple[SimulatedDisk, Log]:
    disk = SimulatedDisk(seed)
    log = Log.open(disk, FOLDER, config)
    fill(log, frames)
    return disk, log


def reopen(disk: Disk, config: LogConfig = SMALL, folder: Path = FOLDER) -> Log:
    """Open as after a kill: handles and locks are gone, the cache is there."""
    if isinstance(disk, SimulatedDisk):
        disk.kill()
    return Log.open(disk, folder, config)


def positions(content: bytes | bytearray) -> list[int]:
    """Where each frame of a good segment starts, and where the last one ends."""
    found = [0]
    while found[-1] < len(content):
        found.append(found[-1] + read_header(content, found[-1]).length_bytes)
    return found


def state(disk: SimulatedDisk) -> dict[str, bytes]:
    """All that lies in the folder, but for what every start writes anew."""
    names = set(disk.list_folder(FOLDER)) - {"epochs"}
    return {name: bytes(disk.content(FOLDER / name)) for name in names}
