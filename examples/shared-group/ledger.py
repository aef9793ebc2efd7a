"""A worker's ledger: what it did, line by line, and which of it is acknowledged.

A line `took` says how many flights it leased. A line `did` is written before the acknowledgement is
asked for, a line `acked` after it came: after a kill, the lines behind the last `acked` are work
that may be done once more. Nothing is flushed to the disk: the operating system keeps what a killed
process has written.
"""

import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NamedTuple

Place = tuple[int, int]
"""Partition and offset."""


class Done(NamedTuple):
    """One flight as a worker saw it."""

    partition: int
    offset: int
    attempt: int
    checksum: int
    carrier: str
    distance: int

    @property
    def place(self) -> Place:
        return self.partition, self.offset


@dataclass
class Ledger:
    """What one worker did."""

    took: int = 0
    """Leased."""
    acked: list[Done] = field(default_factory=list)
    open: list[Done] = field(default_factory=list)
    """Done, without an acknowledgement that the worker heard of."""

    @property
    def in_hand(self) -> int:
        """Leased, without an acknowledgement that the worker heard of."""
        return self.took - len(self.acked)

    @property
    def untouched(self) -> int:
        """Leased, and not done."""
        return self.in_hand - len(self.open)


def checksum_of(value: bytes) -> int:
    return zlib.crc32(value)


def write_took(file: BinaryIO, count: int) -> None:
    file.write(b"took %d\n" % count)
    file.flush()


def write_done(file: BinaryIO, batch: Iterable[Done]) -> None:
    file.write(b"".join(b"did %d %d %d %d %b %d\n" % _fields(done) for done in batch))
    file.flush()


def write_acked(file: BinaryIO) -> None:
    file.write(b"acked\n")
    file.flush()


def read(path: Path) -> Ledger:
    """The ledger in a file; a last line that a kill cut off was not done."""
    ledger = Ledger()
    for line in path.read_bytes().splitlines(keepends=True):
        if not line.endswith(b"\n"):
            break
        match line.split():
            case [b"acked"]:
                ledger.acked += ledger.open
                ledger.open = []
            case [b"took", count]:
                ledger.took += int(count)
            case [b"did", partition, offset, attempt, checksum, carrier, distance]:
                numbers = int(partition), int(offset), int(attempt), int(checksum)
                ledger.open.append(Done(*numbers, carrier.decode(), int(distance)))
    return ledger


def _fields(done: Done) -> tuple[int, int, int, int, bytes, int]:
    return *done[:4], done.carrier.encode(), done.distance
