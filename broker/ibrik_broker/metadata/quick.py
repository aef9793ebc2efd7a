"""A short way to the database for what is written hundreds of times a second.

Statements are SQLAlchemy's on both databases. For SQLite they are compiled once to text and run on
a connection of the writer thread's own: what SQLAlchemy does around each transaction costs several
times as much as the transaction. Values are numbers, text and None, which need no conversion.
"""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection
from sqlalchemy.dialects import sqlite

from ibrik_broker.metadata.engines import PRAGMAS, STATEMENT_TIMEOUT_S

Result = TypeVar("Result")
Rows = Sequence[Mapping[str, Any]]

_DIALECT = sqlite.dialect(paramstyle="named")


class Writer(Protocol):
    """Runs statements in the transaction at hand, each once for every row of values."""

    def execute(self, statement: Any, rows: Rows) -> None: ...

    def query(self, statement: Any, rows: Rows) -> list[tuple[Any, ...]]:
        """What the statement returns, for all rows."""
        ...


class ConnectionWriter:
    """Through SQLAlchemy."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def execute(self, statement: Any, rows: Rows) -> None:
        self._connection.execute(statement, rows)

    def query(self, statement: Any, rows: Rows) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self._connection.execute(statement, rows)]


class FileWriter:
    """SQLite without anything in between. Used by one thread, which opens and closes it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._texts: dict[Any, tuple[str, dict[str, Any]]] = {}

    def run(self, work: Callable[[Writer], Result]) -> Result:
        """One transaction. Raises sqlite3.Error with everything rolled back."""
        connection = self._open()
        try:
            connection.execute("BEGIN IMMEDIATE")
            result = work(self)
            connection.execute("COMMIT")
        except BaseException:
            self.close()  # also what is half done: whatever went wrong, the next one begins anew
            raise
        return result

    def execute(self, statement: Any, rows: Rows) -> None:
        text, constants = self._text(statement, rows[0])
        values = [constants | dict(row) for row in rows] if constants else rows
        self._open().executemany(text, values)

    def query(self, statement: Any, rows: Rows) -> list[tuple[Any, ...]]:
        text, constants = self._text(statement, rows[0])
        found: list[tuple[Any, ...]] = []
        for row in rows:
            found += self._open().execute(text, constants | dict(row)).fetchall()
        return found

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = sqlite3.connect(
                self._path, timeout=STATEMENT_TIMEOUT_S, isolation_level=None
            )
            for pragma in PRAGMAS:
                self._connection.execute(pragma)
        return self._connection

    def _text(self, statement: Any, row: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """The statement as SQL, and the values that it brings along itself."""
        known = self._texts.get(statement)
        if known is None:
            compiled = statement.compile(dialect=_DIALECT, column_keys=list(row))
            constants = {k: v for k, v in compiled.params.items() if k not in row}
            known = self._texts[statement] = (str(compiled), constants)
        return known
