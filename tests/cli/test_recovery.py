"""Dead letters and replays from the command line, against a real broker."""

import json
import re

import pytest

from ibrik_cli.specs import letter_filter, parse_replay_place
from tests.cli.conftest import Command
from tests.cli.test_delivery import table
from tests.cli.test_listen import listening

REPLAY = re.compile(r"replay ([0-9a-f-]{36}) (\w+): (.*)\n")


@pytest.mark.slow
def test_dead_letters_are_listed_redriven_and_purged(ibrik: Command) -> None:
    with listening("--status", "400") as listener:
        ibrik("topic", "create", "orders")
        ibrik("channel", "create", "shop", "--url", listener.url)
        ibrik("subscription", "create", "billing", "--topic", "orders", "--channel", "shop")
        assert ibrik("deadletter", "ls", "billing").stderr == "no dead letters of billing\n"
        for number in (1, 2):  # Both at once would be given up in any order.
            ibrik("produce", "orders", "--format", "json", given=f'{{"id":{number}}}\n')
            listener.line()
            rows = _letters(ibrik, number)
        assert rows[0] == [
            *("LETTER", "MESSAGE", "STATE", "REASON"),
            *("ATTEMPTS", "LAST ATTEMPT", "VALUE"),
        ]
        assert rows[1][:5] == ["0/0", "orders/0/0", "dead", "status 400", "1"]
        assert rows[1][-1] == '{"id":1}'
        planned = ibrik("deadletter", "redrive", "billing", "--status", "400", "--dry-run")
        assert planned.stdout == "2 messages would be redriven\n"
        other = ibrik("deadletter", "redrive", "billing", "--reason", "timeout", "-o", "json")
        assert json.loads(other.stdout)["redriven"] == 0
        one = ibrik("deadletter", "redrive", "billing", "--filter", "data.id == 1", "--rate", "50")
        assert one.stdout == "1 message redriven\n"
        listener.line()
        assert len(_letters(ibrik, 3)) == 4
        states = [row[2] for row in _letters(ibrik, 3)[1:]]
        assert states == ["redriven", "dead", "dead"]
    assert ibrik("deadletter", "purge", "billing", "--dry-run").stdout == (
        "3 dead letters in orders.billing.dlq would be deleted\n"
    )
    assert ibrik("deadletter", "purge", "billing", "--yes").stdout == (
        "3 dead letters in orders.billing.dlq deleted\n"
    )
    assert ibrik("deadletter", "ls", "billing").stdout == ""
    assert ibrik("deadletter", "ls", "nobody").returncode == 1


@pytest.mark.slow
def test_a_range_is_replayed_and_watched(ibrik: Command) -> None:
    ibrik("topic", "create", "source", "--partitions", "2")
    ibrik("topic", "create", "copies")
    ibrik("produce", "source", "--partition", "1", given="a\nb\nc\n")
    planned = ibrik("replay", "create", "source", "--from", "1", "--partition", "1", "--dry-run",
                    "--into", "copies")  # fmt: skip
    assert table(planned.stdout) == [
        ["PARTITION", "FROM", "TO", "MESSAGES"],
        ["1", "1", "3", "2"],
    ]
    assert planned.stderr == "dry run: 2 messages before the filter; nothing was sent\n"
    assert ibrik("replay", "ls").stdout == ""
    done = ibrik("replay", "create", "source", "--from", "1", "--partition", "1", "--into",
                 "copies", "--watch")  # fmt: skip
    found = REPLAY.fullmatch(done.stdout)
    assert found, done
    assert (done.returncode, found[2], found[3]) == (0, "done", "2 delivered")
    assert ibrik("consume", "copies", "--format", "value").stdout == "b\nc\n"
    rows = table(ibrik("replay", "ls").stdout)
    assert rows[0] == [
        *("REPLAY", "TOPIC", "TARGET", "STATE"),
        *("DELIVERED", "FAILED", "REMAINING", "AGE"),
    ]
    assert rows[1][:7] == [found[1], "source", "topic copies", "done", "2", "0", "0"]
    described = ibrik("replay", "describe", found[1], "--watch").stdout
    assert "target.topic: copies\n" in described
    assert "partition 1: 1 to 3, next 3\n" in described


@pytest.mark.slow
def test_a_replay_is_cancelled_and_its_failures_are_seen(ibrik: Command) -> None:
    ibrik("topic", "create", "again")
    ibrik("channel", "create", "nobody", "--url", "http://127.0.0.1:9/hook")
    ibrik("produce", "again", given="x\n")
    begun = REPLAY.fullmatch(
        ibrik("replay", "create", "again", "--from", "earliest", "--channel", "nobody").stdout
    )
    assert begun
    for _ in range(20):
        attempts = table(ibrik("replay", "attempts", begun[1]).stdout)
        if attempts:
            break
    assert attempts[-1][2:4] == ["0/0", "1"]
    assert REPLAY.fullmatch(ibrik("replay", "cancel", begun[1]).stdout)[2] == "cancelled"  # type: ignore[index]
    assert table(ibrik("replay", "ls").stdout)[1][2:4] == ["channel/nobody", "cancelled"]
    unknown = ibrik("replay", "describe", "nothing")
    assert (unknown.returncode, unknown.stderr.count("\n")) == (1, 1)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("earliest", "earliest"),
        ("17", {"offset": 17}),
        ("1,2", {"offsets": [1, 2]}),
        ("2026-11-27T10:00:00Z", {"timestamp": "2026-11-27T10:00:00Z"}),
        ("2026-11-27", {"timestamp": "2026-11-27"}),
        (
            "5f0c3a52-9d0e-4b52-8c1c-6f1f0a1d2e3f-0-17",
            {"id": "5f0c3a52-9d0e-4b52-8c1c-6f1f0a1d2e3f-0-17"},
        ),
    ],
)
def test_a_place_of_a_replay_is_read(text: str, place: object) -> None:
    assert parse_replay_place(text) == place


def test_dead_letters_are_chosen_by_cel() -> None:
    assert letter_filter(None, None, None) is None
    assert letter_filter('a"b', 500, "x || y") == (
        '(x || y) && headers["dlq-reason"] == "a\\"b" && headers["dlq-status"] == "500"'
    )


def _letters(ibrik: Command, count: int) -> list[list[str]]:
    """The dead letters, once there are so many."""
    for _ in range(20):
        rows = table(ibrik("deadletter", "ls", "billing").stdout)
        if len(rows) > count:
            return rows
    raise AssertionError(f"never {count} dead letters: {rows}")
