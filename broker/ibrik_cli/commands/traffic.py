"""`ibrik traffic run`: how many messages there were when, and under which keys."""

from pathlib import Path
from typing import Annotated

import typer

from ibrik_cli.options import DataFolder, JobOutput, OnlyTopics, ReportOutput, examples

app = typer.Typer(help="How many messages there were when.", no_args_is_help=True)
PAGE = Path("traffic.html")


@app.callback()
def traffic() -> None:
    """Keeps `run` a command of its own, while it is the only one."""


@app.command(epilog=examples("ibrik traffic run ./data --open", "ibrik traffic run ./data -o json"))
def run(
    data: DataFolder,
    topic: OnlyTopics = None,
    page: Annotated[
        Path | None, typer.Option(help="Write a page with charts to this file as well.")
    ] = None,
    open_: Annotated[
        bool, typer.Option("--open", help="Open that page, or traffic.html, in the browser.")
    ] = False,
    output: ReportOutput = JobOutput.TABLE,
) -> int:
    """Count sealed messages by minute, topic, partition and key.

    A broker may run on the folder meanwhile; `ibrik topic roll` seals what is new.
    """
    from ibrik_cli.jobs import run_job, topic_arguments

    page = page or (PAGE if open_ else None)
    pages = [] if page is None else ["--page", str(page)]
    code = run_job("traffic", data, [*topic_arguments(topic), *pages, "--output", output])
    if open_ and page is not None and page.exists():
        typer.launch(str(page))
    return code
