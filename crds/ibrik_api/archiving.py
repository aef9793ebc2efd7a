"""Bodies of the admin door for the archive: sealing on demand, and how far a table is.

Jobs send them with a token of the scope `archive`; people read them through `ibrik archive`.
"""

from typing import Annotated

from pydantic import Field, StringConstraints

from ibrik_api.durations import DurationMs, duration_limits
from ibrik_api.model import Model

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
