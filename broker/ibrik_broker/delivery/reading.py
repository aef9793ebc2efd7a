"""Records for flows: read from a partition, decoded once for all flows that want them.

Two hundred subscriptions of one topic read the same batches at nearly the same time; a retry reads
a batch for one record in it. So the last decoded batches are kept, bounded in bytes.
"""

from collections import OrderedDict

from ibrik_broker.partitions.partition import Partition
from ibrik_log.batch import decode, read_header
from ibrik_log.record import StoredRecord

CACHE_BYTES = 8 * 2**20
"""Of encoded batches; decoded they take a few times that."""


class RecordReader:
    def __init__(self, limit_bytes: int = CACHE_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._size_bytes = 0
        self._decoded: OrderedDict[tuple[int, int, int], tuple[int, list[StoredRecord]]] = (
            OrderedDict()
        )

    async def read(self, partition: Partition, offset: int, max_bytes: int) -> list[StoredRecord]:
        """The records from `offset` on, about `max_bytes` of them; none at the end.

        Raises Refusal `offset-below-start`, `offset-above-end`, `corrupt-range` and others.
        """
        records: list[StoredRecord] = []
        for frame in await partition.read(offset, max_bytes):
            records += self._decode(partition, frame)
        if records and records[0].offset < offset:
            del records[: offset - records[0].offset]  # offsets in a partition have no gaps
        return records

    def _decode(self, partition: Partition, frame: bytes) -> list[StoredRecord]:
        # A partition that is opened again is another object, so its id may come back: the length
        # and the place together with it do not meet by chance within the life of a cache entry.
        key = (id(partition), read_header(frame).base_offset, len(frame))
        known = self._decoded.get(key)
        if known is not None:
            self._decoded.move_to_end(key)
            return known[1]
        records = decode(frame)
        self._decoded[key] = (len(frame), records)
        self._size_bytes += len(frame)
        while self._size_bytes > self._limit_bytes and len(self._decoded) > 1:
            self._size_bytes -= self._decoded.popitem(last=False)[1][0]
        return records
