"""Clients that introduced themselves by a name: each has an id that never changes.

An id says who somebody is in answers and logs; it opens nothing. In memory and in the database.
"""

import asyncio
import uuid
from bisect import bisect_right
from collections.abc import Callable

from ibrik_api.errors import Refusal
from ibrik_broker.auth.publishers import changed_meanwhile
from ibrik_broker.metadata.clients import ClientRow, ClientRows
from ibrik_broker.metadata.rows import Mark, NameTaken, StaleRevision


class Clients:
    def __init__(self, rows: ClientRows, *, clock_ms: Callable[[], int]) -> None:
        self._store = rows
        self._clock_ms = clock_ms
        self._mark: Mark | None = None
        self._by_name: dict[str, ClientRow] = {}
        self._lock = asyncio.Lock()

    async def load(self) -> None:
        self._by_name = {row.name: row for row in await self._store.all()}

    async def look(self) -> None:
        """Learn what other brokers did. Raises Refusal `metadata-unavailable`."""
        async with self._lock:
            mark = await self._store.mark()
            if mark != self._mark:
                await self.load()
                self._mark = mark

    def find(self, name: str) -> ClientRow | None:
        return self._by_name.get(name)

    def describe(self, name: str) -> ClientRow:
        """Raises Refusal `unknown-client`."""
        row = self.find(name)
        if row is None:
            raise Refusal(
                "unknown-client",
                f"There is no client {name[:60]!r}. Register it with PUT /v1/clients/{name[:60]}.",
            )
        return row

    def list(self, *, after: str = "", limit: int = 100) -> list[ClientRow]:
        """By name, those after `after`."""
        names = sorted(self._by_name)
        first = bisect_right(names, after)
        return [self._by_name[name] for name in names[first : first + limit]]

    async def put(
        self, name: str, description: str, *, if_match: int | None = None
    ) -> tuple[ClientRow, bool]:
        """Make the client be so; the flag says whether it is new.

        Raises Refusal `precondition-failed`.
        """
        async with self._lock:
            row = self.find(name)
            _check(row, name, if_match)
            try:
                self._by_name[name] = await self._put(row, name, description)
            except (NameTaken, StaleRevision) as error:
                await self.load()  # it knows better after a commit of unknown outcome
                raise changed_meanwhile(f"The client '{name}'") from error
            return self._by_name[name], row is None

    async def remove(self, name: str, *, if_match: int | None = None) -> None:
        """Raises Refusal: unknown-client, precondition-failed."""
        async with self._lock:
            row = self.describe(name)
            _check(row, name, if_match)
            try:
                await self._store.delete(row)
            except StaleRevision as error:
                await self.load()
                if name in self._by_name:
                    raise changed_meanwhile(f"The client '{name}'") from error
            self._by_name.pop(name, None)

    async def _put(self, row: ClientRow | None, name: str, description: str) -> ClientRow:
        now_ms = self._clock_ms()
        if row is not None:
            if row.description == description:
                return row
            return await self._store.update(row, now_ms=now_ms, description=description)
        new = ClientRow(
            id=str(uuid.uuid4()),
            name=name,
            description=description,
            revision=1,
            created_ms=now_ms,
            updated_ms=now_ms,
        )
        return await self._store.insert(new)


def _check(row: ClientRow | None, name: str, if_match: int | None) -> None:
    if if_match is not None and (row is None or row.revision != if_match):
        raise changed_meanwhile(f"The client '{name}'")
