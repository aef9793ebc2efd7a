"""At the start rows and folders become served topics; misfits are reported, never deleted.

An interrupted creation is finished when its folder is there and forgotten when it is not (no one
was told that the topic exists); an interrupted removal is finished.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

import structlog

from ibrik_api.errors import Refusal
from ibrik_api.resources.topic import TopicSpec
from ibrik_broker.metadata.topics import TopicRow, TopicRows, TopicState
from ibrik_broker.partitions.engine import Engine
from ibrik_broker.partitions.refusals import detached
from ibrik_broker.topics.desired import stored_spec
from ibrik_broker.topics.elsewhere import Elsewhere
from ibrik_log.errors import LogError, StorageFailed
from ibrik_log.volume import TopicFolder, Volume

logger = structlog.get_logger("registry")


Forget = Callable[[str], Awaitable[None]]
"""Removes what belongs to the topic of this name, for good. Nothing to remove is fine."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A topic that is kept and not served, and the next step."""

    topic_id: str
    name: str
    detail: str


class Loader:
    def __init__(
        self,
        engine: Engine,
        volume: Volume,
        store: TopicRows,
        clock_ms: Callable[[], int],
        *,
        on_delete: Sequence[Forget] = (),
        elsewhere: Elsewhere | None = None,
    ) -> None:
        self._engine = engine
        self._volume = volume
        self._store = store
        self._clock_ms = clock_ms
        self._on_delete = on_delete
        self._elsewhere = elsewhere
        self._rows: dict[str, TopicRow] = {}
        self._findings: list[Finding] = []

    async def load(self) -> tuple[dict[str, TopicRow], list[Finding]]:
        """The rows by topic name, and what was found wrong."""
        listed = await asyncio.to_thread(self._volume.topics)
        folders = {folder.topic_id: folder for folder in listed}
        unreadable = set(self._volume.unreadable)
        for found in await self._store.all():
            folder = folders.pop(found.id, None)
            unreadable.discard(found.id)
            row = await self._claimed(found, folder)
            if self._elsewhere is None or self._elsewhere.pool.is_me(row.owner):
                await self._load(row, folder)
            else:
                self._elsewhere.put(row)
        for folder in folders.values():
            self._report(
                folder.topic_id,
                folder.name,
                f"The volume holds the topic '{folder.name}' ({folder.topic_id}), but the database "
                "does not. It is kept, not served. Serve it with: "
                f"ibrik log adopt {folder.topic_id}",
            )
        for topic_id in sorted(unreadable):
            self._report(
                topic_id,
                topic_id,
                f"The folder {topic_id} on the volume has no readable topic.json and no row in the "
                "database. It is kept, not served. Restore its topic.json from a backup.",
            )
        return self._rows, self._findings

    async def _claimed(self, row: TopicRow, folder: TopicFolder | None) -> TopicRow:
        """What is older than pools belongs to whoever has its folder, from now on."""
        if self._elsewhere is None or row.owner is not None or folder is None:
            return row
        now_ms, owner = self._clock_ms(), self._volume.volume_id
        return await self._store.update(row, now_ms=now_ms, owner=owner)

    async def _load(self, row: TopicRow, folder: TopicFolder | None) -> None:
        match row.state:
            case TopicState.CREATING if folder is None:
                logger.info("unfinished creation forgotten", topic=row.name, topic_id=row.id)
                await self._remove(row)
            case TopicState.DELETING:
                logger.info("unfinished removal finished", topic=row.name, topic_id=row.id)
                await self._remove(row)
            case TopicState.DETACHED:
                self._rows[row.name] = row
                self._engine.absent[row.name] = detached(row.name)
            case _:
                await self._open(row, folder)

    async def _remove(self, row: TopicRow) -> None:
        await asyncio.to_thread(self._volume.delete_topic, row.id)
        for forget in self._on_delete:
            await forget(row.name)
        await self._store.delete(row)

    async def _open(self, row: TopicRow, folder: TopicFolder | None) -> None:
        self._rows[row.name] = row
        try:
            spec = stored_spec(row)
            fault = self._fault(row, folder, spec)
            if fault is None:
                await self._add_partitions(row, folder, spec)
                await self._engine.open_topic(row.id, row.name, spec)
        except StorageFailed:
            raise
        except (LogError, Refusal) as error:
            fault = f"it cannot be opened ({error}). Run: ibrik log verify"
        if fault is not None:
            self._report(
                row.id,
                row.name,
                f"The topic '{row.name}' ({row.id}) is kept and not served: {fault}",
            )
            return
        if row.state is TopicState.CREATING:
            logger.info("unfinished creation finished", topic=row.name, topic_id=row.id)
            self._rows[row.name] = await self._store.update(
                row, now_ms=self._clock_ms(), state=TopicState.READY
            )

    def _fault(self, row: TopicRow, folder: TopicFolder | None, spec: TopicSpec) -> str | None:
        """Why the folder is not that of the row. An empty log in its place would hide a loss."""
        if row.id in self._volume.unreadable:
            return "its topic.json is unreadable. Restore that file from a backup."
        if folder is None:
            return (
                "its folder is not on the volume. Restore it from a backup, or give the topic up "
                f"with: ibrik topic delete {row.name}"
            )
        if spec.partitions < folder.partitions:
            return (
                f"the database says {spec.partitions} partitions, its folder {folder.partitions}. "
                "Restore the newer database from a backup."
            )
        lost = [str(n) for n in range(folder.partitions) if not (folder.path / str(n)).is_dir()]
        if lost:
            return f"the folders of partitions {', '.join(lost)} are gone. Restore them."
        return None

    async def _add_partitions(
        self, row: TopicRow, folder: TopicFolder | None, spec: TopicSpec
    ) -> None:
        """Finish an update that grew the topic in the database only."""
        if folder is not None and spec.partitions > folder.partitions:
            add = partial(self._volume.add_partitions, row.id, spec.partitions)
            await asyncio.to_thread(add)

    def _report(self, topic_id: str, name: str, detail: str) -> None:
        logger.error("topic not served", topic=name, topic_id=topic_id, detail=detail)
        self._engine.absent.setdefault(name, Refusal("topic-unavailable", detail))
        self._findings.append(Finding(topic_id, name, detail))
