"""Wrong usage: one line that names the nearest right thing, exit code 2, no trace."""

import subprocess
import sys
from collections.abc import Iterator

import pytest
import typer
from typer.testing import CliRunner

from ibrik_cli.failures import Failure, failure_line
from ibrik_cli.main import app, run
from ibrik_client import IbrikError, Unavailable


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["serve", "--dtaa", "./x"], "error: unknown option --dtaa (did you mean --data?)"),
        (
            ["topic", "ls", "--outptu", "json"],
            "error: unknown option --outptu (did you mean --output?)",
        ),
        (["serve", "--xyzzy"], "error: unknown option --xyzzy"),
        (["topci"], "error: no such command 'topci'. Did you mean 'topic'?"),
        (
            ["get", "queues"],
            "error: unknown kind 'queues': this broker serves topics, channels, subscriptions",
        ),
        (["describe", "topic"], "error: name the resource, or a file with -f"),
        (
            ["describe", "message", "orders"],
            "error: 'orders' is no place: write topic/partition/offset",
        ),
        (["serve", "--set", "log"], "error: --set log: expected NAME=VALUE"),
        (
            ["serve", "--set", "log.segment_byte=1"],
            "error: unknown setting log.segment_byte (did you mean log.segment_bytes?)",
        ),
        (
            ["topic", "create", "a", "--partitioner", "random"],
            "error: unknown partitioner 'random'",
        ),
        (
            ["topic", "purge", "a"],
            "error: this deletes every message of a for good; say so with --yes",
        ),
        (["produce", "a", "--acks", "all"], "error: --acks all: durable or none"),
        (
            ["channel", "create", "a"],
            "error: the destination: write one of --url, --tcp, --topic, there is none",
        ),
        (
            ["channel", "create", "a", "--url", "http://x", "--topic", "b"],
            "error: the destination: write one of --url, --tcp, --topic, not 2",
        ),
        (
            ["channel", "create", "a", "--tcp", "printer"],
            "error: --tcp printer: expected host:port",
        ),
        (
            ["channel", "create", "a", "--url", "http://x", "--header", "x"],
            "error: --header x: expected NAME=VALUE",
        ),
        (
            ["channel", "create", "a", "--topic=b", "--signing-file=f", "--signing-env=E"],
            "error: --signing-file or --signing-env, not both",
        ),
        (
            ["subscription", "create", "a", "--topic", "b"],
            "error: the way: write one of --push, --channel, --pull, --stream, there is none",
        ),
        (["consume"], "error: name a TOPIC, or a --subscription"),
        (["consume", "a", "--nack"], "error: name a TOPIC, or a --subscription"),
        (
            ["consume", "a", "--subscription", "b"],
            "error: --subscription stands for a topic and a place: leave TOPIC, --from",
        ),
        (
            ["deadletter", "purge", "a"],
            "error: this deletes the dead letters of a for good; say so with --yes",
        ),
        (
            ["replay", "create", "a", "--from", "0"],
            "error: the target: write one of --channel, --into, there is none",
        ),
        (["listen", "0", "--verify"], "error: --verify needs the secret: --secret-file FILE"),
        (["listen", "0", "--delay", "1"], "error: '1' is no duration"),
        (["listen", "0", "--secret", "whsec_x"], "error: --secret is not taken: everybody here"),
        (["produce", "a", "--token=x"], "error: --token is not taken: everybody here"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(
    arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    errors = capsys.readouterr().err
    assert errors.startswith(line)
    assert errors.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["apply", "-f", "nothing.yaml"], "error: nothing.yaml: no such file or folder"),
        (["produce", "a", "--file", "nothing.csv"], "error: nothing.csv: no such file"),
        (["log", "verify", "nowhere"], "error: nowhere is no data folder of Ibrik"),
        (["topic", "ls", "--server", "localhost"], "error: localhost is not an address"),
    ],
)
def test_what_fails_is_one_line_and_exit_code_1(
    arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 1
    errors = capsys.readouterr().err
    assert errors.startswith(line)
    assert errors.count("\n") == 1


def test_debug_shows_the_trace_wherever_it_stands() -> None:
    with pytest.raises(Failure):
        run(["apply", "--debug", "-f", "nothing.yaml"])
    with pytest.raises(Failure):
        run(["apply", "-f", "nothing.yaml", "--debug"])


def commands(group: typer.Typer, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for command in group.registered_commands:
        name = command.name or getattr(command.callback, "__name__", "")
        yield (*path, name)
    for inner in group.registered_groups:
        assert inner.typer_instance is not None
        yield from commands(inner.typer_instance, (*path, str(inner.name)))


@pytest.mark.parametrize("path", list(commands(app)), ids=" ".join)
def test_every_command_has_a_help_with_two_examples(path: tuple[str, ...]) -> None:
    result = CliRunner().invoke(app, [*path, "--help"])
    assert result.exit_code == 0
    examples = result.output.partition("Examples:")[2]
    assert examples.count("ibrik ") >= 2


def test_help_imports_neither_client_nor_broker() -> None:
    code = (
        "import sys; from ibrik_cli.main import run; run(['--help']);"
        "heavy = {'aiohttp', 'ibrik_client', 'ibrik_broker', 'ibrik_log', 'sqlalchemy', 'yaml'};"
        "sys.exit(', '.join(heavy & set(sys.modules)) or None)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.returncode == 0


def test_a_failure_says_the_next_step() -> None:
    assert failure_line(Unavailable("cannot reach x")).endswith("Start one with: ibrik serve --dev")
    assert failure_line(IbrikError("There is no topic.")) == "There is no topic."
    assert failure_line(ExceptionGroup("several", [IbrikError("first")])) == "first"
    assert failure_line(FileNotFoundError(2, "No such file", "x")) == "x: no such file"
    assert "--debug" in failure_line(ZeroDivisionError("division by zero"))
