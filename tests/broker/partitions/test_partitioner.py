"""Where records go."""

from collections import Counter

import xxhash

from ibrik_api.resources.topic import Partitioner
from ibrik_broker.partitions.partitioner import STICKY_RECORDS, PartitionChooser


def test_a_key_always_goes_to_the_partition_of_its_hash() -> None:
    chooser = PartitionChooser(Partitioner.KEY_HASH, 7)
    assert {chooser.choose(b"UA") for _ in range(5)} == {xxhash.xxh64_intdigest(b"UA") % 7}


def test_records_without_a_key_go_round() -> None:
    chooser = PartitionChooser(Partitioner.KEY_HASH, 3)
    assert [chooser.choose(None) for _ in range(6)] == [0, 1, 2, 0, 1, 2]


def test_round_robin_ignores_keys() -> None:
    chooser = PartitionChooser(Partitioner.ROUND_ROBIN, 4)
    assert [chooser.choose(b"same") for _ in range(4)] == [0, 1, 2, 3]


def test_sticky_stays_for_a_batch_and_spreads_over_time() -> None:
    chooser = PartitionChooser(Partitioner.STICKY, 2)
    places = [chooser.choose(None) for _ in range(2 * STICKY_RECORDS)]
    assert len(set(places[:STICKY_RECORDS])) == 1
    assert Counter(places) == {0: STICKY_RECORDS, 1: STICKY_RECORDS}
