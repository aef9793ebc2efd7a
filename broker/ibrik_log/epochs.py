"""The lineage of a log: which leader epoch wrote from which offset on (docs/formats/epochs.md).

A value: each change makes a new one, so readers need no lock. The idea is that of Kafka's KIP-101.
The file is written before the first append of an epoch, so the epoch of every frame is known from
its offset.
"""

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from .document import decode_document, encode_document
from .errors import UnreadableDocument

NO_EPOCH = -1
NO_END = 1 << 63


class EpochRun(NamedTuple):
    """Consecutive frames of one epoch, as found in the files."""

    epoch: int
    start_offset: int
    frame_count: int


class Lineage:
    """Epochs with their start offsets, both rising."""

    def __init__(self, entries: Iterable[tuple[int, int]] = ()) -> None:
        self.entries = tuple(entries)
        self._starts = [start for _, start in self.entries]

    @property
    def latest(self) -> int:
        return self.entries[-1][0] if self.entries else NO_EPOCH

    def span_at(self, offset: int) -> tuple[int, int]:
        """The epoch that wrote `offset`, and the offset where the next epoch starts."""
        number = bisect_right(self._starts, offset)
        epoch = self.entries[number - 1][0] if number else NO_EPOCH
        return epoch, self._starts[number] if number < len(self._starts) else NO_END

    def assign(self, epoch: int, start_offset: int) -> "Lineage":
        """Begin `epoch` at `start_offset`; epochs that wrote nothing before it are forgotten."""
        assert epoch > self.latest, "epochs rise"
        return Lineage((*self.truncate(start_offset).entries, (epoch, start_offset)))

    def truncate(self, end_offset: int) -> "Lineage":
        """Forget epochs that start at or after `end_offset`, also when that is the log's end."""
        return Lineage(entry for entry in self.entries if entry[1] < end_offset)

    def without_epochs_before(self, start_offset: int) -> "Lineage":
        """Forget epochs of which retention left nothing."""
        kept = max(bisect_right(self._starts, start_offset) - 1, 0)
        return Lineage(self.entries[kept:])

    @classmethod
    def from_runs(cls, runs: Iterable[EpochRun]) -> "Lineage":
        """Rebuild from frames. Where epochs fall, the shorter run is the damaged one."""
        kept: list[EpochRun] = []
        for run in runs:
            while kept and kept[-1].epoch > run.epoch and kept[-1].frame_count <= run.frame_count:
                kept.pop()
            if not kept or kept[-1].epoch < run.epoch:
                kept.append(run)
            elif kept[-1].epoch == run.epoch:
                kept[-1] = kept[-1]._replace(frame_count=kept[-1].frame_count + run.frame_count)
        return cls((run.epoch, run.start_offset) for run in kept)


def encode_epochs(lineage: Lineage) -> bytes:
    entries = [{"epoch": epoch, "start_offset": start} for epoch, start in lineage.entries]
    return encode_document("epochs", 1, {"epochs": entries})


def decode_epochs(content: bytes) -> Lineage:
    body = decode_document(content, "epochs", 1)
    try:
        entries = [(int(entry["epoch"]), int(entry["start_offset"])) for entry in body["epochs"]]
    except (KeyError, TypeError, ValueError) as error:
        raise UnreadableDocument(f"no epochs document: {error!r}") from error
    return Lineage(entries)
