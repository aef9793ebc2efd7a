"""The same look at every slice of a volume: in this process, or by Spark where there is much of it.

A look is a function of a volume and a slice; what it finds is a small document that JSON can hold.
Rows never leave the task that reads them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from ibrik_log.errors import LogError
from ibrik_log.volume import TopicFolder

from .errors import UnreadablePartition
from .segments import Piece, read
from .slices import Slice, cut
from .volume import MountedVolume
from .work import Found, each

SPARK_BYTES = 4 * 1024**3  # below, this process is done before Spark has started
Look: TypeAlias = Callable[[Path, Slice], Found]


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says of a look."""

    data: Path
    topics: Sequence[str] = ()
    spark_bytes: int = SPARK_BYTES
    cores: int | None = None


def slices_of(volume: MountedVolume, folder: TopicFolder) -> list[Slice]:
    """All that is sealed of a topic, in the order of its partitions."""
    return [
        slice_
        for number in range(folder.partitions)
        for slice_ in cut(folder.topic_id, volume.partition(folder, number), None)
    ]


def pieces(data: Path, slice_: Slice) -> Iterator[Piece]:
    """The records and the damaged ranges of one slice."""
    volume = MountedVolume.open(data)
    partition = volume.partition(volume.topic(slice_.topic_id), slice_.partition)
    yield from read(partition, slice_.start, slice_.end)


def spread(options: Options, slices: Sequence[Slice], look: Look) -> list[Found]:
    """What each look found, in the order of the slices."""
    data = options.data
    return each(
        slices,
        lambda slice_: _seen(look, data, slice_),
        size_bytes=sum(slice_.size_bytes for slice_ in slices),
        spark_bytes=options.spark_bytes,
        cores=options.cores,
    )


def _seen(look: Look, data: Path, slice_: Slice) -> Found:
    try:
        return look(data, slice_)
    except LogError as error:
        raise UnreadablePartition(f"{error}; the next run tries again") from error
