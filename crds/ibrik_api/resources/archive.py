"""Which table an archive is, and what its last run came to: said by jobs, kept by the broker."""

from typing import Annotated

from pydantic import Field, StringConstraints

from ibrik_api.model import Model
from ibrik_api.resources.meta import Timestamp

Count = Annotated[int, Field(ge=0, le=2**63 - 1, strict=True)]


class ArchiveTable(Model):
    id: Annotated[str, StringConstraints(min_length=1, max_length=64)]
    """Id of the table, which it keeps when it is moved."""
    url: Annotated[str, StringConstraints(min_length=1, max_length=2_048)]
    """Where the table is."""
    version: Count
    """Version of the table in which all that is said to be archived is."""


class ArchiveRun(Model):
    started_at: Timestamp
    """When the run began."""
    ended_at: Timestamp
    """When it ended."""
    code: Annotated[int, Field(ge=0, le=255, strict=True)]
    """0 done, 2 nothing to do, 3 superseded, 64 configuration, 75 try again."""
    rows: Count
    """Rows that it added to the table."""
