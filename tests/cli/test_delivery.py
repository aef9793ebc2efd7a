"""Channels, subscriptions and publishers from the command line, against a real broker."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import IBRIK, Command
from tests.cli.test_listen import Listener, listening
from tests.support.broker import Broker

pytestmark = pytest.mark.slow

NOBODY = "http://127.0.0.1:9/hook"
MANIFEST = """
apiVersion: ibrik.dev/v1beta1
kind: Subscription
metadata: {name: applied-sub}
spec: {topicRef: {name: applied}, mode: push, channelRef: {name: applied-ch},
  deletionPolicy: Delete}
---
apiVersion: ibrik.dev/v1beta1
kind: Channel
metadata: {name: applied-ch}
spec: {http: {url: "http://127.0.0.1:9/x?token=private"}}
---
apiVersion: ibrik.dev/v1beta1
kind: Topic
metadata: {name: applied}
spec: {deletionPolicy: Delete}
"""


@pytest.fixture
def listener() -> Iterator[Listener]:
    with listening() as running:
        yield running


def table(printed: str) -> list[list[str]]:
    """The cells of each line; two blanks stand between them."""
    return [
        [cell.strip() for cell in line.split("  ") if cell.strip()] for line in printed.splitlines()
    ]


def test_a_channel_is_created_listed_tested_and_deleted(ibrik: Command, listener: Listener) -> None:
    url = f"{listener.url}/hook"
    assert ibrik("channel", "create", "hook", "--url", url, "--header", "x-shop=7").stdout == (
        "channel.ibrik.dev/hook created\n"
    )
    assert table(ibrik("channel", "ls", "--host", "127.0.0.1", "--kind", "http").stdout) == [
        ["CHANNEL", "TYPE", "DESTINATION", "CIRCUIT", "STATE"],
        ["hook", "http", f"POST {url}", "closed", "ready"],
    ]
    tested = ibrik("channel", "test", "hook")
    assert (tested.returncode, tested.stdout[:40]) == (
        0,
        "channel.ibrik.dev/hook delivered: 200 in",
    )
    assert "  ibrik.test  " in listener.line()
    described = ibrik("channel", "describe", "hook").stdout
    assert "  http.headers.x-shop: 7\n" in described
    assert "  circuit: closed\n" in described
    assert "\nReady True Ready\n" in described
    assert ibrik("channel", "pause", "hook").stdout == "channel.ibrik.dev/hook paused\n"
    assert table(ibrik("channel", "ls").stdout)[1][3] == "paused"
    resumed = json.loads(ibrik("channel", "resume", "hook", "-o", "json").stdout)
    assert resumed["status"]["circuit"] == "closed"
    other = ibrik("channel", "create", "hook", "--url", NOBODY)
    assert (other.returncode, other.stderr.count("\n")) == (1, 1)
    assert ibrik("channel", "delete", "hook").stdout == "channel.ibrik.dev/hook deleted\n"
    gone = ibrik("channel", "describe", "hook")
    assert gone.returncode == 1
    assert gone.stderr.startswith("error: There is no channel 'hook'.")


def test_a_test_that_fails_says_why(ibrik: Command) -> None:
    ibrik("channel", "create", "nobody", "--url", NOBODY)
    done = ibrik("channel", "test", "nobody")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: channel.ibrik.dev/nobody not delivered: in ")
    assert done.stderr.count("\n") == 1
    as_json = json.loads(ibrik("channel", "test", "nobody", "-o", "json").stdout)
    assert as_json["delivered"] is False
    ibrik("channel", "delete", "nobody")


def test_channels_of_other_kinds(ibrik: Command) -> None:
    ibrik("topic", "create", "copies")
    ibrik("channel", "create", "printer", "--tcp", "[::1]:9100", "--timeout", "2s", "--rate", "5")
    ibrik("channel", "create", "copy", "--topic", "copies")
    ibrik("channel", "create", "signed", "--url", NOBODY, "--signing-env", "IBRIK_SECRET_HOOK")
    rows = {row[0]: row[1:] for row in table(ibrik("channel", "ls").stdout)}
    assert rows["printer"][:2] == ["tcp", "tcp [::1]:9100"]
    assert rows["copy"][:2] == ["topic", "topic copies"]
    assert rows["signed"][3] == "CredentialsMissing"
    spec = json.loads(ibrik("get", "channel", "printer", "-o", "json").stdout)["spec"]
    assert (spec["timeout"], spec["limits"]["rate"]) == ("2s", 5)
    assert ibrik("delete", "channel", "printer").stdout == "channel.ibrik.dev/printer deleted\n"
    assert ibrik("channel", "delete", "signed").stdout == "channel.ibrik.dev/signed deleted\n"


def test_messages_are_pushed_and_the_backlog_is_shown(ibrik: Command, listener: Listener) -> None:
    ibrik("topic", "create", "orders")
    ibrik("channel", "create", "billing", "--url", listener.url)
    made = ibrik("subscription", "create", "billing", "--topic", "orders", "--channel", "billing")
    assert made.stdout == "subscription.ibrik.dev/billing created\n"
    ibrik("subscription", "create", "workers", "--topic", "orders", "--pull", "--type", "shared")
    ibrik("produce", "orders", "--key", "id", given='{"id":7}\n')
    cells = listener.line().rstrip("\n").split("  ")
    assert cells[2:] == ["orders/0/0", "billing", "attempt 1", "ibrik.message", "key=7", '{"id":7}']
    rows = table(ibrik("subscription", "ls", "--topic", "orders").stdout)
    assert rows[0] == [
        "SUBSCRIPTION",
        "TOPIC",
        "MODE",
        "DESTINATION",
        "BACKLOG",
        "OLDEST",
        "STATE",
    ]
    assert rows[1] == ["billing", "orders", "push", "channel/billing", "0", "-", "active"]
    assert rows[2][:5] == ["workers", "orders", "pull", "-", "1"]
    stats = table(ibrik("channel", "stats", "billing").stdout)
    assert stats[1][:5] == ["billing", "1", "0", "0", "closed"]
    refused = ibrik("channel", "delete", "billing")
    assert refused.returncode == 1
    assert "is named by the subscriptions billing" in refused.stderr


def test_a_subscription_is_moved_paused_and_deleted(ibrik: Command) -> None:
    ibrik("topic", "create", "moves", "--partitions", "2")
    ibrik("produce", "moves", "--partition", "1", given="a\nb\nc\n")
    ibrik("subscription", "create", "mover", "--topic", "moves", "--pull")
    assert table(ibrik("subscription", "lag", "mover").stdout) == [
        ["PARTITION", "NEXT", "EARLIEST", "LATEST", "BACKLOG", "IN FLIGHT", "RETRYING"],
        ["0", "0", "0", "0", "0", "0", "0"],
        ["1", "0", "0", "3", "3", "0", "0"],
    ]
    planned = ibrik("subscription", "seek", "mover", "--to", "latest", "--dry-run")
    assert table(planned.stdout) == [
        ["PARTITION", "FROM", "TO", "REDELIVERED", "SKIPPED"],
        ["0", "0", "0", "0", "0"],
        ["1", "0", "3", "0", "3"],
    ]
    assert planned.stderr == "dry run: nothing was moved\n"
    ibrik("subscription", "seek", "mover", "--to", "2", "--partition", "1")
    assert table(ibrik("subscription", "lag", "mover").stdout)[2][1] == "2"
    moved = json.loads(
        ibrik("subscription", "seek", "mover", "--to", "0,1", "--output", "json").stdout
    )
    assert [move["to"] for move in moved["partitions"]] == [0, 1]
    beyond = ibrik("subscription", "seek", "mover", "--to", "9", "--partition", "1")
    assert (beyond.returncode, beyond.stderr.count("\n")) == (1, 1)
    assert ibrik("subscription", "pause", "mover").stdout.endswith("/mover paused\n")
    assert table(ibrik("get", "subscription", "mover").stdout)[1][-1] == "paused"
    assert ibrik("subscription", "resume", "mover").stdout.endswith("/mover resumed\n")
    kept = ibrik("subscription", "delete", "mover")
    assert kept.stdout.startswith("subscription.ibrik.dev/mover detached; its cursor stays")
    ibrik("subscription", "create", "mover", "--topic", "moves", "--pull")
    assert table(ibrik("subscription", "lag", "mover").stdout)[2][1] == "1"
    deleted = ibrik("subscription", "delete", "mover", "--policy", "Delete")
    assert deleted.stdout == "subscription.ibrik.dev/mover deleted\n"


def test_every_option_of_a_subscription_reaches_the_broker(ibrik: Command) -> None:
    ibrik("topic", "create", "options")
    made = ibrik(
        *("subscription", "create", "full", "--topic", "options", "--pull", "--type", "shared"),
        *("--filter", "event.type == 'x'", "--from", "latest", "--ordering", "key"),
        *("--retry", "webhook", "--ack-deadline", "90s", "--output", "json"),
    )
    spec = json.loads(made.stdout)["spec"]
    assert spec["filter"] == "event.type == 'x'"
    assert spec["start"] == {"from": "latest"}
    assert (spec["type"], spec["ordering"]) == ("shared", "key")
    assert spec["retry"]["preset"] == "webhook"
    assert spec["ack"]["deadline"] == "1m30s"
    refused = ibrik(
        "subscription", "create", "bad", "--topic", "options", "--pull", "--filter", "("
    )
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)


def test_resources_of_all_kinds_are_applied_in_any_order(ibrik: Command, tmp_path: Path) -> None:
    (tmp_path / "all.yaml").write_text(MANIFEST)
    applied = ibrik("apply", "-f", "all.yaml")
    assert applied.stdout.splitlines() == [
        "subscription.ibrik.dev/applied-sub applied",
        "channel.ibrik.dev/applied-ch applied",
        "topic.ibrik.dev/applied applied",
    ]
    assert applied.returncode == 0
    assert ibrik("apply", "-f", "all.yaml").stdout.count(" unchanged\n") == 3
    shown = ibrik("get", "-f", "all.yaml").stdout
    heads = [line.split()[0] for line in shown.split("\n") if line.isupper()]
    assert heads == ["SUBSCRIPTION", "CHANNEL", "TOPIC"]
    assert "private" not in shown
    kinds = [r["kind"] for r in json.loads(ibrik("get", "-f", "all.yaml", "-o", "json").stdout)]
    assert kinds == ["Subscription", "Channel", "Topic"]
    described = ibrik("describe", "-f", "all.yaml").stdout
    assert "  managedBy: Channel default/applied-ch\n" in described
    deleted = ibrik("delete", "-f", "all.yaml")
    assert (deleted.returncode, deleted.stdout.count(" deleted\n")) == (0, 3)
    assert ibrik("get", "ibs", "applied-sub").returncode == 1


def test_a_publishers_token_is_shown_once(ibrik: Command, tmp_path: Path) -> None:
    topic = "{apiVersion: ibrik.dev/v1beta1, kind: Topic, metadata: {name: closed}, %s}"
    ibrik("apply", "-f", "-", given=topic % "spec: {publishers: registered}")
    assert ibrik("produce", "closed", given="x\n").returncode == 1
    made = ibrik("publisher", "register", "closed", "shop")
    head, token = made.stdout.splitlines()
    assert head == "publisher shop of closed registered"
    assert made.stderr.startswith("The token is shown this once and never again")
    again = ibrik("publisher", "register", "closed", "shop")
    assert again.stdout == "publisher shop of closed was registered before\n"
    assert again.stderr.endswith("ibrik publisher rotate closed shop\n")
    rotated = json.loads(ibrik("publisher", "rotate", "closed", "shop", "-o", "json").stdout)
    assert rotated["token"] not in token
    (tmp_path / "old").write_text(token.removeprefix("token: "))
    (tmp_path / "new").write_text(rotated["token"])
    assert ibrik("produce", "closed", "--token-file", "old", given="x\n").returncode == 1
    assert ibrik("produce", "closed", "--token-file", "new", given="x\n").returncode == 0
    assert table(ibrik("publisher", "ls").stdout)[1][:2] == ["closed", "shop"]
    assert "token" not in ibrik("publisher", "ls", "closed", "-o", "yaml").stdout
    assert ibrik("publisher", "delete", "closed", "shop").stdout == (
        "publisher shop of closed deleted\n"
    )
    assert ibrik("produce", "closed", "--token-file", "new", given="x\n").returncode == 1


def test_a_subscription_is_consumed(ibrik: Command) -> None:
    ibrik("topic", "create", "work")
    ibrik("subscription", "create", "worker", "--topic", "work", "--pull")
    ibrik("produce", "work", given="".join(f"{n}\n" for n in range(5)))
    first = ibrik("consume", "--subscription", "worker", "--max", "2", "--format", "value")
    assert (first.stdout, first.stderr) == ("0\n1\n", "2 messages acknowledged\n")
    given_back = ibrik("consume", "--subscription", "worker", "--max", "1", "--nack")
    assert given_back.stdout.startswith("2  ")
    assert given_back.stderr == "1 message given back\n"
    assert table(ibrik("subscription", "lag", "worker").stdout)[1][-3:] == ["3", "0", "1"]
    rest = ibrik("consume", "--subscription", "worker", "--format", "value").stdout.split()
    assert {"3", "4"} <= set(rest)
    unknown = ibrik("consume", "--subscription", "nobody")
    assert unknown.returncode == 1
    assert unknown.stderr.startswith("error: There is no subscription 'nobody'.")


def test_ctrl_c_leaves_nothing_in_hand(ibrik: Command, broker: Broker) -> None:
    ibrik("topic", "create", "interrupted")
    ibrik("subscription", "create", "stopped", "--topic", "interrupted", "--pull")
    ibrik("produce", "interrupted", given="one\n")
    with subprocess.Popen(
        [IBRIK, "consume", "--subscription", "stopped", "--follow", "--server", broker.http_url],
        env={k: v for k, v in os.environ.items() if not k.startswith("IBRIK_")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().endswith("  one\n")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (0, "1 message acknowledged\n")
    assert table(ibrik("subscription", "lag", "stopped").stdout)[1] == [
        *("0", "1", "0", "1"),
        *("0", "0", "0"),
    ]


def test_a_message_is_described_with_everyone_who_gets_it(ibrik: Command) -> None:
    ibrik("topic", "create", "traced")
    ibrik("channel", "create", "down", "--url", NOBODY)
    ibrik("subscription", "create", "failing", "--topic", "traced", "--channel", "down")
    ibrik("subscription", "create", "lazy", "--topic", "traced", "--pull")
    ibrik("produce", "traced", given="x\n")
    described = _until(ibrik, "TIME", "describe", "message", "traced/0/0")
    rows = table(described)
    assert ["SUBSCRIPTION", "MODE", "STATE", "FAILED", "NEXT"] in rows
    assert ["lazy", "pull", "waiting", "0", "-"] in rows
    failing = [row for row in rows if row[:1] == ["failing"]]
    assert failing[0][:3] in (["failing", "push", "retrying"], ["failing", "push", "in-flight"])
    assert failing[1][:2] == ["failing", "1"]
    as_json = json.loads(ibrik("describe", "message", "traced/0/0", "-o", "json").stdout)
    assert as_json["value"] == "x"
    assert [d["subscription"] for d in as_json["deliveries"]] == ["failing", "lazy"]
    attempts = table(ibrik("channel", "attempts", "down", "--max", "1").stdout)
    assert attempts[0] == ["TIME", "SUBSCRIPTION", "MESSAGE", "ATTEMPT", "STATUS", "ERROR", "NEXT"]
    assert attempts[1][1:3] == ["failing", "0/0"]
    ibrik("subscription", "delete", "failing", "--policy", "Delete")


def _until(ibrik: Command, text: str, *arguments: str) -> str:
    """What a command prints as soon as it holds `text`."""
    for _ in range(20):
        printed: str = ibrik(*arguments).stdout
        if text in printed:
            return printed
    raise AssertionError(f"never {text!r}: {printed}")
