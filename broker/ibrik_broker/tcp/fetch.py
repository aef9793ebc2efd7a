"""One record for one `FETCH`.

A client that walks through a log asks for one record after the other, and records come in batches
of up to a thousand: what was decoded for the first is kept for the next. The batches that are kept
are shared by all connections and bounded in bytes; a connection remembers only where it is.
"""

from collections import OrderedDict

from ibrik_api.errors import Refusal
from ibrik_broker.partitions.engine import Engine
from ibrik_broker.partitions.partition import Partition
from ibrik_log.batch import decode
from ibrik_log.record import StoredRecord
from ibrik_wire import Fetch, encode_fetched

DECODED_BYTES_MAX = 8 * 2**20
"""Encoded size of the batches kept decoded; decoded they take about three times as much."""

BatchKey = tuple[Partition, int]


class DecodedBatches:
    """Batches of more than one record, decoded; the least recently used leaves first."""

    def __init__(self, limit_bytes: int = DECODED_BYTES_MAX) -> None:
        self.size_bytes = 0
        self._limit_bytes = limit_bytes
        self._batches: OrderedDict[BatchKey, tuple[list[StoredRecord], int]] = OrderedDict()

    def get(self, key: BatchKey) -> list[StoredRecord] | None:
        found = self._batches.get(key)
        if found is None:
            return None
        self._batches.move_to_end(key)
        return found[0]

    def put(self, key: BatchKey, records: list[StoredRecord], size_bytes: int) -> None:
        if len(records) < 2 or key in self._batches:
            return
        self._batches[key] = records, size_bytes
        self.size_bytes += size_bytes
        while self.size_bytes > self._limit_bytes:
            _, (_, dropped_bytes) = self._batches.popitem(last=False)
            self.size_bytes -= dropped_bytes


class Fetcher:
    """Looks records up for one connection."""

    def __init__(self, engine: Engine, decoded: DecodedBatches) -> None:
        self._engine = engine
        self._decoded = decoded
        self._last: BatchKey | None = None

    async def fetch(self, fetch: Fetch) -> bytes:
        """The reply `MSG`. Raises Refusal for what cannot be read."""
        topic = self._engine.topic(fetch.target.topic)
        partition = topic.partition(fetch.target.partition or 0)
        record = self._known(partition, fetch.offset) or await self._read(partition, fetch.offset)
        return encode_fetched(record.offset, record.value or b"")

    def _known(self, partition: Partition, offset: int) -> StoredRecord | None:
        """The record, if it stands in the batch of the last fetch and that is still decoded."""
        if self._last is None or self._last[0] is not partition or offset < partition.earliest:
            return None
        records = self._decoded.get(self._last)
        index = offset - self._last[1]
        return records[index] if records is not None and 0 <= index < len(records) else None

    async def _read(self, partition: Partition, offset: int) -> StoredRecord:
        frames = await partition.read(offset, 1)
        if not frames:
            raise Refusal(
                "offset-above-end",
                f"Offset {offset} of {partition.topic_name}/{partition.index} is not there yet: "
                f"{partition.latest} comes next. Ask again when it was published.",
                earliest=partition.earliest,
                latest=partition.latest,
            )
        records = decode(frames[0])
        key = self._last = partition, records[0].offset
        self._decoded.put(key, records, len(frames[0]))
        # Offsets in a batch are dense, so the place of a record is a subtraction.
        index = offset - records[0].offset
        assert 0 <= index < len(records), "the first batch of a read holds the offset"
        return records[index]
