"""`ibrik traffic run`: how many messages there were when, and under which keys."""

from pathlib import Path
from typing import Annotated

import typer

from ibrik_cli.options import JobOutput, OnlyTopics, ReportOutput, examples

app = typer.Typer(help="How many messages there were when.", no_args_is_help=True)
PAGE = Path("traffic.html")


@app.callback()
def traffic() -> None:
    """Keeps `run` a command of its own, while it is the only one."""


@app.command(
    epilog=examples("ibrik traffic run ./data --open", "ibrik traffic run --target ./lake -o json")
)
def run(
    data: Annotated[
        Path | None,
        typer.Argument(metavar="[DATA]", help="Data folder of a broker; it is only read."),
    ] = None,
    *,
    target: Annotated[
        str | None, typer.Option(help="Count tables instead: their folder, or s3://bucket/path.")
    ] = None,
    topic: OnlyTopics = None,
    page: Annotated[
        Path | None, typer.Option(help="Write a page with charts to this file as well.")
    ] = None,
    open_: Annotated[
        bool, typer.Option("--open", help="Open that page, or traffic.html, in the browser.")
    ] = False,
    output: ReportOutput = JobOutput.TABLE,
) -> int:
    """Count messages by minute, topic, partition and key: what is sealed, or what tables hold.

    A broker may run on the folder meanwhile; `ibrik topic roll` seals what is new.
    """
    from ibrik_cli.jobs import run_job, topic_arguments

    if (data is None) == (target is None):
        raise typer.BadParameter("give the data folder of a broker, or --target of tables")
    place = ["--data", str(data)] if target is None else ["--target", target]

    page = page or (PAGE if open_ else None)
    pages = [] if page is None else ["--page", str(page)]
    code = run_job("traffic", [*place, *topic_arguments(topic), *pages, "--output", output])
    if open_ and page is not None and page.exists():
        typer.launch(str(page))
    return code
