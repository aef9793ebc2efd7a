"""The tail cache: shared batches, one budget."""

from ibrik_broker.partitions.tail import ENTRY_OVERHEAD_BYTES, Tail, TailCache

COST = 100 + ENTRY_OVERHEAD_BYTES


def filled(cache: TailCache, tail: Tail, count: int, first: int = 0) -> list[bytes]:
    batches = [bytes([n % 256]) * 100 for n in range(first, first + count)]
    for n, batch in enumerate(batches, first):
        cache.extend(tail, n * 10, n * 10 + 10, batch)
    return batches


def test_a_read_begins_with_the_batch_that_holds_the_offset() -> None:
    tail = Tail()
    batches = filled(TailCache(10 * COST), tail, 4)
    assert tail.read(15, 1_000) == batches[1:]


def test_readers_share_the_same_bytes() -> None:
    tail = Tail()
    batches = filled(TailCache(10 * COST), tail, 2)
    first, second = tail.read(0, 1_000), tail.read(0, 1_000)
    assert first is not None
    assert second is not None
    assert first[0] is second[0] is batches[0]


def test_a_read_stops_at_its_bytes_but_gives_at_least_one_batch() -> None:
    tail = Tail()
    batches = filled(TailCache(10 * COST), tail, 4)
    assert tail.read(0, 200) == batches[:2]
    assert tail.read(0, 1) == batches[:1]


def test_what_is_older_than_the_tail_is_not_in_it() -> None:
    tail = Tail(next_offset=50)
    cache = TailCache(10 * COST)
    cache.extend(tail, 50, 60, b"x" * 100)
    assert tail.read(49, 1_000) is None


def test_the_oldest_batch_leaves_first_whoever_has_it() -> None:
    cache = TailCache(3 * COST)
    quiet, busy = Tail(), Tail()
    filled(cache, quiet, 1)
    filled(cache, busy, 3)
    assert quiet.read(0, 1_000) is None
    assert busy.read(0, 1_000) is not None
    assert cache.size_bytes <= 3 * COST


def test_a_gap_forgets_what_was_before_it() -> None:
    cache = TailCache(10 * COST)
    tail = Tail()
    filled(cache, tail, 2)
    cache.extend(tail, 100, 110, b"y" * 100)
    assert tail.read(0, 1_000) is None
    assert tail.read(100, 1_000) == [b"y" * 100]
    assert cache.size_bytes == COST


def test_a_cleared_tail_gives_its_bytes_back() -> None:
    cache = TailCache(10 * COST)
    tail = Tail()
    filled(cache, tail, 5)
    cache.clear(tail)
    assert cache.size_bytes == 0
    filled(cache, tail, 30, first=5)
    assert cache.size_bytes <= 10 * COST


def test_a_batch_larger_than_the_budget_is_not_kept() -> None:
    cache = TailCache(50)
    tail = Tail()
    filled(cache, tail, 1)
    assert cache.size_bytes == 0
    assert tail.read(0, 1_000) is None
