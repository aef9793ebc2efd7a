"""The data folder of a broker: whose it is, which format, which topics (docs/formats/volume.md).

One process at a time, by a lock. Nothing is changed before the folder is known to be ours, and an
unreadable `topic.json` never deletes anything: such a topic is kept, reported and not served.
"""

import os
import uuid
from dataclasses import dataclass, replace
from pathlib import Path

from .document import decode_document, encode_document
from .errors import ForeignFile, UnknownFormat, UnreadableDocument, VolumeInUse
from .files import (
    AppendFile,
    Disk,
    make_folders,
    read_file,
    remove_file,
    replace_file,
    storage_errors,
)

FORMAT_VERSION = "ibrik 1"
CLUSTER_ID, VOLUME_ID, FORMAT, LOCK, TOPICS = "CLUSTER_ID", "VOLUME_ID", "FORMAT", "lock", "topics"
TOPIC_FILE = "topic.json"
DELETED_SUFFIX = ".deleted"
TEMPORARY_SUFFIX = ".tmp"
OURS = {CLUSTER_ID, VOLUME_ID, FORMAT, LOCK, TOPICS, "lost+found"}


@dataclass(frozen=True, slots=True)
class TopicFolder:
    """A topic as its folder tells it, also when the metadata database is lost."""

    topic_id: str
    name: str
    created_ms: int
    config_hash: str
    partitions: int
    path: Path


class Volume:
    """An open data folder. Not thread-safe, except `remove_deleted` beside everything else."""

    def __init__(
        self, disk: Disk, data: Path, cluster_id: str, volume_id: str, lock: AppendFile | None
    ) -> None:
        self.data = data
        self.cluster_id = cluster_id
        self.volume_id = volume_id
        self.unreadable: list[str] = []  # topic folders that are kept and not served
        self._disk = disk
        self._lock = lock

    @classmethod
    def open(
        cls, disk: Disk, data: Path, *, read_only: bool = False, joins: bool = False
    ) -> "Volume":
        """Open the data folder, and create it if there is none; read-only takes no lock.

        With `joins` a new folder has no cluster yet (`cluster_id` is empty) until `join`.

        Raises ForeignFile, UnknownFormat, VolumeInUse and, on a broken id, UnreadableDocument.
        """
        with storage_errors(f"open {data}"):
            _refuse_what_is_not_ours(disk, data)
            if read_only:
                return cls(
                    disk,
                    data,
                    _load_id(disk, data / CLUSTER_ID),
                    _load_id(disk, data / VOLUME_ID),
                    None,
                )
            make_folders(disk, data)
            lock = _take_lock(disk, data)
            try:
                return cls._open_locked(disk, data, lock, joins)
            except BaseException:
                lock.close()
                raise

    @classmethod
    def _open_locked(cls, disk: Disk, data: Path, lock: AppendFile, joins: bool) -> "Volume":
        for name in (VOLUME_ID,) if joins else (CLUSTER_ID, VOLUME_ID):
            if not disk.exists(data / name):
                replace_file(disk, data / name, f"{uuid.uuid4()}\n".encode())
        if not disk.exists(data / FORMAT):
            replace_file(disk, data / FORMAT, f"{FORMAT_VERSION}\n".encode())
        is_known = not joins or disk.exists(data / CLUSTER_ID)
        cluster_id = _load_id(disk, data / CLUSTER_ID) if is_known else ""
        volume_id = _load_id(disk, data / VOLUME_ID)
        make_folders(disk, data / TOPICS)  # last: its presence without FORMAT is not a crash
        return cls(disk, data, cluster_id, volume_id, lock)

    def join(self, cluster_id: str) -> None:
        """A new folder becomes one of this cluster, durably and for ever."""
        assert not self.cluster_id, "a folder joins once"
        replace_file(self._disk, self.data / CLUSTER_ID, f"{cluster_id}\n".encode())
        self.cluster_id = cluster_id

    def close(self) -> None:
        """Let go of the lock."""
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.close()

    # --- topics -------------------------------------------------------------------------------

    def topics(self) -> list[TopicFolder]:
        """All topics that can be read; the others are named in `unreadable`."""
        found = []
        unreadable = []
        with storage_errors(f"list {self.data / TOPICS}"):
            names = self._disk.list_folder(self.data / TOPICS)
        for name in names:
            if name.endswith(DELETED_SUFFIX):
                continue
            try:
                found.append(self.topic(name))
            except UnreadableDocument:
                unreadable.append(name)
        self.unreadable = unreadable
        return found

    def topic(self, topic_id: str) -> TopicFolder:
        """Read one topic's file; UnreadableDocument when there is none or it is damaged."""
        folder = self.data / TOPICS / topic_id
        content = read_file(self._disk, folder / TOPIC_FILE)
        if content is None:
            raise UnreadableDocument(f"{folder} has no {TOPIC_FILE}")
        topic = _decode_topic(content, folder)
        if topic.topic_id != topic_id:
            raise UnreadableDocument(f"{folder} holds the {TOPIC_FILE} of {topic.topic_id}")
        return topic

    def create_topic(
        self, topic_id: str, name: str, created_ms: int, config_hash: str, partitions: int
    ) -> TopicFolder:
        """Create a topic's folders, durable when this returns. Doing it twice is no mistake."""
        folder = self.topic_folder(topic_id)
        topic = TopicFolder(topic_id, name, created_ms, config_hash, partitions, folder)
        self._make_partitions(topic)
        self._write_topic(topic)
        return topic

    def add_partitions(self, topic_id: str, partitions: int) -> TopicFolder:
        """Raise the number of partitions to `partitions`."""
        topic = self.topic(topic_id)
        assert partitions >= topic.partitions, "partitions are never taken away"
        topic = replace(topic, partitions=partitions)
        self._make_partitions(topic)
        self._write_topic(topic)
        return topic

    def topic_folder(self, topic_id: str) -> Path:
        assert str(uuid.UUID(topic_id)) == topic_id, "a topic's id is a UUID"
        return self.data / TOPICS / topic_id

    def partition_folder(self, topic_id: str, partition: int) -> Path:
        return self.topic_folder(topic_id) / str(partition)

    def delete_topic(self, topic_id: str) -> None:
        """Let a topic go by name, durably; `remove_deleted` gives the space back.

        A topic that is gone already is no mistake: a crash may have come in between.
        """
        folder = self.topic_folder(topic_id)
        if not self._disk.exists(folder):
            return
        with storage_errors(f"delete {folder}"):
            self._disk.rename(folder, folder.with_name(topic_id + DELETED_SUFFIX))
            self._disk.flush_folder(folder.parent)

    def remove_deleted(self) -> int:
        """Remove what deleted topics left, on the maintenance thread; how many topics."""
        with storage_errors(f"list {self.data / TOPICS}"):
            names = self._disk.list_folder(self.data / TOPICS)
        deleted = [name for name in names if name.endswith(DELETED_SUFFIX)]
        for name in deleted:
            self._remove_folder(self.data / TOPICS / name)
        return len(deleted)

    # --- inside -------------------------------------------------------------------------------

    def _make_partitions(self, topic: TopicFolder) -> None:
        for partition in range(topic.partitions):
            make_folders(self._disk, topic.path / str(partition))

    def _write_topic(self, topic: TopicFolder) -> None:
        body = {
            "id": topic.topic_id,
            "name": topic.name,
            "created_ms": topic.created_ms,
            "config_hash": topic.config_hash,
            "partitions": topic.partitions,
        }
        replace_file(self._disk, topic.path / TOPIC_FILE, encode_document("topic", 1, body))

    def _remove_folder(self, folder: Path) -> None:
        with storage_errors(f"remove {folder}"):
            for name in self._disk.list_folder(folder):
                if self._disk.is_folder(folder / name):
                    self._remove_folder(folder / name)
                else:
                    remove_file(self._disk, folder / name, is_paced=True)
            self._disk.remove_folder(folder)


def _refuse_what_is_not_ours(disk: Disk, data: Path) -> None:
    """Look before anything is changed."""
    names = disk.list_folder(data) if disk.is_folder(data) else []
    for name in names:
        is_ours = name in OURS or name.startswith("metadata.db") or ".quarantine" in name
        if not is_ours and not name.endswith(TEMPORARY_SUFFIX):
            raise ForeignFile(str(data), name)
    content = read_file(disk, data / FORMAT, limit_bytes=256)
    if content is not None:
        found = content.decode("utf-8", "replace").strip()
        if found != FORMAT_VERSION:
            raise UnknownFormat(str(data), found or "(empty)", FORMAT_VERSION)
    elif TOPICS in names:
        raise UnknownFormat(str(data), "(no FORMAT file)", FORMAT_VERSION)


def _take_lock(disk: Disk, data: Path) -> AppendFile:
    lock = AppendFile(disk, data / LOCK, create=True)
    if not disk.lock(lock.file_descriptor()):
        lock.close()
        content = read_file(disk, data / LOCK, limit_bytes=32) or b""
        text = content.decode("ascii", "replace").strip()
        raise VolumeInUse(str(data), int(text) if text.isdecimal() else None)
    lock.truncate(0)
    lock.append([f"{os.getpid()}\n".encode()])
    return lock


def _load_id(disk: Disk, path: Path) -> str:
    content = read_file(disk, path, limit_bytes=64) or b""
    try:
        return str(uuid.UUID(content.decode("ascii").strip()))
    except ValueError as error:
        raise UnreadableDocument(f"{path} holds no id: {content!r}") from error


def _decode_topic(content: bytes, folder: Path) -> TopicFolder:
    body = decode_document(content, "topic", 1)
    try:
        return TopicFolder(
            topic_id=str(body["id"]),
            name=str(body["name"]),
            created_ms=int(body["created_ms"]),
            config_hash=str(body["config_hash"]),
            partitions=int(body["partitions"]),
            path=folder,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise UnreadableDocument(f"{folder / TOPIC_FILE} is incomplete: {error!r}") from error
