"""The archive job beside a running broker: rolling, what the broker is told, whom it believes."""

import shutil
import uuid
from pathlib import Path
from typing import Any

import pytest

import ibrik_client
from ibrik_client import Client
from ibrik_spark.errors import ExitCode
from ibrik_spark.jobs.archive import Options, run
from ibrik_spark.reports import Report
from ibrik_spark.table import Table, Topic
from ibrik_spark.volume import MountedVolume
from tests.spark.lakes import table_rows
from tests.support.broker import Broker, running_broker

pytestmark = pytest.mark.slow
WISHED = {"archive": {"enabled": True}}


@pytest.fixture
async def topic(ibrik: Client) -> str:
    """A topic of one partition that wishes to be archived, with three messages."""
    name = f"orders-{uuid.uuid4().hex[:8]}"
    await ibrik.admin.create_topic(name, {"partitions": 1, **WISHED})
    for number in range(3):
        await ibrik.publish(name, b"%d" % number)
    return name


async def archive(broker: Broker, target: Path, topic: str, **options: Any) -> Report:
    chosen = {"admin_url": broker.admin_url, "period": "0s", "topics": (topic,)} | options
    return await run(Options(broker.data, str(target), **chosen))


async def archived_up_to(ibrik: Client, topic: str) -> int:
    (partition,) = (await ibrik.admin.archive(topic))["partitions"]
    return int(partition["archivedUpTo"])


async def table_of(broker: Broker, ibrik: Client, target: Path, topic: str) -> Table:
    topic_id = (await ibrik.admin.archive(topic))["topicId"]
    return Table(str(target), Topic(MountedVolume.open(broker.data).cluster_id, topic_id, topic))


async def test_what_was_published_is_in_the_table_and_the_broker_knows(
    broker: Broker, ibrik: Client, topic: str, tmp_path: Path
) -> None:
    report = await archive(broker, tmp_path, topic)
    assert (report.code, report.rows) == (ExitCode.DONE, 3)
    view = await ibrik.admin.archive(topic)
    table = await table_of(broker, ibrik, tmp_path, topic)
    assert view["table"]["url"] == table.location
    assert view["lastRun"]["code"] == 0
    assert view["lastRun"]["rows"] == 3
    assert await archived_up_to(ibrik, topic) == 3
    assert [row["value"] for row in table_rows(table)] == [b"0", b"1", b"2"]
    await ibrik.publish(topic, b"3")
    assert (await archive(broker, tmp_path, topic)).rows == 1
    assert (await archive(broker, tmp_path, topic)).code == ExitCode.NOTHING_TO_DO
    assert (await ibrik.admin.archive(topic))["lastRun"]["code"] == 2


async def test_records_that_are_younger_than_the_period_wait(
    broker: Broker, ibrik: Client, topic: str, tmp_path: Path
) -> None:
    report = await archive(broker, tmp_path, topic, period="1h")
    assert report.code == ExitCode.NOTHING_TO_DO
    assert not list(tmp_path.iterdir())


async def test_a_topic_that_does_not_wish_it_is_left_alone(
    broker: Broker, ibrik: Client, tmp_path: Path
) -> None:
    await ibrik.admin.create_topic("private")
    await ibrik.publish("private", b"x")
    report = await archive(broker, tmp_path, "private")
    assert report.code == ExitCode.NOTHING_TO_DO
    assert "archive.enabled: true" in report.detail
    assert not list(tmp_path.iterdir())


async def test_a_run_that_died_before_it_told_the_broker_is_made_good_by_the_next(
    broker: Broker, ibrik: Client, topic: str, tmp_path: Path
) -> None:
    await ibrik.admin.roll_topic(topic)
    await archive(broker, tmp_path, topic, admin_url=None)
    assert await archived_up_to(ibrik, topic) == 0
    assert (await archive(broker, tmp_path, topic)).code == ExitCode.NOTHING_TO_DO
    assert await archived_up_to(ibrik, topic) == 3


async def test_a_table_that_is_gone_is_not_begun_anew_unasked(
    broker: Broker, ibrik: Client, topic: str, tmp_path: Path
) -> None:
    await archive(broker, tmp_path / "lake", topic)
    shutil.rmtree(tmp_path / "lake")
    await ibrik.publish(topic, b"3")
    report = await archive(broker, tmp_path / "lake", topic)
    assert report.code == ExitCode.CONFIGURATION
    assert "is not there" in report.parts[0].detail
    assert "--new-table" in report.parts[0].detail
    report = await archive(broker, tmp_path / "other", topic, is_new_table=True)
    assert (report.code, report.rows) == (ExitCode.DONE, 4)
    assert (await archive(broker, tmp_path / "other", topic)).code == ExitCode.NOTHING_TO_DO


async def test_an_older_copy_of_the_table_is_not_taken_for_it(
    broker: Broker, ibrik: Client, topic: str, tmp_path: Path
) -> None:
    await archive(broker, tmp_path / "lake", topic)
    shutil.copytree(tmp_path / "lake", tmp_path / "copy")
    await ibrik.publish(topic, b"3")
    await archive(broker, tmp_path / "lake", topic)
    report = await archive(broker, tmp_path / "copy", topic)
    assert report.code == ExitCode.CONFIGURATION
    assert "ends partition 0" in report.parts[0].detail
    assert "the broker was told 4" in report.parts[0].detail
    assert await archived_up_to(ibrik, topic) == 4


async def test_a_topic_made_anew_gets_a_table_of_its_own(
    broker: Broker, ibrik: Client, topic: str, tmp_path: Path
) -> None:
    await archive(broker, tmp_path, topic)
    await ibrik.admin.delete_topic(topic, policy="Delete")
    await ibrik.admin.create_topic(topic, {"partitions": 1, **WISHED})
    await ibrik.publish(topic, b"new")
    report = await archive(broker, tmp_path, topic)
    assert (report.code, report.rows) == (ExitCode.DONE, 1)
    assert len(list(tmp_path.iterdir())) == 2


async def test_a_broker_that_is_away_is_for_the_next_run(
    broker: Broker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ibrik_spark.broker.PATIENCE_S", 0.1)
    report = await archive(broker, tmp_path, topic, admin_url="http://127.0.0.1:9")
    assert report.code == ExitCode.RETRY
    assert "the next run tries again" in report.parts[0].detail
    assert not list(tmp_path.iterdir())


async def test_without_a_token_where_one_is_needed_somebody_has_to_look(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.mkdir()
    (tokens / "current").write_text("secret-of-the-operator")
    (tokens / "archive").write_text("secret-of-the-archive")
    with running_broker(tmp_path, IBRIK_ADMIN__TOKEN_FILE=str(tokens)) as guarded:
        async with ibrik_client.connect(guarded.http_url) as client:
            await client.admin.create_topic("orders", WISHED)
            await client.publish("orders", b"x")
        refused = await archive(guarded, tmp_path / "lake", "orders")
        assert refused.code == ExitCode.CONFIGURATION
        done = await archive(guarded, tmp_path / "lake", "orders", token="secret-of-the-archive")
        assert (done.code, done.rows) == (ExitCode.DONE, 1)
