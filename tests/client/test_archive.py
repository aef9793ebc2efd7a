"""What archive jobs ask of a real broker, also of one that is killed meanwhile."""

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest

import ibrik_client
from ibrik_client import IbrikError, RetryPolicy
from ibrik_log.files import RealDisk
from ibrik_log.log import Log, LogConfig
from tests.support.broker import running_broker

pytestmark = pytest.mark.slow
ROLLS_BEFORE_DEATH = 20


async def test_a_topic_is_rolled_by_the_age_of_its_records(ibrik: ibrik_client.Client) -> None:
    await ibrik.admin.create_topic("rolled", {"partitions": 2})
    await ibrik.publish("rolled", b"1", partition=1)
    assert await ibrik.admin.roll_topic("rolled", min_age="1h") == [
        {"partition": 0, "sealedUpTo": 0},
        {"partition": 1, "sealedUpTo": 0},
    ]
    assert (await ibrik.admin.roll_topic("rolled"))[1] == {"partition": 1, "sealedUpTo": 1}


async def test_what_was_answered_as_sealed_is_so_after_a_kill(tmp_path: Path) -> None:
    acknowledged: list[int] = []
    sealed: list[int] = []
    with running_broker(tmp_path) as broker:
        async with ibrik_client.connect(
            broker.http_url, admin_url=broker.admin_url, retry=RetryPolicy(deadline_s=0.2)
        ) as ibrik:
            topic_id = (await ibrik.admin.create_topic("orders"))["status"]["topicId"]

            async def produce() -> None:
                with suppress(IbrikError):
                    while True:
                        acknowledged.append((await ibrik.publish("orders", b"x" * 200)).offset)

            async def roll() -> None:
                while len(sealed) < ROLLS_BEFORE_DEATH:
                    (end,) = await ibrik.admin.roll_topic("orders")
                    sealed.append(end["sealedUpTo"])
                broker.kill()

            await asyncio.gather(produce(), produce(), roll())
    folder = broker.data / "topics" / topic_id / "0"
    found = Log.open(RealDisk(), folder, LogConfig(), read_only=True)
    assert found.sealed_offset >= sealed[-1]
    assert found.end_offset > max(acknowledged)
    assert sealed == sorted(sealed)
    assert found.damaged == []
