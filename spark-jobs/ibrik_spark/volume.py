"""What a mounted volume says: cluster, topics by id, partitions and their sealed segments.

Reads beside the broker that writes, takes no lock and changes nothing. A folder that is not a
broker's volume is an error, never an empty one: a claim that was not mounted looks like that.
"""

import uuid
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from ibrik_log.checkpoint import SealedSegments, SegmentSummary, decode_sealed
from ibrik_log.epochs import Lineage, decode_epochs
from ibrik_log.errors import ForeignFile, LogError, UnknownFormat, UnreadableDocument
from ibrik_log.files import Disk, RealDisk, read_file
from ibrik_log.recovery import EPOCHS, SEALED
from ibrik_log.segment import LOG_SUFFIX
from ibrik_log.volume import TopicFolder, Volume

from .errors import UnreadablePartition, WrongVolume


@dataclass(frozen=True, slots=True)
class SealedPartition:
    """The sealed segments of one partition, as they were listed. Records below the start are gone.

    The epochs are read after the list, so they cover every segment in it.
    """

    number: int
    path: Path
    start_offset: int
    segments: tuple[SegmentSummary, ...]
    lineage: Lineage

    @property
    def end_offset(self) -> int:
        """The offset after the last sealed record."""
        return self.segments[-1].next_offset if self.segments else self.start_offset


class MountedVolume:
    """A broker's data folder, seen from outside."""

    def __init__(self, volume: Volume, disk: Disk) -> None:
        self.data = volume.data
        self.cluster_id = volume.cluster_id
        self._volume = volume
        self._disk = disk

    @classmethod
    def open(cls, data: Path, *, cluster_id: str | None = None) -> "MountedVolume":
        """Open a data folder, of this cluster if one is named; WrongVolume if it is another."""
        disk = RealDisk()
        try:
            volume = Volume.open(disk, data, read_only=True)
        except UnreadableDocument as error:
            raise WrongVolume(
                f"{data} is no volume of a broker ({error}); check that the broker's claim is "
                "mounted there"
            ) from error
        except (ForeignFile, UnknownFormat) as error:
            raise WrongVolume(str(error)) from error
        if cluster_id is not None and volume.cluster_id != cluster_id:
            raise WrongVolume(
                f"{data} belongs to cluster {volume.cluster_id}, not to {cluster_id}; "
                "mount the claim of a broker of that cluster"
            )
        return cls(volume, disk)

    def topics(self) -> list[TopicFolder]:
        """All topics on this volume; WrongVolume names those that cannot be read."""
        try:
            topics = self._volume.topics()
        except LogError as error:
            raise WrongVolume(f"the topics of {self.data} cannot be listed: {error}") from error
        if self._volume.unreadable:
            names = ", ".join(self._volume.unreadable)
            raise WrongVolume(
                f"{self.data} has topics without a readable topic.json: {names}; "
                "`ibrik log adopt` makes it anew"
            )
        return topics

    def named(self, names: Collection[str]) -> list[TopicFolder]:
        """The topics of these names, or all; WrongVolume names what is not there."""
        folders = self.topics()
        missing = sorted(set(names) - {folder.name for folder in folders})
        if missing:
            raise WrongVolume(
                f"{self.data} does not hold {', '.join(missing)}; check the name, and that its "
                "broker's claim is mounted there"
            )
        return [folder for folder in folders if not names or folder.name in names]

    def topic(self, topic_id: str) -> TopicFolder:
        """One topic; WrongVolume when this volume does not have it."""
        try:
            return self._volume.topic(_checked_id(topic_id))
        except UnreadableDocument as error:
            raise WrongVolume(
                f"{self.data} does not hold topic {topic_id} ({error}); check the topic's id, and "
                "that its broker's claim is mounted there"
            ) from error

    def partition(self, topic: TopicFolder, number: int) -> SealedPartition:
        """List the sealed segments of one partition now; the active one is not among them."""
        path = topic.path / str(number)
        if not 0 <= number < topic.partitions or not self._disk.is_folder(path):
            raise WrongVolume(
                f"{self.data} does not hold partition {number} of topic {topic.name}, which has "
                f"{topic.partitions}; check that its broker's claim is mounted there"
            )
        try:
            sealed = self._sealed(path)
            lineage = self._lineage(path, is_needed=bool(sealed.segments))
        except UnreadableDocument as error:
            raise UnreadablePartition(
                f"{path} cannot be read: {error}; the broker writes it anew at its next start"
            ) from error
        return SealedPartition(number, path, sealed.start_offset, sealed.segments, lineage)

    def _sealed(self, path: Path) -> SealedSegments:
        """The list of segments. Before a log first rolls there may be none."""
        content = read_file(self._disk, path / SEALED)
        if content is not None:
            return decode_sealed(content)
        if sum(name.endswith(LOG_SUFFIX) for name in self._disk.list_folder(path)) > 1:
            raise UnreadableDocument(f"there is no file {SEALED}")
        return SealedSegments(0, (), ())

    def _lineage(self, path: Path, *, is_needed: bool) -> Lineage:
        """The epochs. They are durable before the first record of each, so no record lacks them."""
        content = read_file(self._disk, path / EPOCHS)
        if content is not None:
            return decode_epochs(content)
        if is_needed:
            raise UnreadableDocument(f"there is no file {EPOCHS}")
        return Lineage()


def _checked_id(topic_id: str) -> str:
    try:
        return str(uuid.UUID(topic_id))
    except ValueError as error:
        raise UnreadableDocument(f"{topic_id!r} is no id of a topic") from error
