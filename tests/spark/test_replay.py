"""Records of a table back to a real broker: all of each, in order, once, whatever is killed."""

import asyncio
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

import ibrik_client
from ibrik_client import Client, Message
from ibrik_log.batch import encode
from ibrik_log.record import Record
from ibrik_spark.errors import ExitCode
from ibrik_spark.jobs import archive
from ibrik_spark.jobs.replay import WHENCE, Options, run
from ibrik_spark.reports import Report
from tests.spark.lakes import LAKE, commit, table_of, write
from tests.spark.volumes import TOPIC, break_a_batch, fill, new_log
from tests.support.broker import Broker, running_broker

pytestmark = pytest.mark.slow


@pytest.fixture
async def topic(ibrik: Client) -> str:
    """An archived topic of two partitions."""
    name = f"orders-{uuid.uuid4().hex[:8]}"
    await ibrik.admin.create_topic(name, {"partitions": 2, "archive": {"enabled": True}})
    return name


async def archived(broker: Broker, lake: Path, topic: str) -> None:
    options = archive.Options(
        broker.data, str(lake), (topic,), period="0s", admin_url=broker.admin_url
    )
    assert (await archive.run(options)).code == ExitCode.DONE


async def replay(broker: Broker, lake: Path, topic: str, **options: Any) -> Report:
    return await run(Options(str(lake), topic, broker.http_url, **options))


async def read(ibrik: Client, topic: str) -> list[Message]:
    """All messages by partition and offset."""
    found: list[Message] = []
    for part in await ibrik.ranges(topic):
        found += [m async for m in ibrik.scan(topic, part.partition)]
    return found


async def test_every_byte_of_a_record_comes_back_and_says_where_it_was(
    broker: Broker, ibrik: Client, topic: str, tmp_path: Path
) -> None:
    originals = [
        Record(b"\xff", b"\x00\xfe", [("a", b"1"), ("b", None), ("c", b"\xff")]),
        Record(None, None, []),
        Record(b"", b"", [("archive-offset", b"77"), ("ibrik-publisher", b"me")]),
    ]
    await ibrik.publish_raw(topic, bytes(encode(originals)), partition=1)
    await archived(broker, tmp_path, topic)
    report = await replay(broker, tmp_path, topic)
    assert (report.code, report.rows) == (ExitCode.DONE, 3)
    facts = report.parts[0].facts
    found = await read(ibrik, facts["into"])
    assert [(m.partition, m.key, m.value) for m in found] == [
        (1, b"\xff", b"\x00\xfe"),
        (1, None, None),
        (1, b"", b""),
    ]
    headers = dict(found[0].headers)
    whence = [headers.pop(name) for name in WHENCE]
    assert whence[:4] == [facts["table"]["id"], str(facts["table"]["version"]), "1", "0"]
    assert headers == {"a": "1", "b": None, "c": b"\xff"}
    original = (await read(ibrik, topic))[0]
    assert whence[4] == original.timestamp
    assert found[2].headers["archive-offset"] == "2"
    assert "ibrik-publisher" not in found[2].headers


async def test_a_range_goes_to_another_topic_and_no_further(
    broker: Broker, ibrik: Client, topic: str, tmp_path: Path
) -> None:
    acks = [await ibrik.publish(topic, b"%d" % n, partition=n % 2) for n in range(10)]
    await archived(broker, tmp_path, topic)
    await ibrik.admin.create_topic(f"{topic}-copies", {"partitions": 1})
    into = {"into": f"{topic}-copies", "start": "2", "end": "4"}
    planned = await replay(broker, tmp_path, topic, is_plan=True, **into)
    assert [
        (p["partition"], p["from"], p["to"], p["records"])
        for p in planned.parts[0].facts["partitions"]
    ] == [
        (0, 2, 4, 2),
        (1, 2, 4, 2),
    ]
    assert await read(ibrik, f"{topic}-copies") == []
    assert (await replay(broker, tmp_path, topic, **into)).rows == 4
    assert [m.value for m in await read(ibrik, f"{topic}-copies")] == [b"4", b"6", b"5", b"7"]
    again = await replay(broker, tmp_path, topic, **into)
    assert (again.code, again.rows) == (ExitCode.NOTHING_TO_DO, 0)
    assert "0 published, 4 were there already" in again.table()
    another = await replay(broker, tmp_path, topic, name="another", partitions=(1,), **into)
    assert another.rows == 2
    since = await replay(broker, tmp_path, topic, start=acks[-1].timestamp, is_plan=True)
    assert since.parts[0].facts["partitions"][-1]["to"] == 5
    assert (await replay(broker, tmp_path, topic, start="99")).code == ExitCode.NOTHING_TO_DO


async def test_a_table_that_has_grown_goes_on_where_the_run_ended(
    broker: Broker, ibrik: Client, topic: str, tmp_path: Path
) -> None:
    await ibrik.publish(topic, b"first", partition=0)
    await archived(broker, tmp_path, topic)
    into = (await replay(broker, tmp_path, topic)).parts[0].facts["into"]
    for partition in (0, 1):
        await ibrik.publish(topic, b"later", partition=partition)
    await archived(broker, tmp_path, topic)
    grown = await replay(broker, tmp_path, topic, into=None)
    assert (grown.parts[0].facts["into"], grown.rows) == (into, 2)


async def test_the_archived_topic_itself_is_refused_unless_forced(
    broker: Broker, ibrik: Client, topic: str, tmp_path: Path
) -> None:
    await ibrik.publish(topic, b"x", partition=0)
    await archived(broker, tmp_path, topic)
    refused = await replay(broker, tmp_path, topic, into=topic)
    assert refused.code == ExitCode.CONFIGURATION
    assert "--force" in refused.detail
    assert len(await read(ibrik, topic)) == 1
    assert (await replay(broker, tmp_path, topic, into=topic, is_forced=True)).rows == 1
    assert len(await read(ibrik, topic)) == 2


async def test_what_cannot_be_is_said(broker: Broker, topic: str, tmp_path: Path) -> None:
    nothing = await replay(broker, tmp_path, topic)
    assert (nothing.code, "there is no table at" in nothing.detail) == (64, True)
    unknown = await replay(broker, tmp_path, f"{topic}-no")
    assert unknown.code == ExitCode.CONFIGURATION
    assert "There is no topic" in unknown.detail
    away = await run(Options(str(tmp_path), TOPIC, "http://127.0.0.1:9"))
    assert away.code == ExitCode.CONFIGURATION  # no table there; the broker was not asked


async def test_gaps_of_a_table_are_counted_and_nothing_stands_for_them(
    broker: Broker, ibrik: Client, tmp_path: Path
) -> None:
    """The topic is not the broker's any more: its table is named by its id."""
    fill(new_log(tmp_path / "data"), 5)
    break_a_batch(tmp_path / "data")
    table = table_of(tmp_path)
    table.create()
    commit(table.opened(), write(tmp_path, records_gaps=True))
    report = await replay(broker, tmp_path / LAKE, TOPIC, start="1")
    assert report.rows == 11
    assert "3 offsets are gaps of the archive; nothing is published for them" in report.table()
    found = await read(ibrik, report.parts[0].facts["into"])
    assert [m.key for m in found] == [b"k%s" % m.headers["archive-offset"].encode() for m in found]


async def test_a_channel_gets_the_range_once(
    broker: Broker, ibrik: Client, topic: str, tmp_path: Path
) -> None:
    await ibrik.publish_many(topic, [b"%d" % n for n in range(20)], partition=0)
    await archived(broker, tmp_path, topic)
    await ibrik.admin.create_topic(f"{topic}-sink", {"partitions": 1})
    await ibrik.admin.create_channel(topic, {"topic": {"name": f"{topic}-sink"}})
    before = await ibrik.admin.topics()
    refused = await replay(broker, tmp_path, topic, channel=f"{topic}-no")
    assert refused.code == ExitCode.CONFIGURATION
    assert "There is no channel" in refused.detail
    assert len(await ibrik.admin.topics()) == len(before)
    report = await replay(broker, tmp_path, topic, channel=topic)
    replayed = report.parts[0].facts["replay"]
    again = await replay(broker, tmp_path, topic, channel=topic)
    assert again.parts[0].facts["replay"] == replayed
    while (await ibrik.admin.replay(replayed))["state"] == "running":
        await asyncio.sleep(0.05)
    values = [m.value for m in await read(ibrik, f"{topic}-sink")]
    assert sorted(values) == sorted(b"%d" % n for n in range(20))


async def test_a_run_that_is_killed_goes_on_and_doubles_nothing(
    broker: Broker, ibrik: Client, topic: str, tmp_path: Path
) -> None:
    for partition in (0, 1):
        await ibrik.publish_many(topic, [b"%d" % n for n in range(6_000)], partition=partition)
    await archived(broker, tmp_path, topic)
    into = f"{topic}-copies"
    await ibrik.admin.create_topic(into, {"partitions": 2})
    slowly = [*command(broker, tmp_path, topic, into), "--rate", "4000"]
    for least in (1, 4_000, 7_000):
        with subprocess.Popen(slowly, stdout=subprocess.PIPE) as job:
            while await count(ibrik, into) < least:
                await asyncio.sleep(0.005)
            job.kill()
    assert await count(ibrik, into) < 12_000
    last = await replay(broker, tmp_path, topic, into=into)
    assert last.code == ExitCode.DONE
    assert last.rows + last.parts[0].facts["there"] == 12_000
    found = await read(ibrik, into)
    assert [(m.partition, m.value) for m in found] == [
        (partition, b"%d" % n) for partition in (0, 1) for n in range(6_000)
    ]


async def test_a_broker_that_is_killed_meanwhile_still_knows_what_it_holds(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    with running_broker(tmp_path) as broker:
        async with ibrik_client.connect(broker.http_url, admin_url=broker.admin_url) as ibrik:
            spec = {"partitions": 1, "archive": {"enabled": True}}
            await ibrik.admin.create_topic("orders", spec)
            await ibrik.publish_many("orders", [b"%d" % n for n in range(6_000)])
            await archived(broker, lake, "orders")
            await ibrik.admin.create_topic("copies", {"partitions": 1})
            with subprocess.Popen(
                [*command(broker, lake, "orders", "copies"), "--rate", "4000"],
                stdout=subprocess.PIPE,
            ) as job:
                while await count(ibrik, "copies") == 0:
                    await asyncio.sleep(0.005)
                broker.kill()
                job.kill()
    with running_broker(tmp_path) as broker:
        report = await replay(broker, lake, "orders", into="copies")
        there = report.parts[0].facts["there"]
        assert there > 0
        assert report.rows + there == 6_000
        async with ibrik_client.connect(broker.http_url) as ibrik:
            assert [m.value for m in await read(ibrik, "copies")] == [
                b"%d" % n for n in range(6_000)
            ]


def command(broker: Broker, lake: Path, topic: str, into: str) -> list[str]:
    job = [sys.executable, "-m", "ibrik_spark", "replay", "--target", str(lake)]
    return [*job, "--topic", topic, "--into", into, "--server", broker.http_url]


async def count(ibrik: Client, topic: str) -> int:
    return sum(part.latest for part in await ibrik.ranges(topic))
