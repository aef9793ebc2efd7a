"""Bodies of the admin door for the archive: sealing on demand, and how far a table is.

Jobs send them with a token of the scope `archive`; people read them through `ibrik archive`.
"""

from typing import Annotated

from pydantic import Field, StringConstraints

from ibrik_api.durations import DurationMs, duration_limits
from ibrik_api.model import Model
from ibrik_api.resources.archive import ArchiveRun, ArchiveTable
from ibrik_api.resources.meta import Timestamp
from ibrik_api.resources.topic import MAX_PARTITIONS

Text = Annotated[str, StringConstraints(max_length=253)]
Offset = Annotated[int, Field(ge=0, le=2**63 - 1, strict=True)]
PartitionNumber = Annotated[int, Field(ge=0, le=2**31 - 1, strict=True)]


class RollRequest(Model):
    """Which active segments are sealed."""

    min_age_ms: Annotated[DurationMs, duration_limits(0)] = Field(default=0, alias="minAge")
    """Age that the oldest record of a segment must have; 0s seals all that are not empty."""


class RolledPartition(Model):
    partition: PartitionNumber
    """Number of the partition."""
    sealed_up_to: Offset
    """The first offset that is not in a sealed segment."""


class RollResult(Model):
    topic: Text
    """Name of the topic."""
    partitions: list[RolledPartition]
    """Every partition, sealed just now or before."""


class ArchivedPartition(Model):
    partition: PartitionNumber
    """Number of the partition."""
    archived_up_to: Offset
    """The first offset that is not proved to be in the table."""


class ArchiveReport(Model):
    """What a job has proved to be in the table."""

    topic_id: Text
    """Id of the topic that the table is of."""
    table: ArchiveTable
    """The table."""
    partitions: list[ArchivedPartition] = Field(default=[], max_length=MAX_PARTITIONS)
    """How far it goes; partitions that are left out stay as they are."""
    last_run: ArchiveRun | None = None
    """What the run came to; left out, as it was."""


class PartitionArchive(Model):
    partition: PartitionNumber
    """Number of the partition."""
    log_start: Offset
    """The first offset that can be read."""
    archived_up_to: Offset
    """The first offset that is not known to be in the table; never moves back."""
    sealed_up_to: Offset
    """The first offset that is not in a sealed segment."""
    log_end: Offset
    """The offset that the next record gets."""
    held_bytes: Offset
    """Bytes that retention would have deleted and keeps for the archive."""


class TopicArchive(Model):
    """How far the archive of a topic is."""

    topic: Text
    """Name of the topic."""
    topic_id: Text
    """Id of the topic."""
    enabled: bool
    """Whether the topic wishes to be archived; only then something is held back."""
    table: ArchiveTable | None = None
    """The table that holds it; null before the first report."""
    last_run: ArchiveRun | None = None
    """The run that reported last."""
    lag: Offset
    """Messages that are not in the table yet."""
    is_over_hold: bool
    """Whether more is held back than archive.holdMax allows."""
    complete_through: Timestamp | None = None
    """All messages that were appended before this time are in the table."""
    partitions: list[PartitionArchive]
    """Every partition."""
