"""The one door to Delta: the table of one topic id, and commits that are fenced.

A `Handle` is the table as it was at one moment. Where each partition stands is read from it and
committed on it; Delta refuses the commit when another run was faster. Proofs are in `slices`.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, CommitProperties, RemoveAction, Transaction

from .errors import JobError, Superseded, WrongTable
from .history import ArchivedRecord
from .schema import SCHEMA, DataFile, LiveFile
from .slices import Hole, Span, tiled
from .store import Store
from .target import store_at

CLUSTER, TOPIC_ID = "ibrik.clusterId", "ibrik.topicId"
_CONCURRENT = re.compile(r"Concurrent transaction failed|Failed to commit transaction: \d")
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NOISE = re.compile(r"\x1b\[[0-9;]*m|[\s↳]+")


@dataclass(frozen=True, slots=True)
class Topic:
    """Whose table it is. Ids, not names: a topic made anew begins at offset 0 again."""

    cluster_id: str
    topic_id: str
    name: str

    def application(self, partition: int) -> str:
        """What Delta keeps the offset of this partition under."""
        return f"archive/{self.cluster_id}/{self.topic_id}/{partition}"


class Table:
    """Where the table of a topic is, or will be."""

    def __init__(self, target: str, topic: Topic) -> None:
        self.topic = topic
        self.location = f"{target.rstrip('/')}/{topic.topic_id}"
        self.store = store_at(self.location)

    def open(self) -> "Handle | None":
        """The table as it is now; None when there is none, WrongTable when it is another's."""
        with _failing(self.store):
            try:
                delta = DeltaTable(self.location, storage_options=self.store.options)
            except TableNotFoundError:
                delta = None
        if delta is None:
            if self.store.is_in_use():
                raise WrongTable(
                    f"{self.location} holds files and no table; move them away, or choose another "
                    "target"
                )
            return None
        return Handle(self, delta)

    def opened(self) -> "Handle":
        """The table as it is now; WrongTable when there is none any more."""
        handle = self.open()
        if handle is None:
            raise WrongTable(f"there is no table at {self.location} any more; check the target")
        return handle

    def create(self) -> "Handle":
        """Make the table, or open the one that another run has made in the meantime."""
        self.store.make()
        configuration = {
            "delta.enableDeletionVectors": "false",
            CLUSTER: self.topic.cluster_id,
            TOPIC_ID: self.topic.topic_id,
        }
        try:
            DeltaTable.create(
                self.location,
                schema=SCHEMA,
                mode="error",
                partition_by=["date"],
                name=self.topic.name,
                configuration=configuration,
                storage_options=self.store.options,
                raise_if_key_not_exists=False,
            )
        except (DeltaError, OSError) as error:
            handle = self.open()
            if handle is None:
                raise _failure("make", self.store, error) from error
            return handle
        self.store.flush_log()
        return self.opened()


def open_known(target: str, topic_id: str) -> "Handle":
    """The table of a topic id, which says itself whose it is: topic and volume may be gone."""
    table = Table(target, Topic("", topic_id, topic_id))
    with _failing(table.store):
        try:
            delta = DeltaTable(table.location, storage_options=table.store.options)
        except TableNotFoundError as error:
            raise WrongTable(
                f"there is no table at {table.location}; check the target, and that the topic is "
                "archived"
            ) from error
        metadata = delta.metadata()
    table.topic = Topic(
        metadata.configuration.get(CLUSTER, ""), topic_id, metadata.name or topic_id
    )
    return Handle(table, delta)


def tables_in(target: str, topics: Collection[str] = ()) -> "list[Handle]":
    """The tables of these topics in a target, or all; other folders are passed by.

    WrongTable when none is there: a target that was not mounted looks like that.
    """
    tables = []
    for name in filter(_ID.fullmatch, store_at(target).folders()):
        store = store_at(f"{target.rstrip('/')}/{name}")
        with _failing(store):
            is_table = DeltaTable.is_deltatable(store.location, store.options)
        if is_table:
            tables.append(open_known(target, name))
    missing = sorted(set(topics) - {table.topic.name for table in tables})
    if missing or not tables:
        what = f"no table of {', '.join(missing)}" if missing else "no table of an archive"
        raise WrongTable(f"{target} holds {what}; check the target, and that it is mounted")
    return [table for table in tables if not topics or table.topic.name in topics]


class Handle:
    """The table at one version. One commit, then open it anew."""

    def __init__(self, table: Table, delta: DeltaTable) -> None:
        self._table = table
        self._delta = delta
        self._live: list[LiveFile] | None = None
        metadata = delta.metadata()
        self.table_id = str(metadata.id)
        self.version = delta.version()
        self._refuse_another(metadata.configuration)

    @property
    def topic(self) -> Topic:
        return self._table.topic

    @property
    def location(self) -> str:
        return self._table.location

    @property
    def store(self) -> Store:
        return self._table.store

    def reopened(self) -> "Handle":
        """The table as it is now."""
        return self._table.opened()

    def dataset(self) -> ds.Dataset:
        """The rows of this version, for whom reads them with Arrow."""
        with _failing(self.store):
            return self._delta.to_pyarrow_dataset(filesystem=self.store.filesystem)

    def archived_up_to(self, partition: int) -> int | None:
        """The first offset of the partition that no commit has brought; None before the first."""
        return self._delta.transaction_version(self._table.topic.application(partition))

    def prove(self, partitions: Iterable[int] | None = None) -> dict[int, Span]:
        """The range of each partition whose every offset is in the live files exactly once.

        Without numbers, of all that are in the files. WrongTable when one does not reach to where
        the commits say, as after a `restore`.
        """
        spans = self._spans()
        proved: dict[int, Span] = {}
        for number in sorted(spans) if partitions is None else partitions:
            end = self.archived_up_to(number)
            try:
                whole = tiled(spans.get(number, []))
            except Hole as hole:
                raise self._not_whole(number, str(hole)) from hole
            if end is None and whole is None:
                continue
            if end is None or whole is None or whole.end != end:
                live = "nothing" if whole is None else f"offsets up to {whole.end - 1}"
                raise self._not_whole(number, f"commits reach offset {end}, live files {live}")
            proved[number] = whole
        return proved

    def commit(self, files: Sequence[DataFile], ends: dict[int, int], run: dict[str, Any]) -> None:
        """Make these files visible and move the partitions to `ends`, all of it or nothing.

        Delta takes a version that is lower than the one it has, so that is refused here.
        """
        for number, end in ends.items():
            start = self.archived_up_to(number)
            if start is not None and end <= start:
                raise WrongTable(f"partition {number} stands at {start} and cannot go to {end}")
        topic = self._table.topic
        transactions = [Transaction(topic.application(number), end) for number, end in ends.items()]
        added = [_action(file, is_new=True) for file in files]
        self._commit(added, run, app_transactions=transactions)

    def replace(
        self, merged: Sequence[DataFile], paths: Sequence[str], run: dict[str, Any], now_ms: int
    ) -> None:
        """Let these files stand for those of `paths`, whose rows they hold; no row changes.

        Delta does not refuse to remove a file twice, so that any commit since this handle was
        opened ends it: open the table anew, and try again.
        """
        live = {file.path: file for file in self.live_files()}
        if not live.keys() >= set(paths):
            raise self._superseded()
        removed = [
            RemoveAction(path, False, now_ms, live[path].size_bytes, {"date": live[path].date})
            for path in paths
        ]
        added = [_action(file, is_new=False) for file in merged]
        self._commit([*added, *removed], run, max_commit_retries=0)

    def _commit(
        self, actions: Sequence[AddAction | RemoveAction], run: dict[str, Any], **how: Any
    ) -> None:
        properties = CommitProperties(custom_metadata={"ibrik": json.dumps(run)}, **how)
        try:
            self._delta.create_write_transaction(
                [*actions], "append", SCHEMA, ["date"], commit_properties=properties
            )
        except CommitFailedError as error:
            if _CONCURRENT.search(str(error)):
                raise self._superseded() from error
            raise _failure("commit to", self._table.store, error) from error
        except (DeltaError, OSError) as error:
            raise _failure("commit to", self._table.store, error) from error
        self._table.store.flush_log()

    def record(self, partition: int, offset: int) -> ArchivedRecord | None:
        """What the table holds at an offset; None when that is a gap, or not in it."""
        wanted = (
            (pc.field("partition") == partition)
            & (pc.field("offset") == offset)
            & pc.field("gap_to").is_null()
        )
        for file in self.live_files():
            if not any(n == partition and start <= offset < end for n, start, end in file.spans):
                continue
            with _failing(self._table.store):
                found = pq.read_table(
                    self._table.store.read(file.path),
                    columns=["timestamp", "key", "value"],
                    filters=wanted,
                    partitioning=None,
                )
            if found.num_rows:
                time, key, value = (column[0] for column in found.columns)
                return ArchivedRecord(time.value // 1000, key.as_py(), value.as_py())
        return None

    def _superseded(self) -> Superseded:
        return Superseded(
            f"another run has changed the table of {self._table.topic.name} in the meantime; "
            "nothing of this one is visible, and the next goes on from there"
        )

    def live_files(self) -> list[LiveFile]:
        """The files that readers see; one that does not tell what it holds is looked into."""
        if self._live is None:
            with _failing(self._table.store):
                actions = pa.table(self._delta.get_add_actions(flatten=True)).to_pylist()
            self._live = [self._live_file(action) for action in actions]
        return self._live

    def unneeded(self, hours: int) -> list[str]:
        """Files in its place that no version of the last hours has; nothing is deleted."""
        with _failing(self._table.store):
            return self._delta.vacuum(
                hours, dry_run=True, enforce_retention_duration=False, full=True
            )

    def _live_file(self, action: Any) -> LiveFile:
        first, last = action.get("min.offset"), action.get("max.offset")
        number = action.get("min.partition")
        rows = action["num_records"]
        is_told = first is not None and last is not None and action["null_count.gap_to"] == rows
        if is_told and number == action["max.partition"] and rows == last - first + 1:
            spans = [(number, first, last + 1)]
        else:
            spans = [(number, *span) for number, span in self._read_spans(action["path"])]
        return LiveFile(
            path=action["path"],
            date=str(action["partition.date"]),
            size_bytes=action["size_bytes"],
            rows=rows,
            spans=tuple(spans),
        )

    def _spans(self) -> dict[int, list[Span]]:
        """What the live files hold, by partition."""
        spans: dict[int, list[Span]] = {}
        for file in self.live_files():
            for number, start, end in file.spans:
                spans.setdefault(number, []).append(Span(start, end))
        return spans

    def _read_spans(self, path: str) -> Iterator[tuple[int, Span]]:
        """One span for each run of rows that follow each other; a gap is a row of its own."""
        columns = ["partition", "offset", "gap_to"]
        with _failing(self._table.store):
            rows = pq.read_table(self._table.store.read(path), columns=columns, partitioning=None)
        current: tuple[int, Span] | None = None
        for batch in rows.sort_by(
            [("partition", "ascending"), ("offset", "ascending")]
        ).to_batches():
            for number, offset, gap_to in zip(*batch.to_pydict().values(), strict=True):
                end = offset + 1 if gap_to is None else gap_to
                if current is not None and current[0] == number and current[1].end == offset:
                    current = number, Span(current[1].start, end)
                    continue
                if current is not None:
                    yield current
                current = number, Span(offset, end)
        if current is not None:
            yield current

    def _refuse_another(self, configuration: dict[str, str]) -> None:
        topic = self._table.topic
        found = configuration.get(CLUSTER), configuration.get(TOPIC_ID)
        if found == (topic.cluster_id, topic.topic_id):
            return
        whose = f"of topic {found[1]} of cluster {found[0]}" if found[1] else "not of an archive"
        raise WrongTable(
            f"the table at {self._table.location} is {whose}, and {topic.name} is {topic.topic_id} "
            f"of {topic.cluster_id}; choose another target"
        )

    def _not_whole(self, partition: int, what: str) -> WrongTable:
        return WrongTable(
            f"the table at {self._table.location} does not hold what it should of partition "
            f"{partition}: {what}. Bring it back to its newest good version, or begin a new table "
            "in another target with --new-table; until then nothing is archived"
        )


def _action(file: DataFile, *, is_new: bool) -> AddAction:
    """Rows that are not new do not come to those who follow the table."""
    limits = {"partition": file.partition, "offset": file.start}
    tops = {"partition": file.partition, "offset": file.last}
    stats = {
        "numRecords": file.rows,
        "minValues": limits | {"timestamp": file.first_time},
        "maxValues": tops | {"timestamp": file.last_time},
        "nullCount": {"partition": 0, "offset": 0, "timestamp": 0, "gap_to": file.rows - file.gaps},
    }
    return AddAction(
        file.path, file.size_bytes, {"date": file.date}, file.written_ms, is_new, json.dumps(stats)
    )


def _failure(what: str, store: Store, error: Exception) -> JobError:
    """One line of what delta-rs says in many, with colours."""
    return store.failure(what, _NOISE.sub(" ", str(error)).strip())


@contextmanager
def reading(handle: Handle) -> Iterator[None]:
    """What goes wrong while rows of this table are read, as what ends a job."""
    with _failing(handle.store):
        yield


@contextmanager
def _failing(store: Store) -> Iterator[None]:
    try:
        yield
    except TableNotFoundError:
        raise
    except (DeltaError, OSError, pa.ArrowException) as error:
        raise _failure("read", store, error) from error
