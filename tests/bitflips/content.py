"""Segments of varied content, written by the log itself, and every frame in them as it was."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ibrik_log.batch import Producer, encode, iterate_frames, read_header, stamp
from ibrik_log.files import RealDisk
from ibrik_log.log import Log, LogConfig
from ibrik_log.record import Record

NOW_MS = 1_700_000_000_000
CONFIG = LogConfig(segment_bytes=1 << 24, index_interval_bytes=512)
EPOCHS = 3


@dataclass(frozen=True, slots=True)
class Frame:
    """A batch where it lies: in which file, from which byte, and what it holds."""

    path: Path
    position: int
    base_offset: int
    next_offset: int
    content: bytes


@dataclass(frozen=True, slots=True)
class Original:
    folder: Path
    frames: list[Frame]
    sealed: dict[str, list[Path]]  # kind of content -> its sealed segments


def write(folder: Path, seed: int) -> Original:
    """One sealed segment for each kind of content and epoch, and an active one after them."""
    rng = random.Random(seed)
    sealed: dict[str, list[Path]] = {kind: [] for kind in KINDS}
    for _ in range(EPOCHS):
        log = Log.open(RealDisk(), folder, CONFIG)
        for kind, batches in KINDS.items():
            path = folder / f"{log.end_offset:020d}.log"
            for batch in batches(rng, log):
                log.append([batch], NOW_MS + log.end_offset)
            log.roll(NOW_MS)
            sealed[kind].append(path)
        log.append([encode([Record(b"active", b"segment")])], NOW_MS)
        log.roll(NOW_MS)
        log.append([encode([Record(b"last", b"one")])], NOW_MS)
        log.close(clean=True)
    return Original(folder, list(_frames(folder)), sealed)


def _frames(folder: Path) -> Iterator[Frame]:
    for path in sorted(folder.glob("*.log")):
        position = 0
        for frame in iterate_frames(path.read_bytes()):
            header = read_header(frame)
            yield Frame(path, position, header.base_offset, header.next_offset, bytes(frame))
            position += len(frame)


def _tiny(rng: random.Random, _: Log) -> Iterator[bytearray]:
    """Three frames, small enough to flip each of their bits."""
    yield encode([Record(None, b"")])
    yield encode([Record(b"k", rng.randbytes(8), [("h", b"v")])])
    yield encode([Record(None, None)], producer=Producer(7, 0, 3))


def _mixed(rng: random.Random, _: Log) -> Iterator[bytearray]:
    for _number in range(30):
        yield encode(
            [
                Record(
                    rng.choice((None, rng.randbytes(rng.randrange(12)))),
                    rng.choice((None, rng.randbytes(rng.randrange(200)))),
                    [(f"ü{n}", rng.randbytes(n)) for n in range(rng.randrange(3))],
                )
                for _ in range(rng.randrange(1, 20))
            ]
        )


def _zeros_and_magic(_: random.Random, __: Log) -> Iterator[bytearray]:
    """Bytes that look like an end of file, or like the beginning of a batch everywhere."""
    yield encode([Record(None, b"\0" * 3000)])
    yield encode([Record(None, b"\2" * 3000)])
    yield encode([Record(b"\0\0\0\0", bytes(range(256)) * 8)])


def _large(rng: random.Random, _: Log) -> Iterator[bytearray]:
    yield encode([Record(None, b"before")])
    yield encode([Record(b"large", rng.randbytes(60_000))])
    yield encode([Record(None, b"x" * 90) for _ in range(1000)])
    yield encode([Record(None, b"after")])


def _batches_as_values(rng: random.Random, log: Log) -> Iterator[bytearray]:
    """A backup of a log in a log: whole batches inside a value, their offsets plausible here."""
    for number in range(6):
        inner = b""
        for distance in range(1, 6):
            batch = encode([Record(b"inner", rng.randbytes(20))])
            stamp(
                batch,
                base_offset=log.end_offset + distance,
                leader_epoch=log.leader_epoch,
                append_time_ms=NOW_MS,
            )
            inner += bytes(batch)
        yield encode([Record(b"backup", inner), *[Record(None, b"outer")] * (number * 3)])


KINDS: dict[str, Callable[[random.Random, Log], Iterator[bytearray]]] = {
    "tiny": _tiny,
    "mixed": _mixed,
    "zeros and magic bytes": _zeros_and_magic,
    "large": _large,
    "batches as values": _batches_as_values,
}
