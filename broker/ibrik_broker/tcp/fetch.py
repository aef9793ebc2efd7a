"""One record for one `FETCH`. The last batch is kept decoded while a client walks through it."""

from ibrik_api.errors import Refusal
from ibrik_broker.partitions.engine import Engine
from ibrik_broker.partitions.partition import Partition
from ibrik_log.batch import decode, read_header
from ibrik_log.record import StoredRecord
from ibrik_wire import Fetch, encode_fetched


class Fetcher:
    """Looks records up for one run of fetches, and is dropped at its end."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._partition: Partition | None = None
        self._records: list[StoredRecord] = []

    async def fetch(self, fetch: Fetch) -> bytes:
        """The reply `MSG`. Raises Refusal for what cannot be read."""
        topic = self._engine.topic(fetch.target.topic)
        partition = topic.partition(fetch.target.partition or 0)
        record = self._known(partition, fetch.offset) or await self._read(partition, fetch.offset)
        return encode_fetched(record.offset, record.value or b"")

    def _known(self, partition: Partition, offset: int) -> StoredRecord | None:
        if partition is not self._partition or offset < partition.earliest:
            return None
        index = offset - self._records[0].offset
        return self._records[index] if 0 <= index < len(self._records) else None

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
        # Offsets in a batch are dense, so the place of a record is a subtraction.
        self._partition, self._records = partition, decode(frames[0])
        index = offset - read_header(frames[0]).base_offset
        assert 0 <= index < len(self._records), "the first batch of a read holds the offset"
        return self._records[index]
