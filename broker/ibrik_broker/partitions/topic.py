"""One topic of this broker: its partitions, its partitioner and its deduplication window."""

import asyncio
from collections.abc import Sequence

from ibrik_api.errors import Refusal
from ibrik_api.resources.topic import TopicSpec
from ibrik_broker.partitions.deduplication import DeduplicationWindow
from ibrik_broker.partitions.partition import Partition, wait_for_any
from ibrik_broker.partitions.partitioner import PartitionChooser
from ibrik_broker.partitions.settings import SEGMENT_BYTES_MAX, TopicSettings, topic_settings
from ibrik_log.watermark import Watermark


class Topic:
    """What the doors hold after they looked a name up."""

    def __init__(
        self,
        topic_id: str,
        name: str,
        spec: TopicSpec,
        *,
        segment_bytes_max: int = SEGMENT_BYTES_MAX,
    ) -> None:
        self.id = topic_id
        self.name = name
        self.spec = spec
        self._segment_bytes_max = segment_bytes_max
        self.settings: TopicSettings = topic_settings(spec, self._segment_bytes_max)
        self.partitions: list[Partition] = []
        self.window = DeduplicationWindow(self.settings.deduplication_window_ms)
        self.duplicate_count = 0
        self.watermark = Watermark()
        self.archive_lock = asyncio.Lock()
        """One report of the archive at a time."""
        self._chooser = PartitionChooser(spec.partitioner, spec.partitions)

    def choose_partition(self, key: bytes | None) -> int:
        return self._chooser.choose(key)

    def partition(self, index: int) -> Partition:
        """Raises Refusal `unknown-partition`."""
        if 0 <= index < len(self.partitions):
            return self.partitions[index]
        raise Refusal(
            "unknown-partition",
            f"The topic '{self.name}' has partitions 0 to {len(self.partitions) - 1}, not {index}.",
        )

    def apply_spec(self, spec: TopicSpec) -> None:
        """Take new settings over; added partitions are opened by the engine beforehand."""
        self.spec = spec
        self.settings = topic_settings(spec, self._segment_bytes_max)
        self.window.window_ms = self.settings.deduplication_window_ms
        self._chooser = PartitionChooser(spec.partitioner, spec.partitions)
        for partition in self.partitions:
            partition.apply_settings(self.settings)

    def apply_watermark(self, watermark: Watermark) -> None:
        """What is archived, once that is durable."""
        self.watermark = watermark
        for partition in self.partitions:
            partition.archived_up_to = watermark.offset(partition.index)

    @property
    def size_bytes(self) -> int:
        return sum(partition.size_bytes for partition in self.partitions)

    async def wait(self, positions: Sequence[int], timeout_s: float) -> bool:
        """Wait until some partition holds more than the reader has seen (one position each)."""
        if any(p.latest > seen for p, seen in zip(self.partitions, positions, strict=False)):
            return True
        return await wait_for_any(self.partitions, timeout_s)
