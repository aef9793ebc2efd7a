"""`ibrik quality run`: what is wrong or odd in the records of a data folder."""

from typing import Annotated

import typer

from ibrik_cli.options import (
    DEFAULT_SERVER,
    DataFolder,
    JobOutput,
    OnlyTopics,
    ReportOutput,
    Server,
    TokenFile,
    examples,
)

app = typer.Typer(help="What is wrong or odd in the log.", no_args_is_help=True)


@app.callback()
def quality() -> None:
    """Keeps `run` a command of its own, while it is the only one."""


@app.command(epilog=examples("ibrik quality run ./data", "ibrik quality run ./data --dead-letters"))
def run(
    data: DataFolder,
    *,
    topic: OnlyTopics = None,
    dead_letters: Annotated[
        bool, typer.Option("--dead-letters", help="Ask the broker for dead letters as well.")
    ] = False,
    output: ReportOutput = JobOutput.TABLE,
    token_file: TokenFile = None,
    server: Server = DEFAULT_SERVER,
) -> int:
    """Look for damage, gaps and times that go back in sealed records; count nulls and sizes.

    A broker may run on the folder meanwhile. Exit 1 when something is wrong.
    """
    from ibrik_cli.jobs import run_on_data, topic_arguments

    asked = ["--server", server] if dead_letters else []
    if dead_letters and token_file is not None:
        asked += ["--token-file", str(token_file)]
    return run_on_data("quality", data, [*topic_arguments(topic), *asked, "--output", output])
