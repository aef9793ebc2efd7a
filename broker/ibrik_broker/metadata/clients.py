"""The rows of clients that introduced themselves; an id is theirs for ever."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row

from ibrik_broker.metadata.database import Database
from ibrik_broker.metadata.models import ClientTable
from ibrik_broker.metadata.rows import RevisedRow, RevisedRows, table_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRow(RevisedRow):
    description: str


class ClientRows(RevisedRows[ClientRow]):
    def __init__(self, database: Database) -> None:
        super().__init__(database, table_of(ClientTable))

    def _read(self, row: Row[Any]) -> ClientRow:
        return ClientRow(**row._mapping)
