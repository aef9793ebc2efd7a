"""What channels and subscriptions have in common: look, put, delete, pause, resume.

A wish is written to the database first and carried out then. What could not be carried out stays
marked as unfinished and is tried again, by the next wish or by the catalogue itself; nothing is
undone, except what was new and is refused for good.
"""

import heapq
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, TypeVar

import structlog

from ibrik_api.errors import Refusal
from ibrik_api.model import Model
from ibrik_api.names import check_name
from ibrik_api.resources.channel import Channel
from ibrik_api.resources.subscription import Subscription
from ibrik_broker.metadata.resources import ResourceRow, ResourceState
from ibrik_broker.metadata.rows import Origin
from ibrik_broker.registrations.conditions import Aspect, Fault, Reason
from ibrik_broker.registrations.delivering import Delivering
from ibrik_broker.registrations.entries import Entries, Entry, WishT, precondition
from ibrik_broker.registrations.resolving import PAUSED
from ibrik_broker.registrations.turns import Turns
from ibrik_broker.registrations.uses import Uses
from ibrik_broker.topics.owner import Owner

logger = structlog.get_logger("catalogue")

BEYOND = "~"
"""Sorts after every namespace."""

SpecT = TypeVar("SpecT", bound=Model)
ViewT = TypeVar("ViewT", bound=Channel | Subscription)


@dataclass(frozen=True, slots=True)
class Common:
    """What both collections are made with."""

    dispatcher: Delivering
    turns: Turns
    uses: Uses
    namespace: str
    """Namespace of objects that are made over HTTP."""
    clock_ms: Callable[[], int]
    ticks_ms: Callable[[], int]
    """The clock of circuits and pauses."""


class Collection(ABC, Generic[SpecT, WishT, ViewT]):
    kind: ClassVar[str]
    """As in a resource."""
    word: ClassVar[str]
    """As in a sentence, a path and the codes of errors."""
    model: ClassVar[type[Channel | Subscription]]
    unconfirmed: ClassVar[Aspect]
    """What does not hold while something is unfinished."""

    def __init__(self, entries: Entries[WishT], common: Common) -> None:
        self.entries = entries
        self.namespace = common.namespace
        self._common = common
        self._dispatcher = common.dispatcher
        self._turns = common.turns
        self._clock_ms = common.clock_ms

    async def load(self) -> None:
        """Read every row and carry it out; what cannot be is tried again later."""
        await self.entries.load()
        for entry in list(self.entries):
            await self.try_again(entry)

    async def look(self) -> None:
        """Take over what other brokers changed. In a turn. Raises Refusal."""
        changed, gone = await self.entries.look()
        for entry in gone:
            await self.on_gone(entry)
        for entry in changed:
            await self.try_again(entry)

    async def try_again(self, entry: Entry[WishT]) -> None:
        """What fails is marked, and told once."""
        was_unfinished = entry.is_unfinished
        try:
            await self.carry_out(entry)
        except Refusal as refusal:
            if not was_unfinished:
                logger.warning(
                    "not carried out", kind=self.kind, name=entry.title, why=str(refusal)
                )

    # --- look -------------------------------------------------------------------------------------

    def describe(self, name: str, namespace: str | None = None) -> ViewT:
        """Raises Refusal `unknown-…`, or `subscription-detached`."""
        return self.view(self.find(name, namespace))

    def page(
        self,
        *,
        after: str = "",
        limit: int = 100,
        namespace: str | None = None,
        keep: Callable[[Entry[WishT]], bool] = lambda _entry: True,
    ) -> list[ViewT]:
        """By name and then namespace, those after `after`: `name`, or `name/namespace`."""
        name, _, place = after.partition("/")
        start = (name, place or BEYOND) if after else ("", "")
        keys = (
            (entry.row.name, entry.row.namespace)
            for entry in self.entries
            if entry.row.state is ResourceState.READY
            and namespace in (None, entry.row.namespace)
            and keep(entry)
        )
        chosen = heapq.nsmallest(limit, (key for key in keys if key > start))
        views = []
        for name, space in chosen:
            with suppress(Refusal):  # a row of another version has no view; the start tells of it
                views.append(self.describe(name, space))
        return views

    def observed(self, entry: Entry[WishT]) -> dict[str, Any]:
        """The status alone."""
        status = self.view(entry).status
        return {} if status is None else status.document()

    def find(self, name: str, namespace: str | None = None) -> Entry[WishT]:
        entry = self.entries.get((namespace or self.namespace, name))
        if entry is None:
            raise self.unknown(name)
        if entry.row.state is ResourceState.DETACHED:
            raise Refusal(
                f"{self.word}-detached",
                f"The {self.word} '{name}' was deleted with deletionPolicy Retain: its cursor is "
                f"kept, not served. Bring it back with PUT /v1/{self.word}s/{name}.",
            )
        return entry

    def unknown(self, name: str) -> Refusal:
        return Refusal(
            f"unknown-{self.word}",
            f"There is no {self.word} '{name}'. Create it with PUT /v1/{self.word}s/{name}, or "
            f"list what there is: ibrik {self.word} ls",
        )

    # --- over HTTP --------------------------------------------------------------------------------

    async def create(self, name: str, spec: SpecT) -> tuple[ViewT, bool]:
        """Make it; the flag says whether it is new. The same again changes nothing."""
        async with self._turns:
            entry, is_new = await self.put_now(name, spec, may_update=False)
            return self.view(entry), is_new

    async def put(
        self,
        name: str,
        spec: SpecT,
        *,
        if_match: int | None = None,
        if_none_match: bool = False,
    ) -> tuple[ViewT, bool]:
        """Make it be so; `if_match` is the revision that was read, `if_none_match` wants it new."""
        async with self._turns:
            known = self.entries.get((self.namespace, name))
            if if_none_match and known is not None and known.row.state is ResourceState.READY:
                raise Refusal("precondition-failed", f"There is a {self.word} '{name}' already.")
            entry, is_new = await self.put_now(name, spec, if_match=if_match)
            return self.view(entry), is_new

    async def pause(self, name: str, *, namespace: str | None = None) -> ViewT:
        """Hold deliveries back; also of what a resource wishes, since the wish stays."""
        async with self._turns:
            entry = self.find(name, namespace)
            await self.entries.set_halt(entry, PAUSED)
            await self.carry_out(entry)
            return self.view(entry)

    async def resume(self, name: str, *, namespace: str | None = None) -> ViewT:
        """Go on, whatever it was that stopped it."""
        async with self._turns:
            entry = self.find(name, namespace)
            self.check_resume(entry)
            await self.entries.set_halt(entry, None)
            await self.carry_out(entry, again=True)
            return self.view(entry)

    # --- in a turn; the caller has it -------------------------------------------------------------

    async def put_now(
        self, name: str, spec: SpecT, *, if_match: int | None = None, may_update: bool = True
    ) -> tuple[Entry[WishT], bool]:
        check_name(name, what=self.word)
        owner = Owner(self.namespace, name)
        entry = self.entries.get((self.namespace, name))
        if entry is None:
            if if_match is not None:
                raise precondition(self.word, name, "it is not there")
            return await self.make(spec, owner), True
        if entry.row.state is ResourceState.DETACHED:
            _refuse_changed(self.word, entry, if_match)
            await self.readopt(entry, spec, owner)
        elif self.stored(entry.row) != spec:
            if not may_update:
                raise self._exists(name)
            self.refuse_managed(entry)
            _refuse_changed(self.word, entry, if_match)
            await self.alter(entry, spec, None)
        elif entry.is_unfinished:
            await self.carry_out(entry)
        return entry, False

    async def make(self, spec: SpecT, owner: Owner) -> Entry[WishT]:
        row = self._new_row(spec, owner)
        self.check(row, spec, None)
        entry = await self.entries.insert(row)
        try:
            await self.carry_out(entry)
        except Refusal as refusal:
            if refusal.code != "metadata-unavailable":
                await self.drop(entry)
            raise
        return entry

    async def alter(self, entry: Entry[WishT], spec: SpecT, owner: Owner | None) -> None:
        changes = _changes(entry.row, spec, owner)
        self.check(replace(entry.row, **changes), spec, self.stored(entry.row))
        await self.entries.change(entry, **changes)
        await self.carry_out(entry)

    async def readopt(self, entry: Entry[WishT], spec: SpecT, owner: Owner) -> None:
        changes = _changes(entry.row, spec, owner) | {"state": ResourceState.READY, "halt": None}
        self.check(replace(entry.row, **changes), spec, self.stored(entry.row))
        await self.entries.change(entry, **changes)
        await self.carry_out(entry)

    async def record(self, entry: Entry[WishT], owner: Owner) -> None:
        await self.entries.change(entry, **_identity(entry.row, owner, entry.row.generation))
        await self.carry_out(entry)

    async def carry_out(self, entry: Entry[WishT], *, again: bool = False) -> None:
        """Tell the dispatcher what the row says; `again` also when it was told before."""
        entry.is_unfinished = True
        try:
            await self.serve(entry, again=again)
        except Refusal as refusal:
            reason = (
                Reason.SPEC_UNREADABLE if self.stored(entry.row) is None else Reason.NOT_CONFIRMED
            )
            fault = {self.unconfirmed: Fault(reason, refusal.detail[:2_000])}
            entry.health.note({**entry.health.faults, **fault}, self._clock_ms())
            raise
        entry.is_unfinished = False

    async def finish(self) -> None:
        for entry in [entry for entry in self.entries if entry.is_unfinished]:
            await self.try_again(entry)

    async def halt(self, entry: Entry[WishT], reason: str) -> None:
        """The dispatcher stopped it by itself, and says why."""
        await self.entries.set_halt(entry, reason)
        await self.carry_out(entry)

    def stored(self, row: ResourceRow) -> SpecT | None:
        """None when another version wrote what this one cannot read."""
        try:
            return self.parse(row.spec)
        except Refusal:
            return None

    def refuse_managed(self, entry: Entry[WishT]) -> None:
        row = entry.row
        if row.origin is Origin.RESOURCE:
            raise Refusal(
                "managed-by-resource",
                f"The {self.word} '{row.name}' comes from {self.kind} {entry.title} and is "
                "read-only here. Change that resource with kubectl or ibrik apply.",
                resource={"kind": self.kind, "namespace": row.namespace, "name": row.name},
            )

    # --- what differs -----------------------------------------------------------------------------

    @abstractmethod
    def parse(self, document: dict[str, Any]) -> SpecT: ...

    @abstractmethod
    def view(self, entry: Entry[WishT]) -> ViewT: ...

    @abstractmethod
    def check(self, row: ResourceRow, spec: SpecT, old: SpecT | None) -> None:
        """Raises the Refusal of a wish that cannot be; nothing was written yet."""

    @abstractmethod
    async def serve(self, entry: Entry[WishT], *, again: bool = False) -> None:
        """Tell the dispatcher; may be called again after it failed."""

    @abstractmethod
    def read(self, document: Mapping[str, Any]) -> SpecT:
        """The spec of a resource as it was sent; raises Refusal `invalid-resource`."""

    def keeps(self, row: ResourceRow, spec: SpecT | None) -> bool:
        """Whether deleting keeps the row and the cursor."""
        return False

    async def remove(self, entry: Entry[WishT], *, is_kept: bool) -> None:
        await self.drop(entry)

    @abstractmethod
    async def drop(self, entry: Entry[WishT]) -> None:
        """Remove the row, then what the dispatcher has of it."""

    @abstractmethod
    async def on_gone(self, entry: Entry[WishT]) -> None:
        """Another broker removed the row: let go of what the dispatcher has of it."""

    def check_resume(self, entry: Entry[WishT]) -> None:
        """Raises Refusal when the wish itself says pause."""

    # --- parts ------------------------------------------------------------------------------------

    def _new_row(self, spec: SpecT, owner: Owner) -> ResourceRow:
        now_ms = self._clock_ms()
        return ResourceRow(
            id=str(uuid.uuid4()),
            namespace=owner.namespace,
            name=owner.resource_name,
            resource_uid=owner.uid,
            origin=owner.origin,
            generation=1 if owner.generation is None else owner.generation,
            spec=stored_document(spec),
            state=ResourceState.READY,
            halt=None,
            revision=1,
            created_ms=now_ms,
            updated_ms=now_ms,
        )

    def _exists(self, name: str) -> Refusal:
        return Refusal(
            f"{self.word}-exists",
            f"There is a {self.word} '{name}' with other settings. Use it as it is, or change it "
            f"with PUT /v1/{self.word}s/{name} and If-Match.",
        )


def stored_document(spec: Model) -> dict[str, Any]:
    """As it was wished: a key at its default is left out, which keeps ten thousand rows small."""
    return spec.model_dump(mode="json", exclude_defaults=True)


def _refuse_changed(word: str, entry: Entry[Any], if_match: int | None) -> None:
    if if_match is not None and if_match != entry.row.revision:
        why = f"it has revision {entry.row.revision}, not {if_match}"
        raise precondition(word, entry.row.name, why)


def _changes(row: ResourceRow, spec: Model, owner: Owner | None) -> dict[str, Any]:
    changes: dict[str, Any] = {"spec": stored_document(spec), "generation": row.generation + 1}
    return changes if owner is None else changes | _identity(row, owner, row.generation + 1)


def _identity(row: ResourceRow, owner: Owner, generation: int) -> dict[str, Any]:
    return {
        "origin": owner.origin,
        "resource_uid": owner.uid or row.resource_uid,
        "generation": generation if owner.generation is None else owner.generation,
    }
