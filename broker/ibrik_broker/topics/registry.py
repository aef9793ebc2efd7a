"""Which topics there are: joins the rows of the metadata store, the folders and the engine.

Every change is written to the database first, as an intention (`creating`, `deleting`), then done
on the volume, then confirmed; `load` finishes what a crash left in between. One change at a time.
What a desired resource means is decided in `desired.py`; how topics look is in `views.py`.
"""

import asyncio
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from ibrik_api.desired import Outcome
from ibrik_api.errors import Refusal
from ibrik_api.names import check_name
from ibrik_api.resources.topic import DeletionPolicy, TopicSpec
from ibrik_api.resources.topic import Topic as TopicResource
from ibrik_api.resources.topic_rules import check_spec, plan_update, refuse_if
from ibrik_broker.metadata.rows import NameTaken, StaleRevision
from ibrik_broker.metadata.topics import TopicRow, TopicRows, TopicState
from ibrik_broker.partitions.engine import Engine
from ibrik_broker.partitions.refusals import detached, translated
from ibrik_broker.partitions.topic import Topic
from ibrik_broker.pool.pool import Pool
from ibrik_broker.topics.applying import apply_resources
from ibrik_broker.topics.changes import Listeners
from ibrik_broker.topics.desired import adopted_spec, check_adoption, stored_spec
from ibrik_broker.topics.elsewhere import Elsewhere
from ibrik_broker.topics.loading import Finding, Forget, Loader
from ibrik_broker.topics.owner import Owner, changes_of, identity_of
from ibrik_broker.topics.refusals import (
    is_empty,
    not_empty,
    precondition,
    raise_exists,
    refuse_changed,
    refuse_managed,
)
from ibrik_broker.topics.views import topic_view
from ibrik_log.errors import LogError
from ibrik_log.volume import Volume

T = TypeVar("T")


class Registry:
    def __init__(
        self,
        engine: Engine,
        volume: Volume,
        rows: TopicRows,
        *,
        clock_ms: Callable[[], int],
        namespace: str = "default",
        pool: Pool | None = None,
    ) -> None:
        self.namespace = namespace
        """Namespace of objects that are made over HTTP."""
        self.engine = engine
        self.findings: list[Finding] = []
        """What `load` found wrong and left as it is."""
        self.on_change = Listeners()
        """Who is told of each topic that appears, changes or goes."""
        self.on_delete: list[Forget] = []
        """What goes with a topic for good: done before its row goes, so that no crash skips it."""
        self._volume = volume
        self._store = rows
        self._clock_ms = clock_ms
        self._rows: dict[str, TopicRow] = {}
        self._lock = asyncio.Lock()
        self.elsewhere = None if pool is None else Elsewhere(pool, engine, rows, self.on_change)
        """Topics of other brokers; None when this broker is alone."""

    async def load(self) -> list[Finding]:
        """Finish what a crash interrupted, open every topic, report what does not fit together."""
        async with self._lock:
            loader = Loader(
                self.engine,
                self._volume,
                self._store,
                self._clock_ms,
                on_delete=self.on_delete,
                elsewhere=self.elsewhere,
            )
            self._rows, self.findings = await loader.load()
        return self.findings

    async def look(self) -> None:
        """Learn what other brokers did. Raises Refusal `metadata-unavailable`."""
        if self.elsewhere is not None:
            async with self._lock:
                await self.elsewhere.look(self._rows.values())

    # --- look -----------------------------------------------------------------------------------

    def describe(self, name: str) -> TopicResource:
        """Raises Refusal `unknown-topic`, `topic-detached` or `topic-unavailable`."""
        topic = self.engine.topic(name)
        return topic_view(self._rows[name], topic)

    def list_topics(self, *, after: str = "", limit: int = 100) -> list[TopicResource]:
        """Topics by name, those after `after`; those of other brokers without their numbers."""
        rows = {topic.name: self._rows[topic.name] for topic in self.engine.topics()}
        if self.elsewhere is not None:
            rows |= self.elsewhere.ready()
        names = sorted(name for name in rows if name > after)
        return [topic_view(rows[name], self.served(name)) for name in names[:limit]]

    # --- over HTTP --------------------------------------------------------------------------------

    async def create_topic(self, name: str, spec: TopicSpec) -> TopicResource:
        """Make a topic, or adopt the detached one of this name (as it was, if nothing is wished).

        The same again changes nothing.

        Raises Refusal: invalid-name, unsupported-field, topic-exists, storage-full …
        """
        async with self._lock:
            return await self._put(name, spec, if_match=None, may_update=False)

    async def ensure_topic(self, name: str, spec: TopicSpec | None = None) -> None:
        """Make a topic, with default settings if none are given, unless it is served."""
        async with self._lock:
            if self.served(name) is None:
                await self._put(name, spec or TopicSpec(), if_match=None, may_update=False)

    async def put_topic(
        self, name: str, spec: TopicSpec, *, if_match: int | None = None
    ) -> tuple[TopicResource, bool]:
        """Make the topic be so; the flag says whether it is new.

        `if_match` is the revision that was read. Raises Refusal: precondition-failed,
        managed-by-resource, partitions-shrink, immutable-field, unsupported-field …
        """
        async with self._lock:
            is_new = name not in self._rows
            return await self._put(name, spec, if_match=if_match, may_update=True), is_new

    async def delete_topic(
        self, name: str, *, if_match: int | None = None, policy: DeletionPolicy | None = None
    ) -> TopicState:
        """Delete by `policy`, or the topic's own; the state says detached or deleting (gone).

        Raises Refusal: unknown-topic, topic-detached, topic-not-empty, managed-by-resource …
        """
        async with self._lock:
            row = self._rows.get(name)
            if row is None or (row.state is TopicState.DETACHED and policy is None):
                self.engine.topic(name)
                raise AssertionError("a topic without a row is never served")
            refuse_managed(row)
            refuse_changed(row, if_match)
            return await self.remove(row, policy or stored_spec(row).deletion_policy)

    async def purge(self, name: str) -> Topic:
        """Remove every message that can be read now; offsets go on where they are."""
        async with self._lock:
            topic = self.engine.topic(name)
            await self.engine.purge_topic(topic)
            return topic

    async def adopt(self, topic_id: str) -> TopicResource:
        """Serve a folder whose row was lost, with the partitions it has, and keep all of it."""
        async with self._lock:
            folders = await asyncio.to_thread(self._volume.topics)
            folder = next((f for f in folders if f.topic_id == topic_id), None)
            if folder is None:
                raise Refusal("not-found", f"The volume holds no topic {topic_id}.")
            if folder.name in self._rows:
                raise_exists(self._rows[folder.name])
            owner = Owner(self.namespace, folder.name)
            spec = adopted_spec(folder.partitions)
            row = self._new_row(folder.name, spec, owner, topic_id=topic_id)
            row = await self._insert(row)
            await self._serve(await self._change(row, state=TopicState.READY), spec)
            self.on_change.tell(row)
            self.findings = [found for found in self.findings if found.topic_id != topic_id]
            return self.describe(folder.name)

    # --- desired --------------------------------------------------------------------------------

    async def apply(self, resources: Sequence[Mapping[str, Any]]) -> list[Outcome]:
        """Make the listed resources so, one after the other; what is not listed stays as it is.

        A refusal concerns its item only; `metadata-unavailable` is raised: nothing would work.
        """
        async with self._lock:
            return await apply_resources(self, resources)

    def by_identity(self, namespace: str, resource_name: str) -> TopicRow | None:
        wanted = (namespace, resource_name)
        rows = self._rows.values()
        return next((r for r in rows if (r.namespace, r.resource_name) == wanted), None)

    def rows(self) -> list[TopicRow]:
        return list(self._rows.values())

    def by_name(self, name: str) -> TopicRow | None:
        return self._rows.get(name)

    def find(self, name: str) -> TopicRow | None:
        """Whoever owns it."""
        found = self._rows.get(name)
        return found if found or self.elsewhere is None else self.elsewhere.by_name(name)

    def find_identity(self, namespace: str, resource_name: str) -> TopicRow | None:
        """Whoever owns it."""
        found = self.by_identity(namespace, resource_name)
        if found is not None or self.elsewhere is None:
            return found
        return self.elsewhere.by_identity(namespace, resource_name)

    def counts(self) -> Counter[str]:
        """How many topics each broker owns, by its id."""
        others = () if self.elsewhere is None else self.elsewhere.rows()
        return Counter(row.owner for row in (*self._rows.values(), *others) if row.owner)

    async def settled(self, row: TopicRow | None) -> TopicRow | None:
        """The row, or None after the removal that an unavailable database interrupted is done."""
        if row is None or row.state is not TopicState.DELETING:
            return row
        await self.remove(row, DeletionPolicy.DELETE)
        return None

    def served(self, name: str) -> Topic | None:
        return self.engine.served(name)

    # --- changes; the caller holds the lock, and has decided that they are allowed ----------------

    async def create(self, name: str, spec: TopicSpec, owner: Owner) -> TopicRow:
        self._refuse_unavailable(name)
        row = await self._insert(self._new_row(name, spec, owner))
        make = partial(self._volume.create_topic, row.id, name, row.created_ms)
        try:
            await self._on_volume(name, partial(make, spec.fingerprint(), spec.partitions))
        except Refusal:
            await self._on_volume(name, partial(self._volume.delete_topic, row.id))
            await self._store.delete(row)
            raise
        row = await self._change(row, state=TopicState.READY)
        await self._serve(row, spec)
        self.on_change.tell(row)
        return row

    async def update(self, row: TopicRow, spec: TopicSpec, owner: Owner | None) -> TopicRow:
        topic = self.engine.topic(row.name)
        old, before = stored_spec(row), row
        row = await self._change(row, **changes_of(row, spec, owner))
        await self._add_partitions(row, old, spec)
        await self.engine.update_topic(topic, spec)
        self.on_change.tell(before, row)
        return row

    async def readopt(self, row: TopicRow, spec: TopicSpec, owner: Owner) -> TopicRow:
        old, before = stored_spec(row), row
        row = await self._change(row, state=TopicState.READY, **changes_of(row, spec, owner))
        await self._add_partitions(row, old, spec)
        await self._serve(row, spec)
        self.on_change.tell(before, row)
        return row

    async def record(self, row: TopicRow, owner: Owner) -> TopicRow:
        before = row
        row = await self._change(row, **identity_of(row, owner, row.generation))
        self.on_change.tell(before, row)
        return row

    async def remove(self, row: TopicRow, policy: DeletionPolicy) -> TopicState:
        """Retain detaches, Delete removes, DeleteIfEmpty removes or refuses."""
        topic = self.served(row.name)
        if policy is DeletionPolicy.DELETE_IF_EMPTY and topic is not None:
            await self._close_empty(row, topic)
        elif policy is DeletionPolicy.DELETE_IF_EMPTY:
            self._refuse_unavailable(row.name)  # detached, unreadable: what it holds is not known
        if policy is DeletionPolicy.RETAIN:
            row = await self._change(row, state=TopicState.DETACHED)
            if topic is not None:
                await self.engine.close_topic(topic)
            self.engine.absent[row.name] = detached(row.name)
            self.on_change.tell(row)
            return row.state
        row = await self._change(row, state=TopicState.DELETING)
        if topic is not None and self.served(row.name) is not None:
            await self.engine.close_topic(topic)
        self.engine.absent.pop(row.name, None)
        await self._on_volume(row.name, partial(self._volume.delete_topic, row.id))
        self.engine.free_deleted()
        for forget in self.on_delete:
            await forget(row.name)
        self.on_change.tell(row)
        await self._store.delete(row)
        del self._rows[row.name]
        return row.state

    # --- parts ------------------------------------------------------------------------------------

    async def _put(
        self, name: str, spec: TopicSpec, *, if_match: int | None, may_update: bool
    ) -> TopicResource:
        check_name(name)
        check_spec(spec)
        if spec.topic_name == name:
            spec = spec.model_copy(update={"topic_name": None})
        row = await self.settled(self._rows.get(name))
        owner = Owner(self.namespace, name)
        if row is None:
            if if_match is not None:
                raise precondition(name, "there is no such topic")
            await self.create(name, spec, owner)
        elif row.state is TopicState.DETACHED:
            if not may_update and spec == TopicSpec():
                spec = stored_spec(row)  # defaults would let retention delete what was kept
            check_adoption(row, spec)
            await self.readopt(row, spec, owner)
        elif self.engine.topic(name).spec != spec:
            if not may_update:
                raise_exists(row)
            refuse_managed(row)
            refuse_changed(row, if_match)
            refuse_if(plan_update(stored_spec(row), spec))
            await self.update(row, spec, None)
        return self.describe(name)

    def _new_row(
        self, name: str, spec: TopicSpec, owner: Owner, *, topic_id: str | None = None
    ) -> TopicRow:
        now_ms = self._clock_ms()
        return TopicRow(
            id=topic_id or str(uuid.uuid4()),
            name=name,
            namespace=owner.namespace,
            resource_name=owner.resource_name,
            resource_uid=owner.uid,
            origin=owner.origin,
            generation=1 if owner.generation is None else owner.generation,
            spec=spec.document(),
            state=TopicState.CREATING,
            revision=1,
            created_ms=now_ms,
            updated_ms=now_ms,
            owner=self._volume.volume_id,
        )

    async def _insert(self, row: TopicRow) -> TopicRow:
        try:
            return await self._store.insert(row)
        except NameTaken as error:
            if self.elsewhere is not None:
                await self.elsewhere.look(self._rows.values())
                self._refuse_unavailable(row.name)  # another broker was faster
            raise Refusal(
                "topic-exists",
                f"The database holds another topic '{row.name}' that is not served yet. "
                "Restart the broker: it finishes what was interrupted.",
            ) from error

    async def _change(self, row: TopicRow, **changes: Any) -> TopicRow:
        try:
            changed = await self._store.update(row, now_ms=self._clock_ms(), **changes)
        except StaleRevision as error:
            fresh = await self._store.get(row.id)
            if fresh is not None:
                self._rows[row.name] = fresh
            raise precondition(row.name, "it was changed at the same time") from error
        self._rows[row.name] = changed
        return changed

    async def _serve(self, row: TopicRow, spec: TopicSpec) -> None:
        try:
            await self.engine.open_topic(row.id, row.name, spec)
        except LogError as error:
            raise translated(error, row.name, 0) from error

    async def _add_partitions(self, row: TopicRow, old: TopicSpec, new: TopicSpec) -> None:
        if new.partitions > old.partitions:
            add = partial(self._volume.add_partitions, row.id, new.partitions)
            await self._on_volume(row.name, add)

    async def _on_volume(self, name: str, work: Callable[[], T]) -> T:
        try:
            return await asyncio.to_thread(work)
        except LogError as error:
            raise translated(error, name, 0) from error

    async def _close_empty(self, row: TopicRow, topic: Topic) -> None:
        """Stop serving an empty topic; what was published while it closed counts too."""
        if not is_empty(topic):
            raise not_empty(topic)
        await self.engine.close_topic(topic)
        if not is_empty(topic):
            await self._serve(row, stored_spec(row))
            raise not_empty(topic)

    def _refuse_unavailable(self, name: str) -> None:
        """A folder without a row keeps its name: a new topic beside it would hide its data."""
        refusal = self.engine.absent.get(name)
        if refusal is not None:
            raise refusal.with_traceback(None)
