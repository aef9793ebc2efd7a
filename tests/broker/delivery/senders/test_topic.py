"""Delivery into another topic: the same record, once, also after a restart."""

from pathlib import Path

import pytest

from ibrik_broker.delivery.senders.topic import TopicSender
from ibrik_log.record import Headers
from tests.broker.delivery.senders.rig import parcel
from tests.broker.partitions.engine_support import Rig, read_all, running_engine

EVENT: Headers = [("content-type", b"text/plain"), ("ce_id", b"1"), ("ce_source", b"/shop")]


def sender(rig: Rig, name: str = "copies") -> TopicSender:
    return TopicSender(name, engine=rig.engine, timeout_ms=5_000)


async def test_a_copy_has_the_same_key_bytes_and_headers(tmp_path: Path) -> None:
    async with running_engine(tmp_path) as rig:
        copies = await rig.topic("copies")
        answer = await sender(rig).send(parcel(b"\x00\xff", key=b"k", headers=EVENT))
        assert (answer.status, answer.error) == (None, None)
        (copy,) = await read_all(copies)
    assert (copy.key, copy.value) == (b"k", b"\x00\xff")
    own_id = b"0b5b8e4c-0000-4000-8000-000000000001-3-42"
    assert copy.headers == [*EVENT, ("ibrik-id", own_id)]


@pytest.mark.parametrize("headers", [[], EVENT, [("ibrik-id", b"own")]])
async def test_a_repeat_is_not_doubled_even_after_a_restart(
    tmp_path: Path, headers: Headers
) -> None:
    for _ in range(2):
        async with running_engine(tmp_path) as rig:
            copies = await rig.topic("copies")
            for attempt in (1, 2):
                answer = await sender(rig).send(parcel(headers=headers, attempt=attempt))
                assert answer.error is None
            assert len(await read_all(copies)) == 1


async def test_other_messages_and_replays_are_copies_of_their_own(tmp_path: Path) -> None:
    async with running_engine(tmp_path) as rig:
        copies = await rig.topic("copies")
        same_id: Headers = [("ibrik-id", b"own")]
        for offset in (1, 2):
            await sender(rig).send(parcel(offset=offset, headers=same_id))
        for _ in range(2):
            await sender(rig).send(parcel(offset=1, headers=same_id, replay="r1"))
        assert len(await read_all(copies)) == 3


async def test_an_unknown_topic_and_a_refusal_are_answers(tmp_path: Path) -> None:
    async with running_engine(tmp_path) as rig:
        await rig.topic("copies", max_message_bytes="1Ki")
        absent = await sender(rig, "nowhere").send(parcel())
        large = await sender(rig).send(parcel(b"x" * 2_000))
    assert (absent.status, absent.error) == (None, "unknown-topic")
    assert (large.status, large.error) == (None, "refused")
    assert large.detail.startswith("message-too-large: ")
