"""`ibrik topic roll` and `ibrik archive status` at a real broker."""

import asyncio
import json
from pathlib import Path

import pytest

import ibrik_client
from ibrik_cli.archives import archive_document, run_text
from tests.cli.clusters import World
from tests.cli.conftest import Command
from tests.support.broker import Broker
from tests.support.pool import TOKEN, running_pool
from tests.support.postgres import running_postgres

TABLE = {"id": "t1", "url": "lake/orders", "version": 3}
RUN = {
    "startedAt": "2026-11-28T10:04:31.000Z",
    "endedAt": "2026-11-28T10:04:40.000Z",
    "code": 0,
    "rows": 2,
}


@pytest.mark.slow
def test_a_topic_is_rolled_by_hand(ibrik: Command) -> None:
    ibrik("topic", "create", "rolled")
    ibrik("produce", "rolled", given="1\n2\n")
    aged = ibrik("topic", "roll", "rolled", "--min-age", "1h")
    assert [line.split() for line in aged.stdout.splitlines()][1] == ["rolled", "0", "0"]
    sealed = ibrik("topic", "roll", "rolled", "-o", "json")
    assert json.loads(sealed.stdout) == [{"partition": 0, "sealedUpTo": 2}]
    refused = ibrik("topic", "roll", "roled")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "Did you mean 'rolled'?" in refused.stderr


@pytest.mark.slow
def test_on_a_cluster_the_broker_that_owns_a_topic_seals_it(tmp_path: Path) -> None:
    with (
        running_postgres() as postgres,
        running_pool(tmp_path, postgres.new_database()) as pool,
    ):
        pool.topic(0, "bills")
        pool.publish(0, "bills", b"1")
        owner = pool.owner("bills")
        another = next(broker for number, broker in pool.brokers.items() if number != owner)
        world = World.make(tmp_path / "world")
        world.secret("default", TOKEN)
        world.forward("service/ibrik-default", 8080, another.http_url)
        world.forward("pod/ibrik-default-0", 8081, another.admin_url)
        world.forward(f"pod/{pool.name(owner)}", 8081, pool.brokers[owner].admin_url)
        done = world.run("--context", "kind", "topic", "roll", "bills", "-o", "json")
        assert (done.stderr, json.loads(done.stdout)) == ("", [{"partition": 0, "sealedUpTo": 1}])


@pytest.mark.slow
def test_the_status_of_an_archive_is_a_line_a_partition(ibrik: Command, broker: Broker) -> None:
    assert "no topic is archived" in ibrik("archive", "status").stderr
    ibrik("topic", "create", "bills", "--archive")
    ibrik("topic", "create", "plain")
    ibrik("produce", "bills", given="1\n2\n")
    asyncio.run(report(broker))
    ibrik("produce", "bills", given="3\n")
    head, line = ibrik("archive", "status").stdout.splitlines()
    assert head.split("  ")[0] == "TOPIC"
    assert line.split() == ["bills", "0", "2", "3", "1", "10:04:31", "done", "9", "s", TABLE["url"]]
    document = json.loads(ibrik("archive", "status", "bills", "-o", "json").stdout)
    assert (document["topic"], document["lag"], document["table"]) == ("bills", 1, TABLE)
    assert document["partitions"] == [
        {"partition": 0, "logStart": 0, "archivedUpTo": 2, "logEnd": 3, "behind": 1}
    ]
    refused = ibrik("archive", "status", "plain")
    assert refused.returncode == 1
    assert "spec.archive.enabled" in refused.stderr


async def report(broker: Broker) -> None:
    """As an archive job does after its commit."""
    async with ibrik_client.connect(broker.http_url, admin_url=broker.admin_url) as client:
        await client.admin.roll_topic("bills")
        seen = await client.admin.archive("bills")
        await client.admin.report_archive(
            "bills", topic_id=seen["topicId"], table=TABLE, archived_up_to={0: 2}, last_run=RUN
        )


def test_a_code_that_is_not_known_is_shown_as_it_is() -> None:
    assert run_text(None) == "never"
    assert run_text(RUN) == "10:04:31 done 9 s"
    assert run_text(RUN | {"code": 75}) == "10:04:31 failed 9 s"
    assert run_text(RUN | {"code": 137}) == "10:04:31 137 9 s"


def test_what_was_deleted_unarchived_is_not_behind() -> None:
    topic = {
        "metadata": {"name": "bills"},
        "status": {"topicId": "t", "archive": {"archivedUpTo": [5], "lag": 10}},
    }
    ranges = [
        ibrik_client.messages.PartitionRange(partition=0, earliest=90, latest=100, size_bytes=1),
        ibrik_client.messages.PartitionRange(partition=1, earliest=0, latest=7, size_bytes=1),
    ]
    document = archive_document(topic, ranges)
    assert [p["behind"] for p in document["partitions"]] == [10, 7]
    assert [p["archivedUpTo"] for p in document["partitions"]] == [5, 0]


@pytest.mark.slow
def test_a_folder_is_archived_and_its_broker_knows(ibrik: Command, broker: Broker) -> None:
    ibrik("topic", "create", "kept", "--archive")
    ibrik("produce", "kept", given="1\n2\n")
    lake = str(broker.data.parent / "lake")
    place = (str(broker.data), "--target", lake, "--topic", "kept", "--period", "0s")
    ibrik("topic", "roll", "kept")
    planned = ibrik("archive", "plan", *place, "-o", "json")
    assert (planned.returncode, planned.stderr) == (0, "")
    assert json.loads(ibrik("archive", "status", "kept", "-o", "json").stdout)["lag"] == 2
    done = ibrik("archive", "run", *place)
    assert (done.returncode, done.stdout) == (0, "kept  2 rows  done\n")
    assert ibrik("archive", "run", *place).stdout == "kept  0 rows  nothing to do\n"
    status = json.loads(ibrik("archive", "status", "kept", "-o", "json").stdout)
    assert (status["lag"], status["lastRun"]["code"]) == (0, 2)
    assert status["table"]["url"].startswith(lake)
    ibrik("produce", "kept", given="3\n")
    ibrik("archive", "run", *place)
    audited = ibrik("archive", "audit", str(broker.data), "--target", lake, "-t", "kept")
    assert (audited.returncode, audited.stderr) == (0, "")
    assert audited.stdout.splitlines()[-1] == "3 rows compared: no difference"
    planned = ibrik("archive", "optimize", lake, "--dry-run")
    assert (planned.returncode, planned.stdout.split("  ")[1]) == (0, "2 files before, 1 after")
    merged = ibrik("archive", "optimize", lake, "-t", "kept", "-o", "json")
    assert json.loads(merged.stdout)["rows"] == 3
    assert ibrik("archive", "vacuum", lake).stdout == "kept  0 files deleted\n"
    refused = ibrik("archive", "vacuum", lake, "--keep", "1h")
    assert refused.returncode == 1
    assert "at least 24h are kept" in refused.stdout
    again = ("replay", "from-archive", "kept", "--target", lake, "--from", "1")
    planned = ibrik(*again, "--dry-run")
    assert (planned.returncode, planned.stderr) == (0, "")
    assert planned.stdout == "kept/0  offsets 1 to 2  2 records\n"
    replayed = json.loads(ibrik(*again, "-o", "json").stdout)
    consumed = ibrik("consume", replayed["topics"][0]["into"], "--from", "earliest", "--max", "2")
    assert consumed.stdout.split()[-1] == "3"
    refused = ibrik(*again, "--into", "kept")
    assert refused.returncode == 1
    assert "say --force" in refused.stdout


@pytest.mark.slow
def test_reports_of_a_data_folder_beside_its_broker(
    ibrik: Command, broker: Broker, tmp_path: Path
) -> None:
    ibrik("topic", "create", "judged")
    ibrik("produce", "judged", given="1\n22\n")
    ibrik("topic", "roll", "judged")
    quality = ibrik("quality", "run", str(broker.data), "-t", "judged")
    assert (quality.returncode, quality.stderr) == (0, "")
    assert quality.stdout.splitlines()[-1] == "2 records: no problem"
    traffic = ibrik(
        "traffic", "run", str(broker.data), "--topic", "judged", "-o", "json", "--page", "t.html"
    )
    (topic,) = json.loads(traffic.stdout)["topics"]
    assert (topic["topic"], topic["rows"], topic["bytes"]) == ("judged", 2, 3)
    assert "<h2>judged</h2>" in (tmp_path / "t.html").read_text()
    nowhere = ibrik("traffic", "run")
    assert nowhere.returncode == 2
    assert "or --target of tables" in nowhere.stderr
    refused = ibrik("quality", "run", str(broker.data.parent / "elsewhere"))
    assert refused.returncode == 1
    assert "no volume of a broker" in refused.stdout
