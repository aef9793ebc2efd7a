"""`ibrik metadata copy`: all that is not a message, from one database into another."""

import re
from pathlib import Path
from typing import Annotated

import typer

from ibrik_cli.failures import WRONG_USAGE, Failure
from ibrik_cli.options import Output, OutputOption, examples

app = typer.Typer(help="Move the metadata of a broker that is stopped.", no_args_is_help=True)
PASSWORD = re.compile(r"\w[\w+]*://[^/@]*:[^/@]*@")
WORDS = {"sqlite": "SQLite", "postgresql": "Postgres"}


@app.command(
    epilog=examples(
        "ibrik metadata copy --from sqlite:///data/metadata.db --to-file postgres.uri",
        "IBRIK_COPY_FROM=postgresql://… ibrik metadata copy --to sqlite:///data/metadata.db",
    )
)
def copy(
    context: typer.Context,
    *,
    from_: Annotated[
        str, typer.Option("--from", envvar="IBRIK_COPY_FROM", help="URL of the source.")
    ] = "",
    from_file: Annotated[
        Path | None, typer.Option("--from-file", help="File whose first line is that URL.")
    ] = None,
    to: Annotated[
        str, typer.Option("--to", envvar="IBRIK_COPY_TO", help="URL of the target, which is empty.")
    ] = "",
    to_file: Annotated[
        Path | None, typer.Option("--to-file", help="File whose first line is that URL.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            help="Data folder of the stopped broker, when no SQLite file in it is named.",
        ),
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Copy topics, channels, subscriptions and cursors, SQLite to Postgres or back. All or nothing.

    The broker is stopped. The target is empty; it is read back and compared before it counts.
    """
    from ibrik_cli.moving import move
    from ibrik_cli.output import emit, say

    source = choose_url(context, "from_", from_file)
    target = choose_url(context, "to", to_file)
    copied = move(source, target, data)
    emit(
        [copied],
        output,
        columns=("TABLE", "ROWS"),
        rows=[[t["table"], f"{t['rows']:,}"] for t in copied["tables"]],
        is_single=True,
    )
    say(
        f"copied {copied['rows']:,} rows to {WORDS[copied['to']]} and compared them. Next: set "
        "metadata.url to the target, start the broker, and put the source away as a backup"
    )


def choose_url(context: typer.Context, parameter: str, file: Path | None) -> str:
    """The URL of `--from` or `--to`, from where nobody else can read a password in it."""
    option = f"--{parameter.rstrip('_')}"
    if file is not None:
        lines = file.read_text(encoding="utf-8").split()
        if not lines:
            raise Failure(f"{file} holds no URL")
        return lines[0]
    given = str(context.params[parameter])
    variable = f"IBRIK_COPY_{parameter.rstrip('_').upper()}"
    if not given:
        raise Failure(f"name the database: {option}, {option}-file or {variable}", WRONG_USAGE)
    source = context.get_parameter_source(parameter)
    is_argument = source is not None and source.name == "COMMANDLINE"
    if is_argument and PASSWORD.match(given):
        raise Failure(
            f"{option} has a password in it, which everybody here could read in the list of "
            f"processes. Put the URL into a file ({option}-file) or into {variable}",
            WRONG_USAGE,
        )
    return given
