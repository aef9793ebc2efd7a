"""What the tables look like, on fixed figures."""

import io

import pytest

from ibrik_cli.commands.bench import Measured, summary
from ibrik_cli.commands.consume import message_line
from ibrik_cli.options import Output
from ibrik_cli.output import clock_text, print_table, size_text
from ibrik_cli.records import OutputFormat
from ibrik_cli.topics import print_description, print_topics
from ibrik_client.messages import Message, PartitionRange

FLIGHTS = {
    "apiVersion": "ibrik.dev/v1beta1",
    "kind": "Topic",
    "metadata": {
        "name": "flights",
        "namespace": "default",
        "creationTimestamp": "2026-11-27T10:00:00.000Z",
    },
    "spec": {"partitions": 2, "retention": {"time": "7d"}, "archive": {"enabled": False}},
    "status": {
        "topicId": "6f1c0000-0000-4000-8000-000000000001",
        "conditions": [{"type": "Ready", "status": "True", "reason": "Serving", "message": "ok"}],
    },
}
ORDERS = {
    "metadata": {"name": "orders-resource"},
    "spec": {"topicName": "orders", "retention": {"time": "30d", "bytes": "10Gi"}},
}
RANGES = [PartitionRange(0, 0, 148_526, 31_000_000), PartitionRange(1, 7, 188_257, 40_300_000)]


def test_topics_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    print_topics([(FLIGHTS, RANGES), (ORDERS, [PartitionRange(0, 0, 2, 412)])], Output.TABLE)
    assert capsys.readouterr().out == (
        "TOPIC    PARTITIONS  MESSAGES    BYTES  RETENTION\n"
        "flights           2   336,776  71.3 MB  7d\n"
        "orders            1         2    412 B  30d or 10Gi\n"
    )


def test_no_topics_say_how_to_begin(capsys: pytest.CaptureFixture[str]) -> None:
    print_topics([], Output.TABLE)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "ibrik topic create" in captured.err


def test_topics_as_json_and_yaml(capsys: pytest.CaptureFixture[str]) -> None:
    print_topics([(ORDERS, [])], Output.JSON, is_single=True)
    assert capsys.readouterr().out.startswith('{\n  "metadata": {\n    "name": "orders-resource"')
    print_topics([(ORDERS, [])], Output.YAML)
    assert capsys.readouterr().out.startswith("- metadata:\n    name: orders-resource\n")


def test_a_topic_described(capsys: pytest.CaptureFixture[str]) -> None:
    print_description(FLIGHTS, RANGES)
    assert capsys.readouterr().out == (
        "Name:       flights\n"
        "Namespace:  default\n"
        "Created:    2026-11-27T10:00:00.000Z\n"
        "Id:         6f1c0000-0000-4000-8000-000000000001\n"
        "Spec:\n"
        "  partitions: 2\n"
        "  retention.time: 7d\n"
        "  archive.enabled: false\n"
        "Ready True Serving: ok\n"
        "\n"
        "PARTITION  EARLIEST     NEXT  MESSAGES    BYTES\n"
        "0                 0  148,526   148,526  31.0 MB\n"
        "1                 7  188,257   188,250  40.3 MB\n"
    )


def test_a_pipe_never_cuts_a_table() -> None:
    stream = io.StringIO()
    print_table(("NAME",), [["x" * 500]], stream)
    assert "x" * 500 in stream.getvalue()


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (71_300_000, "71.3 MB"),
        (999_950_000, "1.0 GB"),
    ],
)
def test_sizes_as_people_say_them(size_bytes: int, text: str) -> None:
    assert size_text(size_bytes) == text


def message(value: bytes | None, key: bytes | None = None) -> Message:
    return Message("orders", 2, 17, "2026-11-27T10:00:00.123Z", key, value, id="x")


def test_a_message_as_a_line() -> None:
    text = OutputFormat.TEXT
    assert (
        message_line(message(b'{"a":1}', b"7"), text, False) == '17  10:00:00.123  key=7  {"a":1}'
    )
    assert message_line(message(b"hi"), text, True) == "2/17  10:00:00.123  hi"
    assert message_line(message(None), text, False) == "17  10:00:00.123  null"
    assert message_line(message(b"\xff"), text, False) == "17  10:00:00.123  base64:/w=="


def test_values_stand_below_each_other_where_some_messages_have_a_key() -> None:
    text = OutputFormat.TEXT
    with_key = message_line(message(b"a", b"7"), text, False, key_width=5)
    without = message_line(message(b"b"), text, False, key_width=5)
    assert [with_key, without] == ["17  10:00:00.123  key=7  a", "17  10:00:00.123         b"]


def test_a_message_as_json_has_its_value_as_json() -> None:
    line = message_line(message(b'{"a":1}', b"7"), OutputFormat.JSON, False)
    assert line == (
        '{"topic": "orders", "partition": 2, "offset": 17, '
        '"timestamp": "2026-11-27T10:00:00.123Z", "id": "x", "key": "7", "headers": {}, '
        '"value": {"a": 1}}'
    )


def test_a_payload_cannot_drive_the_terminal() -> None:
    line = message_line(message(b"\x1b[2Jgone\nsecond line"), OutputFormat.TEXT, False)
    assert line == "17  10:00:00.123  \\x1b[2Jgone\\nsecond line"


def test_a_time_of_day() -> None:
    assert clock_text("2026-11-27T10:00:00.123Z") == "10:00:00.123"


def test_percentiles_are_nearest_rank() -> None:
    found = summary(Measured(2.0, [float(n) for n in range(1, 101)]), 4, 10)
    assert (found["per_second"], found["p50_ms"], found["p99_ms"], found["p99.9_ms"]) == (
        50,
        50,
        99,
        100,
    )
