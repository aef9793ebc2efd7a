"""Walking through a log: decoded batches are kept, shared and bounded."""

from pathlib import Path

from ibrik_broker.tcp.fetch import DecodedBatches, Fetcher
from ibrik_log.record import StoredRecord
from ibrik_wire import Fetch, Target, encode_fetched
from tests.broker.tcp.rig import running_door


async def test_a_batch_is_decoded_once_for_all_who_walk_through_it(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        client = await rig.connect()
        client.send(b"PUB orders 1\r\nx" * 100)
        await client.expect(100)
        decoded = DecodedBatches()
        for _ in range(2):
            fetcher = Fetcher(rig.core.engine, decoded)
            for offset in range(100):
                reply = await fetcher.fetch(Fetch(Target("orders", None), offset))
                assert reply == encode_fetched(offset, b"x")
        assert 0 < decoded.size_bytes < 5_000


async def test_what_was_purged_is_not_served_from_a_decoded_batch(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        client = await rig.connect()
        client.send(b"PUB orders 1\r\nx" * 10 + b"FETCH orders 3\r\n")
        await client.expect(11)
        await rig.core.registry.purge("orders")
        client.send(b"FETCH orders 4\r\n")
        (reply,) = await client.expect(1)
        assert getattr(reply, "code", None) == "offset-below-start"


async def test_decoded_batches_never_grow_beyond_their_limit(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        partition = rig.core.engine.topic("orders").partitions[0]
        decoded = DecodedBatches(limit_bytes=1_000)
        for base in range(0, 100, 2):
            records = [StoredRecord(base + n, 0, None, b"x", []) for n in range(2)]
            decoded.put((partition, base), records, 300)
            decoded.get((partition, 0))  # the first stays in use
            assert decoded.size_bytes <= 1_000
        assert decoded.get((partition, 0)) is not None
        assert decoded.get((partition, 2)) is None
        decoded.put((partition, 500), [StoredRecord(500, 0, None, b"", [])], 10)
        assert decoded.get((partition, 500)) is None, "one record is decoded as fast as found"
