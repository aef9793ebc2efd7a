"""The rows of topics.

Rows are values here; what a state means and which change is allowed is the registry's business.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import Row

from ibrik_broker.metadata.database import Database
from ibrik_broker.metadata.models import TopicTable
from ibrik_broker.metadata.rows import Origin, RevisedRow, RevisedRows, table_of


class TopicState(StrEnum):
    CREATING = "creating"
    """The row is there, the folder may be."""
    READY = "ready"
    DETACHED = "detached"
    """Deleted under Retain: id and data stay, nothing is served."""
    DELETING = "deleting"
    """The folder is being removed, or already gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRow(RevisedRow):
    """A topic as stored; `spec` is the document of a TopicSpec."""

    namespace: str
    resource_name: str
    resource_uid: str | None
    origin: Origin
    generation: int
    spec: dict[str, Any]
    state: TopicState
    owner: str | None = None
    """The id of the volume that holds it; None when it is older than pools."""


class TopicRows(RevisedRows[TopicRow]):
    def __init__(self, database: Database) -> None:
        super().__init__(database, table_of(TopicTable))

    def _read(self, row: Row[Any]) -> TopicRow:
        values = dict(row._mapping)
        values["origin"] = Origin(values["origin"])
        values["state"] = TopicState(values["state"])
        return TopicRow(**values)
