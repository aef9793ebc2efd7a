"""Dead letters in the report on quality, as a real broker has them."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

import ibrik_client
from ibrik_spark import letters
from ibrik_spark.errors import ExitCode
from ibrik_spark.jobs.quality import run
from ibrik_spark.spread import Options
from tests.support.broker import Broker, running_broker

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A topic with four messages, three of which a subscription has given up."""
    with running_broker(tmp_path_factory.mktemp("letters")) as running:
        asyncio.run(fail(running))
        yield running


async def fail(broker: Broker) -> None:
    async with ibrik_client.connect(broker.http_url, admin_url=broker.admin_url) as ibrik:
        await ibrik.admin.create_topic("orders", {"partitions": 1})
        await ibrik.admin.create_subscription(
            "billing",
            {"topicRef": {"name": "orders"}, "type": "shared", "retry": {"maxAttempts": 1}},
        )
        await ibrik.admin.create_subscription("idle", {"topicRef": {"name": "orders"}})
        await ibrik.publish_many("orders", [b"1", b"2", b"3", b"4"])
        leases = await ibrik.lease("billing", wait_s=10)
        await ibrik.ack("billing", leases[:1])
        await ibrik.admin.nack("billing", [lease.token for lease in leases[1:]], reason="no")
        await ibrik.admin.roll_topic("orders")


def test_dead_letters_are_counted_by_subscription_and_reason(broker: Broker) -> None:
    report = run(Options(broker.data, ("orders",)), broker.http_url)
    assert report.code is ExitCode.DONE
    (found,) = report.parts[0].facts["deadLetters"]
    assert (found["subscription"], found["letters"], found["isAll"]) == ("billing", 3, True)
    assert found["states"] == {"dead": 3}
    assert sum(found["reasons"].values()) == 3
    assert "billing  3 dead letters: " in report.table()


def test_there_may_be_more_than_are_looked_at(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(letters, "MOST", 2)
    report = run(Options(broker.data, ("orders",)), broker.http_url)
    assert "billing  at least 2 dead letters: " in report.table()


def test_a_broker_that_is_away_is_said_and_the_rest_of_the_report_is_there(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(letters, "PATIENCE_S", 0.0)
    report = run(Options(broker.data, ("orders",)), "http://127.0.0.1:9")
    assert report.code is ExitCode.RETRY
    assert "cannot ask for the dead letters of orders" in report.table()
    assert report.parts[0].rows == 4


def test_without_an_address_nobody_is_asked(broker: Broker) -> None:
    report = run(Options(broker.data, ("orders",)))
    assert "deadLetters" not in report.parts[0].facts
