"""Which partition a record goes to: by its key, in turn, or staying for a while.

Pure. `keyHash` is xxh64(key) mod partitions, so any client can compute it; adding partitions moves
keys. Records without a key go round, whatever the strategy.
"""

import xxhash

from ibrik_api.resources.topic import Partitioner

STICKY_RECORDS = 1_000
"""How many records stay together: as many as one batch holds."""


class PartitionChooser:
    """The state of one topic's partitioner."""

    def __init__(self, strategy: Partitioner, partition_count: int) -> None:
        self.strategy = strategy
        self.partition_count = partition_count
        self._turn = 0

    def choose(self, key: bytes | None) -> int:
        if key is not None and self.strategy is Partitioner.KEY_HASH:
            return xxhash.xxh64_intdigest(key) % self.partition_count
        turn = self._turn
        self._turn += 1
        if self.strategy is Partitioner.STICKY:
            turn //= STICKY_RECORDS
        return turn % self.partition_count
