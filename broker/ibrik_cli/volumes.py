"""Reading a data folder without its broker: what `ibrik log` shows.

Takes no lock and changes nothing; the broker may be running beside it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ibrik_cli.failures import Failure

if TYPE_CHECKING:
    from ibrik_log.batch import BatchHeader
    from ibrik_log.log import Log
    from ibrik_log.record import StoredRecord
    from ibrik_log.verify import Problem
    from ibrik_log.volume import TopicFolder, Volume

READ_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class PartitionLog:
    topic: "TopicFolder"
    partition: int
    log: "Log"

    @property
    def name(self) -> str:
        return f"{self.topic.name}/{self.partition}"


def open_volume(data: Path) -> "Volume":
    from ibrik_log.files import RealDisk
    from ibrik_log.volume import Volume

    if not (data / "topics").is_dir():
        raise Failure(f"{data} is no data folder of Ibrik: it has no folder 'topics'")
    return Volume.open(RealDisk(), data, read_only=True)


def open_logs(volume: "Volume", only: str = "") -> Iterator[PartitionLog]:
    """Every partition's log, read-only; or those of `topic` or `topic/partition`."""
    from ibrik_log.config import LogConfig
    from ibrik_log.files import RealDisk
    from ibrik_log.log import Log

    name, _, number = only.partition("/")
    is_found = not only
    for topic in sorted(volume.topics(), key=lambda t: t.name):
        if name not in ("", topic.name, topic.topic_id):
            continue
        for partition in range(topic.partitions):
            if number not in ("", str(partition)):
                continue
            is_found = True
            folder = volume.partition_folder(topic.topic_id, partition)
            log = Log.open(RealDisk(), folder, LogConfig(), read_only=True)
            try:
                yield PartitionLog(topic, partition, log)
            finally:
                log.close()
    if not is_found:
        raise Failure(f"there is no {only} in {volume.data}")


def problem_line(part: PartitionLog, problem: "Problem") -> str:
    """`flights/2  segment 00000000000000067108  offset 70,113  CRC mismatch (…)`."""
    lost = problem.to_offset - problem.from_offset
    segment = Path(problem.file).stem
    served = f" ({lost:,} record{'' if lost == 1 else 's'} not served)" if lost else ""
    where = f"offset {problem.from_offset:,}  position {problem.position:,}"
    return f"{part.name}  segment {segment}  {where}  {problem.reason}{served}"


def frames(log: "Log", from_offset: int) -> Iterator[bytes]:
    """Whole frames from the one with `from_offset` on; damaged ranges are passed over."""
    from ibrik_log.batch import read_header
    from ibrik_log.errors import CorruptRange, OffsetOutOfRange

    offset = max(from_offset, log.start_offset)
    while offset < log.end_offset:
        try:
            found = log.read(offset, READ_BYTES, log.end_offset)
        except CorruptRange as error:
            offset = error.to_offset
            continue
        except OffsetOutOfRange:
            return
        yield from found
        offset = read_header(found[-1]).next_offset


def batches(log: "Log", from_offset: int) -> Iterator[tuple["BatchHeader", bytes]]:
    from ibrik_log.batch import read_header

    for frame in frames(log, from_offset):
        yield read_header(frame), frame


def records(log: "Log", from_offset: int) -> Iterator["StoredRecord"]:
    from ibrik_log.batch import decode

    for frame in frames(log, from_offset):
        yield from (r for r in decode(frame) if r.offset >= from_offset)
