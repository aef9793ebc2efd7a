"""The command line against a real broker, each command as a process of its own."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import IBRIK, Command
from tests.support.broker import Broker, running_broker

pytestmark = pytest.mark.slow

TOPIC = """
apiVersion: ibrik.dev/v1beta1
kind: Topic
metadata: {name: %s}
spec: {partitions: %s, deletionPolicy: Delete}
"""


def test_lines_are_published_and_printed(ibrik: Command) -> None:
    assert ibrik("topic", "create", "lines").stdout == "topic.ibrik.dev/lines created\n"
    published = ibrik("produce", "lines", "--key", "id", given='{"id":7}\n{"id":"x y"}\n')
    assert published.returncode == 0
    assert published.stderr.startswith("lines: 2 messages, ")
    consumed = ibrik("consume", "lines")
    lines = consumed.stdout.splitlines()
    assert [line.split("  ")[0] for line in lines] == ["0", "1"]
    assert [line.split("  ")[2:] for line in lines] == [
        ["key=7", '{"id":7}'],
        ["key=x y", '{"id":"x y"}'],
    ]
    assert consumed.stderr == "2 messages, next offset 2\n"
    assert ibrik("consume", "lines", "--from", "1", "--format", "value").stdout == '{"id":"x y"}\n'
    as_json = json.loads(ibrik("consume", "lines", "--max", "1", "--format", "json").stdout)
    assert (as_json["offset"], as_json["value"]) == (0, {"id": 7})


def test_following_prints_what_comes(ibrik: Command) -> None:
    ibrik("topic", "create", "live")
    ibrik("produce", "live", given="first\n")
    following = ibrik("consume", "live", "--follow", "--from", "0", "--max", "1")
    assert following.stdout.endswith("  first\n")
    by_partition = ibrik("consume", "live", "--follow", "--partition", "0", "--max", "1")
    assert by_partition.stdout == following.stdout


def test_rows_of_a_csv_file_become_events(ibrik: Command, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("carrier,delay\nUA,2\nAA,NA\n")
    ibrik("topic", "create", "rows", "--partitions", "2", "--partitioner", "round_robin")
    done = ibrik("produce", "rows", "--file", "rows.csv", "--format", "csv", "--key", "carrier")
    assert (done.returncode, done.stderr.partition(",")[0]) == (0, "rows: 2 messages")
    printed = ibrik("consume", "rows", "--format", "value").stdout.splitlines()
    assert sorted(printed) == ['{"carrier":"AA","delay":null}', '{"carrier":"UA","delay":2}']


def test_a_broken_line_is_named_and_what_came_before_is_kept(ibrik: Command) -> None:
    ibrik("topic", "create", "broken")
    done = ibrik("produce", "broken", "--format", "json", given="1\n{\n")
    assert done.returncode == 1
    assert done.stderr.startswith("error: line 2 is no JSON")


def test_resources_are_applied_shown_and_deleted(ibrik: Command, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(TOPIC % ("applied", 2) + "---" + TOPIC % ("wrong", 0))
    done = ibrik("apply", "-f", "a.yaml")
    assert done.stdout == "topic.ibrik.dev/applied applied\n"
    assert done.stderr.startswith("error: topic.ibrik.dev/wrong refused: ")
    assert done.returncode == 1
    (tmp_path / "a.yaml").write_text(TOPIC % ("applied", 2))
    assert ibrik("apply", "-f", "a.yaml").stdout == "topic.ibrik.dev/applied unchanged\n"
    shown = ibrik("get", "-f", "a.yaml").stdout.splitlines()
    assert shown[0].split() == ["TOPIC", "PARTITIONS", "MESSAGES", "BYTES", "RETENTION"]
    assert shown[1].split() == ["applied", "2", "0", "0", "B", "7d"]
    described = ibrik("describe", "topic", "applied")
    assert "  partitions: 2\n" in described.stdout
    as_json = json.loads(ibrik("get", "topic", "applied", "--output", "json").stdout)
    assert as_json["metadata"]["name"] == "applied"
    refused = ibrik("topic", "delete", "applied")
    assert refused.returncode == 1
    assert "applied" in refused.stderr
    assert ibrik("delete", "topic", "applied").stdout == "topic.ibrik.dev/applied deleted\n"
    assert "applied" not in ibrik("topic", "ls").stdout


def test_shrinking_is_refused_with_the_next_step(ibrik: Command) -> None:
    ibrik("apply", "-f", "-", given=TOPIC % ("shrink", 4))
    done = ibrik("apply", "-f", "-", given=TOPIC % ("shrink", 2))
    assert done.returncode == 1
    assert "grow but not shrink" in done.stderr


def test_a_topic_is_created_described_purged_and_deleted(ibrik: Command) -> None:
    ibrik("topic", "create", "short", "--retention", "30d", "--retention-bytes", "1Gi")
    listed = json.loads(ibrik("topic", "ls", "-o", "json").stdout)
    spec = next(t["spec"] for t in listed if t["metadata"]["name"] == "short")
    assert spec["retention"] == {"time": "30d", "bytes": "1Gi"}
    ibrik("produce", "short", "--whole", given="one\nmessage")
    place = ibrik("describe", "message", "short/0/0")
    assert "value: one\\nmessage" in place.stdout
    assert ibrik("topic", "purge", "short", "--yes").stdout == "topic.ibrik.dev/short purged\n"
    assert ibrik("consume", "short").stderr.startswith("0 messages")
    deleted = ibrik("topic", "delete", "short")
    assert deleted.stdout.startswith("topic.ibrik.dev/short detached; its data stays")
    again = ibrik("topic", "create", "short", "--retention", "30d", "--policy", "x")
    assert again.returncode == 2


def test_an_unknown_topic_names_the_nearest_one(ibrik: Command) -> None:
    ibrik("topic", "create", "customers")
    done = ibrik("consume", "custmoers")
    assert done.returncode == 1
    assert "Did you mean 'customers'?" in done.stderr
    assert done.stderr.count("\n") == 1


def test_bench_prints_percentiles(ibrik: Command) -> None:
    ibrik("topic", "create", "bench")
    done = ibrik("bench", "bench", "--publishers", "2", "--seconds", "0.3", "-o", "json")
    assert json.loads(done.stdout)["messages"] > 0
    assert done.returncode == 0


def test_a_second_broker_on_the_folder_is_refused(broker: Broker) -> None:
    done = subprocess.run(
        [IBRIK, "serve", "--data", str(broker.data), "--port", "0", "--tcp-port", "0"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 1
    assert f"is in use by process {broker.process.pid}" in done.stderr


def test_no_broker_says_how_to_start_one(ibrik: Command) -> None:
    done = ibrik("topic", "ls", "--server", "http://127.0.0.1:9")
    assert done.returncode == 1
    assert done.stderr.endswith("Start one with: ibrik serve --dev\n")


def test_a_reader_that_had_enough_is_no_failure(ibrik: Command, broker: Broker) -> None:
    ibrik("topic", "create", "many")
    ibrik("produce", "many", given="x" * 200 + "\n" * 1)
    ibrik("produce", "many", given=("y" * 200 + "\n") * 2_000)
    done = subprocess.run(
        f"{IBRIK} consume many --server {broker.http_url} | head -1",
        shell=True,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.stdout.count("\n") == 1
    assert "error" not in done.stderr


def test_a_data_folder_is_listed_dumped_and_verified(tmp_path: Path, ibrik: Command) -> None:
    with running_broker(tmp_path) as broker:
        server = ("--server", broker.http_url)
        ibrik("topic", "create", "orders", *server)
        ibrik("produce", "orders", "--key", "id", *server, given='{"id":1}\n{"id":2}\n')
        broker.terminate()
    data = str(broker.data)
    rows = ibrik("log", "ls", data).stdout.splitlines()
    assert rows[1].split()[:5] == ["orders", "0", "0", "2", "2"]
    dumped = ibrik("log", "dump", "orders/0", "--data", data).stdout.splitlines()
    assert [line.split("  ")[3:] for line in dumped] == [
        ["key=1", '{"id":1}'],
        ["key=2", '{"id":2}'],
    ]
    assert "2 records" in ibrik("log", "dump", "orders", "--batches", "--data", data).stdout
    clean = ibrik("log", "verify", data)
    assert (clean.returncode, clean.stdout.endswith("2 records: no problem.\n")) == (0, True)
    (segment,) = broker.data.glob("topics/*/0/*.log")
    content = bytearray(segment.read_bytes())
    content[-3] ^= 1
    segment.write_bytes(content)
    damaged = ibrik("log", "verify", data)
    assert damaged.returncode == 1
    assert damaged.stdout.startswith("orders/0  segment 00000000000000000000  offset 0")
    assert "1 problem" in damaged.stdout


def test_a_lost_row_is_adopted_again(tmp_path: Path, ibrik: Command) -> None:
    with running_broker(tmp_path) as broker:
        ibrik("topic", "create", "orders", "--server", broker.http_url)
        ibrik("produce", "orders", "--server", broker.http_url, given="kept\n")
        broker.terminate()
    for path in broker.data.glob("metadata.db*"):
        path.unlink()
    (folder,) = broker.data.glob("topics/*")
    with running_broker(tmp_path) as broker:
        server = ("--server", broker.http_url)
        adopted = ibrik("log", "adopt", folder.name, "--admin", broker.admin_url, *server)
        assert adopted.stdout.startswith("topic.ibrik.dev/orders adopted")
        assert ibrik("consume", "orders", "--format", "value", *server).stdout == "kept\n"
