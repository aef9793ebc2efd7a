"""All topics of this broker: open, publish, change, delete, close. Lives on the event loop.

Holds the three threads of a volume: the log writer, the maintenance thread and a small pool that
reads what is no longer in memory. The registry decides which topics there are; doors publish and
read.
"""

import asyncio
import difflib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from ibrik_api.archiving import ArchiveReport
from ibrik_api.errors import Refusal
from ibrik_api.resources.topic import TopicSpec
from ibrik_broker.partitions import archive, snapshots
from ibrik_broker.partitions.flush import Flusher, FlushMode, choose_mode
from ibrik_broker.partitions.maintenance import Maintenance
from ibrik_broker.partitions.messages import Acks, Append, Message, Outcome, Receipt
from ibrik_broker.partitions.partition import Partition
from ibrik_broker.partitions.publish import PublishRequest
from ibrik_broker.partitions.raw import RawPublishRequest
from ibrik_broker.partitions.recovered import log_recovery
from ibrik_broker.partitions.refusals import shutting_down, topic_closed, translated
from ibrik_broker.partitions.retaining import retain
from ibrik_broker.partitions.settings import SEGMENT_BYTES_MAX
from ibrik_broker.partitions.tail import TailCache
from ibrik_broker.partitions.topic import Topic
from ibrik_broker.partitions.writer import LogWriter
from ibrik_log.errors import LogError, StorageFailed
from ibrik_log.files import Disk
from ibrik_log.log import Log
from ibrik_log.volume import Volume

T = TypeVar("T")
OnTopic = Callable[[Topic | None, str], None]
"""Called with a topic that is served now or has more partitions, or None when it is not served any
more; and with its name."""


@dataclass(frozen=True, slots=True)
class EngineConfig:
    flush: FlushMode = FlushMode.AUTO
    min_free_bytes: int = 256 * 1024 * 1024
    segment_bytes_max: int = SEGMENT_BYTES_MAX
    """A segment rolls at the smaller of this and its topic's own size."""
    tail_cache_bytes: int = 64 * 1024 * 1024
    maintenance_seconds: float = 1.0
    reader_threads: int = 4


class Engine:
    """The partition engine of one volume."""

    def __init__(
        self,
        disk: Disk,
        volume: Volume,
        config: EngineConfig,
        *,
        clock_ms: Callable[[], int],
        on_failure: Callable[[StorageFailed], None],
    ) -> None:
        self.absent: dict[str, Refusal] = {}
        """Why a known name is not served (detached, unreadable); kept by the registry."""
        self.tails = TailCache(config.tail_cache_bytes)
        self._disk = disk
        self._volume = volume
        self._clock_ms = clock_ms
        self._config = config
        self._has_failed = False
        self._on_failure = on_failure
        self._loop = asyncio.get_running_loop()
        self._topics: dict[str, Topic] = {}
        self._on_topic: list[OnTopic] = []
        self._on_news: list[Callable[[str], None]] = []
        self._readers = ThreadPoolExecutor(config.reader_threads, thread_name_prefix="reader")
        flusher = Flusher(disk, volume.data, choose_mode(config.flush, volume.data))
        self.writer = LogWriter(
            disk,
            volume.data,
            flusher,
            min_free_bytes=config.min_free_bytes,
            clock_ms=clock_ms,
            on_failure=self._on_storage_failed,
        )
        self._maintenance = Maintenance(self._tick, config.maintenance_seconds)

    def start(self) -> None:
        self.writer.look_for_room()
        self.writer.look_at_capacity()
        self.writer.start()
        self._maintenance.start()
        self._maintenance.submit(self._volume.remove_deleted)

    # --- look up ------------------------------------------------------------------------------

    def topic(self, name: str) -> Topic:
        """Raises Refusal `unknown-topic` (or why a known name is not served)."""
        topic = self._topics.get(name)
        if topic is not None:
            return topic
        if name in self.absent:
            raise self.absent[name].with_traceback(None)
        near = difflib.get_close_matches(name, self._topics, n=1)
        hint = f" Did you mean '{near[0]}'?" if near else ""
        raise Refusal(
            "unknown-topic",
            f"There is no topic '{name}'.{hint} Create it with: ibrik topic create {name}",
        )

    def served(self, name: str) -> Topic | None:
        return self._topics.get(name)

    def topics(self) -> list[Topic]:
        return list(self._topics.values())

    def watch(self, on_topic: OnTopic, on_news: Callable[[str], None]) -> None:
        """Hear of topics that come and go, and (by name) of those that have more to read."""
        self._on_topic.append(on_topic)
        self._on_news.append(on_news)

    def _tell_topic(self, topic: Topic | None, name: str) -> None:
        for hear in self._on_topic:
            hear(topic, name)

    def _tell_news(self, name: str) -> None:
        for hear in self._on_news:
            hear(name)

    # --- publish ------------------------------------------------------------------------------

    async def publish(
        self, topic: Topic, messages: Sequence[Message], acks: Acks = Acks.DURABLE
    ) -> list[Receipt]:
        """Append messages; the receipts come in their order.

        All are validated before the first is appended. Not atomic over partitions when the disk
        refuses in between: a retry with the same ids fills in what is missing.
        """
        request = PublishRequest(topic, messages, acks)
        request.run(self._clock_ms())
        await request.answered
        if request.refusal is not None:
            raise request.refusal.with_traceback(None)  # it may be shared by a group
        return [receipt for receipt in request.receipts if receipt is not None]

    async def publish_raw(
        self, topic: Topic, partition: int | None, batches: bytes
    ) -> list[Receipt]:
        """Append record batches v2 as they are; one receipt for each."""
        request = RawPublishRequest(topic, partition, batches)
        request.run()
        await request.answered
        if request.refusal is not None:
            raise request.refusal.with_traceback(None)  # it may be shared by a group
        return [receipt for receipt in request.receipts if receipt is not None]

    # --- topics -------------------------------------------------------------------------------

    async def open_topic(self, topic_id: str, name: str, spec: TopicSpec) -> Topic:
        """Open (and recover) every partition of a topic whose folders exist; serve it."""
        topic = Topic(topic_id, name, spec, segment_bytes_max=self._config.segment_bytes_max)
        try:
            for index in range(spec.partitions):
                topic.partitions.append(await self._open_partition(topic, index))
        except BaseException:
            for partition in topic.partitions:  # a topic is served whole or not at all
                partition.log.close(clean=False)
            raise
        logs = [partition.log for partition in topic.partitions]
        now_ms = self._clock_ms()
        restore = partial(
            snapshots.restore_window,
            self._disk,
            self._volume.topic_folder(topic_id),
            logs,
            topic.window,
            now_ms,
        )
        await self._in_reader(restore)
        folder = self._volume.topic_folder(topic_id)
        load = partial(archive.load_watermark, self._disk, folder, topic_id, logs)
        topic.apply_watermark(await self._in_reader(load))
        self.absent.pop(name, None)
        self._topics[name] = topic
        self._tell_topic(topic, name)
        return topic

    async def update_topic(self, topic: Topic, spec: TopicSpec) -> None:
        """Take a new spec over; partitions may be added, never removed."""
        for index in range(len(topic.partitions), spec.partitions):
            topic.partitions.append(await self._open_partition(topic, index))
        topic.apply_spec(spec)
        self._tell_topic(topic, topic.name)

    async def close_topic(self, topic: Topic) -> None:
        """Stop serving a topic: answer all that was accepted, then close its logs cleanly."""
        self._topics.pop(topic.name, None)
        self._tell_topic(None, topic.name)
        for partition in topic.partitions:
            partition.close(topic_closed(topic.name))
            await self.writer.barrier(partition)
        # After what the last rolls left to be stored: two that write one snapshot spoil it.
        await asyncio.wrap_future(self._maintenance.call(partial(self._close_logs, topic)))

    async def delete_topic(self, topic: Topic) -> None:
        """Stop serving a topic and let its folder go; the bytes follow in the background."""
        await self.close_topic(topic)
        await self._in_reader(partial(self._volume.delete_topic, topic.id))
        self.free_deleted()

    def free_deleted(self) -> None:
        """Give back the bytes of deleted topics, in the background."""
        self._maintenance.submit(self._volume.remove_deleted)

    async def roll_topic(self, topic: Topic, min_age_ms: int) -> list[int]:
        """Seal the active segments whose oldest record is that old; the sealed ends."""
        return await asyncio.gather(*(p.seal(min_age_ms) for p in topic.partitions))

    async def note_archived(self, topic: Topic, report: ArchiveReport) -> None:
        """Take over how far the archive is; durable when this returns. No offset moves back.

        Raises Refusal: other-topic-id, unknown-partition, beyond-sealed, storage-full …
        """
        async with topic.archive_lock:
            offsets = archive.reported_offsets(topic, report)
            run = None if report.last_run is None else report.last_run.document()
            watermark = topic.watermark.advanced(offsets, report.table.document(), run)
            folder = self._volume.topic_folder(topic.id)
            store = partial(archive.store_watermark, self._disk, folder, topic.id, watermark)
            try:
                await self._in_reader(store)
            except LogError as error:
                if self.served(topic.name) is not topic:
                    raise topic_closed(topic.name) from error
                raise translated(error, topic.name, 0) from error
            topic.apply_watermark(watermark)

    async def purge_topic(self, topic: Topic) -> None:
        """Remove every record that is visible now; offsets go on where they are.

        The bytes follow with the next retention: a gigabyte takes longer than a client waits.
        """
        for partition in topic.partitions:
            cut = partial(partition.log.truncate_before, partition.latest, free=False)
            await self._in_reader(cut)

    async def _open_partition(self, topic: Topic, index: int) -> Partition:
        folder = self._volume.partition_folder(topic.id, index)
        log = await self._in_reader(partial(Log.open, self._disk, folder, topic.settings.log))
        log_recovery(log, topic.name, index)
        partition = Partition(
            topic.name,
            index,
            log,
            topic.settings,
            writer=self.writer,
            tails=self.tails,
            readers=self._readers,
        )
        partition.on_news = partial(self._tell_news, topic.name)
        load = partial(snapshots.load_sequences, self._disk, folder, log)
        partition.sequences = await self._in_reader(load)
        log.on_roll = partial(self._on_roll, topic, partition)
        return partition

    async def _in_reader(self, work: Callable[[], T]) -> T:
        return await self._loop.run_in_executor(self._readers, work)

    # --- snapshots and maintenance ------------------------------------------------------------

    def _on_roll(self, topic: Topic, partition: Partition) -> None:
        """Called by the log writer, which owns the sequences; the window is the event loop's."""
        self._maintenance.submit(partial(self._store_sequences, topic, partition, _copy(partition)))
        self._loop.call_soon_threadsafe(self._snapshot_window, topic)

    def _snapshot_window(self, topic: Topic) -> None:
        snapshot = _window_snapshot(topic, self._clock_ms())
        self._maintenance.submit(partial(self._store_window, topic, snapshot))

    def _store_sequences(
        self, topic: Topic, partition: Partition, snapshot: snapshots.SequencesSnapshot
    ) -> None:
        folder = self._volume.partition_folder(topic.id, partition.index)
        snapshots.store_sequences(self._disk, folder, snapshot)

    def _store_window(self, topic: Topic, snapshot: snapshots.WindowSnapshot) -> None:
        snapshots.store_window(self._disk, self._volume.topic_folder(topic.id), snapshot)

    def _tick(self) -> None:
        """Retention of every partition, and a look at the free space."""
        now_ms = self._clock_ms()
        self.writer.look_for_room()
        self.writer.look_at_capacity()
        for topic in self.topics():
            for partition in topic.partitions:
                if partition.log.is_roll_due(now_ms):
                    roll = Append(0, _nothing)
                    self._loop.call_soon_threadsafe(self.writer.put, partition, roll)
                retain(partition, now_ms)

    # --- end ----------------------------------------------------------------------------------

    def _on_storage_failed(self, error: StorageFailed) -> None:
        self._has_failed = True
        self._on_failure(error)

    async def close(self) -> None:
        """Answer all that was accepted, then leave clean marks, unless the disk has failed."""
        for topic in self.topics():
            for partition in topic.partitions:
                partition.close(shutting_down())
        await self.writer.close()
        await self._in_reader(self._maintenance.close)
        for topic in self.topics():
            await self._in_reader(partial(self._close_logs, topic))
        self._topics.clear()
        self._readers.shutdown()

    def _close_logs(self, topic: Topic) -> None:
        if not self._has_failed:
            for partition in topic.partitions:
                self._store_sequences(topic, partition, _copy(partition))
            self._store_window(topic, _window_snapshot(topic, self._clock_ms()))
        for partition in topic.partitions:
            partition.log.close(clean=not self._has_failed)


def _nothing(_outcome: Outcome) -> None:
    """Nobody waits for a roll."""


def _copy(partition: Partition) -> snapshots.SequencesSnapshot:
    return snapshots.SequencesSnapshot(partition.log.end_offset, list(partition.sequences.rows()))


def _window_snapshot(topic: Topic, now_ms: int) -> snapshots.WindowSnapshot:
    """The ids of flushed records only: an unflushed one may be gone after a crash."""
    ends = [partition.latest for partition in topic.partitions]
    entries = [
        (identity, *known)
        for identity, known in topic.window.entries(now_ms)
        if known.offset < ends[known.partition]
    ]
    return snapshots.WindowSnapshot(ends, entries)
