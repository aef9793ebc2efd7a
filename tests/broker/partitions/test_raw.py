"""Raw batches: stored as they come, sequenced, and refused as a whole when something is wrong."""

from pathlib import Path

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from ibrik_api.errors import Refusal
from ibrik_broker.partitions.messages import Record
from ibrik_log import batch
from tests.broker.partitions.engine_support import message, read_all, running_engine


def sequenced(values: list[bytes], producer: int, sequence: int, epoch: int = 0) -> bytes:
    builder = DefaultRecordBatchBuilder(2, 0, 0, producer, epoch, sequence, 1 << 20)
    for index, value in enumerate(values):
        builder.append(index, 0, None, value, [])
    return bytes(builder.build())


def plain(*values: bytes) -> bytes:
    return bytes(batch.encode([Record(None, value) for value in values]))


async def test_raw_batches_are_read_back_record_for_record(tmp_path: Path) -> None:
    async with running_engine(tmp_path) as rig:
        topic = await rig.topic()
        receipts = await rig.engine.publish_raw(topic, None, plain(b"a", b"b") + plain(b"c"))
        assert [r.offset for r in receipts] == [0, 2]
        assert [r.value for r in await read_all(topic)] == [b"a", b"b", b"c"]


async def test_a_repeated_sequence_is_told_its_offset_and_not_written_again(tmp_path: Path) -> None:
    async with running_engine(tmp_path) as rig:
        topic = await rig.topic()
        for expected_duplicate in (False, True):
            receipts = await rig.engine.publish_raw(topic, None, sequenced([b"a", b"b"], 9, 0))
            assert (receipts[0].offset, receipts[0].is_duplicate) == (0, expected_duplicate)
        assert topic.partitions[0].latest == 2


@pytest.mark.parametrize("is_clean", [True, False], ids=["clean stop", "crash"])
async def test_sequences_go_on_after_a_restart(tmp_path: Path, is_clean: bool) -> None:
    async with running_engine(tmp_path, close=is_clean) as rig:
        topic = await rig.topic()
        await rig.engine.publish_raw(topic, 0, sequenced([b"a", b"b"], 9, 0))
        await rig.engine.publish_raw(topic, 0, sequenced([b"c"], 9, 2))
    async with running_engine(tmp_path) as rig:
        topic = await rig.topic()
        again = await rig.engine.publish_raw(topic, 0, sequenced([b"c"], 9, 2))
        assert (again[0].offset, again[0].is_duplicate) == (2, True)
        following = await rig.engine.publish_raw(topic, 0, sequenced([b"d"], 9, 3))
        assert following[0].offset == 3


@pytest.mark.parametrize(
    ("producer", "sequence", "code"),
    [(9, 5, "out-of-order-sequence"), (10, 5, "unknown-producer")],
)
async def test_a_gap_and_an_unknown_producer_are_different(
    tmp_path: Path, producer: int, sequence: int, code: str
) -> None:
    async with running_engine(tmp_path) as rig:
        topic = await rig.topic()
        await rig.engine.publish_raw(topic, 0, sequenced([b"a"], 9, 0))
        with pytest.raises(Refusal) as caught:
            await rig.engine.publish_raw(topic, 0, sequenced([b"x"], producer, sequence))
        assert caught.value.code == code


async def test_a_pipelined_repeat_in_one_request_is_found(tmp_path: Path) -> None:
    async with running_engine(tmp_path) as rig:
        topic = await rig.topic()
        body = sequenced([b"a"], 9, 0) + sequenced([b"a"], 9, 0)
        receipts = await rig.engine.publish_raw(topic, 0, body)
        assert [(r.offset, r.is_duplicate) for r in receipts] == [(0, False), (0, True)]


async def test_a_sequenced_batch_names_its_partition(tmp_path: Path) -> None:
    async with running_engine(tmp_path) as rig:
        topic = await rig.topic(partitions=2)
        with pytest.raises(Refusal, match="Ibrik-Partition"):
            await rig.engine.publish_raw(topic, None, sequenced([b"a"], 9, 0))


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "invalid-batch"),
        (b"short", "invalid-batch"),
        (plain(b"ok") + b"torn", "invalid-batch"),
        (plain(b"ok")[:-1], "invalid-batch"),
        (plain(b"ok")[:-1] + b"?", "invalid-batch"),
    ],
)
async def test_a_bad_batch_refuses_the_whole_request(
    tmp_path: Path, body: bytes, code: str
) -> None:
    async with running_engine(tmp_path) as rig:
        topic = await rig.topic()
        with pytest.raises(Refusal) as caught:
            await rig.engine.publish_raw(topic, None, body)
        assert caught.value.code == code
        assert topic.partitions[0].latest == 0


async def test_a_compressed_batch_is_refused_by_name(tmp_path: Path) -> None:
    builder = DefaultRecordBatchBuilder(2, 1, 0, -1, -1, -1, 1 << 20)
    builder.append(0, 0, None, b"z" * 10_000, [])
    async with running_engine(tmp_path) as rig:
        topic = await rig.topic()
        with pytest.raises(Refusal) as caught:
            await rig.engine.publish_raw(topic, None, bytes(builder.build()))
        assert caught.value.code == "batch-compressed"


async def test_a_record_over_the_limit_is_found_inside_a_batch(tmp_path: Path) -> None:
    async with running_engine(tmp_path) as rig:
        topic = await rig.topic(maxMessageBytes=1_000)
        await rig.engine.publish_raw(topic, None, plain(*[b"x" * 900] * 3))
        with pytest.raises(Refusal) as caught:
            await rig.engine.publish_raw(topic, None, plain(b"x", b"y" * 1_001))
        assert caught.value.code == "message-too-large"


async def test_ids_inside_raw_batches_are_known_to_other_doors(tmp_path: Path) -> None:
    async with running_engine(tmp_path) as rig:
        topic = await rig.topic()
        body = bytes(batch.encode([Record(None, b"a", [("ibrik-id", b"1")])]))
        await rig.engine.publish_raw(topic, None, body)
        again = await rig.engine.publish(topic, [message(b"a", id=b"1")])
        assert (again[0].offset, again[0].is_duplicate) == (0, True)
