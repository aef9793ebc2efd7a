"""The rows of one kind in memory and in the database, always changed together.

An entry also remembers what the dispatcher was told of the row, so that a change can be carried out
as a difference, and again after it failed half way.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Generic, TypeVar

import msgspec

from ibrik_api.errors import Refusal
from ibrik_broker.metadata.follow import Follower
from ibrik_broker.metadata.resources import ResourceRow, ResourceRows
from ibrik_broker.metadata.rows import NameTaken, StaleRevision
from ibrik_broker.registrations.conditions import Health

WishT = TypeVar("WishT")
Key = tuple[str, str]
"""Namespace and name."""
DOCUMENTS_SHARED = 1_024
"""Specs that rows share when they come again; those that are shared by nobody push them out."""


@dataclass(slots=True)
class Entry(Generic[WishT]):
    row: ResourceRow
    wish: WishT | None = None
    """What the dispatcher was told last; None: nothing, or it was told to stop."""
    is_unfinished: bool = False
    """Something of the row is still to be carried out."""
    is_elsewhere: bool = False
    """Another broker of the pool serves it."""
    is_new: bool = False
    """Its row was inserted just now: there is nothing else of it in the database."""
    health: Health = field(default_factory=Health)

    @property
    def id(self) -> str:
        return self.row.id

    @property
    def key(self) -> Key:
        return self.row.namespace, self.row.name

    @property
    def title(self) -> str:
        """For people, as `namespace/name`."""
        return f"{self.row.namespace}/{self.row.name}"


class Entries(Generic[WishT]):
    def __init__(self, rows: ResourceRows, word: str, clock_ms: Callable[[], int]) -> None:
        self._rows = rows
        self._word = word
        self._clock_ms = clock_ms
        self._by_key: dict[Key, Entry[WishT]] = {}
        self._by_id: dict[str, Entry[WishT]] = {}
        self._follower = Follower(rows)

    async def load(self) -> None:
        """Read all rows, in one query."""
        for row in await self._rows.all():
            self._add(Entry(row))

    async def look(self) -> tuple[list[Entry[WishT]], list[Entry[WishT]]]:
        """What other brokers changed, and what they removed. In a turn, as every change."""
        known = {row_id: entry.row.revision for row_id, entry in self._by_id.items()}
        news = await self._follower.look(known)
        gone = [self._by_id[row_id] for row_id in news.gone]
        for entry in gone:
            self._remove(entry)
        changed = []
        for row in news.changed:
            entry = self._by_id.get(row.id) or Entry(row)
            entry.row = row
            self._add(entry)
            changed.append(entry)
        return changed, gone

    def get(self, key: Key) -> Entry[WishT] | None:
        return self._by_key.get(key)

    def by_id(self, row_id: str) -> Entry[WishT] | None:
        return self._by_id.get(row_id)

    def __iter__(self) -> Iterator[Entry[WishT]]:
        return iter(self._by_key.values())

    def __len__(self) -> int:
        return len(self._by_key)

    async def insert(self, row: ResourceRow) -> Entry[WishT]:
        try:
            entry: Entry[WishT] = Entry(await self._rows.insert(row), is_new=True)
        except NameTaken as error:
            entry = await self._read_in(row)
            if entry.row.spec != row.spec or entry.row.origin is not row.origin:
                raise Refusal(
                    f"{self._word}-exists",
                    f"An earlier request made the {self._word} '{row.name}', with other settings. "
                    f"GET /v1/{self._word}s/{row.name} shows them.",
                ) from error
            return entry
        self._add(entry)
        return entry

    async def change(self, entry: Entry[WishT], **changes: Any) -> None:
        try:
            entry.row = _compact(await self._update(entry.row, changes))
        except StaleRevision as error:
            fresh = await self._rows.get(entry.id)
            if fresh is not None:
                entry.row = _compact(fresh)
                entry.is_unfinished = True
            why = "it was changed at the same time"
            raise precondition(self._word, entry.row.name, why) from error

    async def set_halt(self, entry: Entry[WishT], halt: str | None) -> None:
        """Also beside another change: the wish stays as it is."""
        try:
            row = await self._rows.set_halt(entry.id, halt, self._clock_ms())
        except StaleRevision:
            return  # deleted meanwhile: there is nothing left to halt
        if row.revision > entry.row.revision:
            entry.row = _compact(row)

    async def delete(self, entry: Entry[WishT]) -> None:
        try:
            await self._rows.delete(entry.row)
        except StaleRevision:
            fresh = await self._rows.get(entry.id)
            if fresh is not None:
                await self._rows.delete(fresh)
        self._remove(entry)

    async def _update(self, row: ResourceRow, changes: dict[str, Any]) -> ResourceRow:
        try:
            return await self._rows.update(row, now_ms=self._clock_ms(), **changes)
        except StaleRevision:
            fresh = await self._rows.get(row.id)
            if fresh is None or not _differs_in_halt_only(row, fresh):
                raise
            # The dispatcher halted it meanwhile, which does not touch the wish.
            return await self._rows.update(fresh, now_ms=self._clock_ms(), **changes)

    async def _read_in(self, row: ResourceRow) -> Entry[WishT]:
        """What the database holds of this name: an answer of it was lost, so nobody knows yet."""
        rows = await self._rows.all()
        found = next(r for r in rows if (r.namespace, r.name) == (row.namespace, row.name))
        entry: Entry[WishT] = Entry(found, is_unfinished=True)
        self._add(entry)
        return entry

    def _remove(self, entry: Entry[WishT]) -> None:
        del self._by_id[entry.id]
        if self._by_key.get(entry.key) is entry:
            del self._by_key[entry.key]

    def _add(self, entry: Entry[WishT]) -> None:
        entry.row = _compact(entry.row)
        self._by_key[entry.key] = entry
        self._by_id[entry.id] = entry


def precondition(word: str, name: str, why: str) -> Refusal:
    return Refusal(
        "precondition-failed",
        f"The {word} '{name}' is not as it was read: {why}. GET it again and send the new ETag.",
    )


def _differs_in_halt_only(old: ResourceRow, new: ResourceRow) -> bool:
    return replace(old, halt=new.halt, revision=new.revision, updated_ms=new.updated_ms) == new


def _compact(row: ResourceRow) -> ResourceRow:
    """The same row with what is repeated shared: ten thousand subscriptions have few documents.

    Nobody changes a document of a row, so that one may be that of many rows.
    """
    spec = _document(msgspec.json.encode(row.spec))
    return replace(row, namespace=sys.intern(row.namespace), spec=spec)


@lru_cache(maxsize=DOCUMENTS_SHARED)
def _document(text: bytes) -> dict[str, Any]:
    document: dict[str, Any] = _shared(msgspec.json.decode(text))
    return document


def _shared(value: Any) -> Any:
    match value:
        case dict():
            return {sys.intern(key): _shared(item) for key, item in value.items()}
        case list():
            return [_shared(item) for item in value]
        case str() if len(value) < 32:
            return sys.intern(value)
        case _:
            return value
