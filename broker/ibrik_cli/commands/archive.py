"""`ibrik archive status | plan | run`: topics in tables, and how far they are."""

from pathlib import Path
from typing import Annotated

import typer

from ibrik_cli.options import (
    DEFAULT_ADMIN,
    DEFAULT_SERVER,
    AdminAddress,
    AdminTokenFile,
    DataFolder,
    JobOutput,
    OnlyTopics,
    Output,
    OutputOption,
    ReportOutput,
    Server,
    examples,
)

app = typer.Typer(
    help="Topics in tables: how far they are, and bring them on.", no_args_is_help=True
)
Target = Annotated[str, typer.Option(help="Folder of the tables.")]
Period = Annotated[str, typer.Option(help="Seal first what is older than this.")]


@app.command(epilog=examples("ibrik archive status", "ibrik archive status flights -o json"))
def status(
    topic: Annotated[str | None, typer.Argument(metavar="[TOPIC]", help="Only this topic.")] = None,
    output: OutputOption = Output.TABLE,
    server: Server = DEFAULT_SERVER,
) -> None:
    """Show how far each partition is archived, and what the last run came to."""
    from ibrik_cli.archives import look_up
    from ibrik_cli.session import run_with_client
    from ibrik_cli.showing import print_listing

    print_listing(
        run_with_client(server, lambda c: look_up(c, topic)), output, is_single=topic is not None
    )


@app.command(
    epilog=examples(
        "ibrik archive run ./data --target ./lake",
        "ibrik archive run ./data --target ./lake --topic orders --period 5m",
    )
)
def run(
    data: DataFolder,
    *,
    target: Target,
    topic: OnlyTopics = None,
    period: Period = "1h",
    admin: AdminAddress = DEFAULT_ADMIN,
    admin_token_file: AdminTokenFile = None,
    output: ReportOutput = JobOutput.TABLE,
) -> int:
    """Bring every sealed message of the topics that wish it into their tables, exactly once.

    The broker of the folder runs meanwhile, and is told how far the tables are.
    """
    return _job(
        data,
        target=target,
        topics=topic,
        period=period,
        admin=admin,
        token_file=admin_token_file,
        output=output,
    )


@app.command(
    epilog=examples(
        "ibrik archive plan ./data --target ./lake",
        "ibrik archive plan ./data --target ./lake --output json",
    )
)
def plan(
    data: DataFolder,
    *,
    target: Target,
    topic: OnlyTopics = None,
    period: Period = "1h",
    admin: AdminAddress = DEFAULT_ADMIN,
    admin_token_file: AdminTokenFile = None,
    output: ReportOutput = JobOutput.TABLE,
) -> int:
    """Say what a run would do; nothing is sealed or written."""
    return _job(
        data,
        "--plan",
        target=target,
        topics=topic,
        period=period,
        admin=admin,
        token_file=admin_token_file,
        output=output,
    )


def _job(
    data: Path,
    *more: str,
    target: str,
    topics: list[str] | None,
    period: str,
    admin: str,
    token_file: Path | None,
    output: JobOutput,
) -> int:
    from ibrik_cli.jobs import run_job, topic_arguments

    places = ["--target", target, "--admin", admin]
    if token_file is not None:
        places += ["--token-file", str(token_file)]
    options = ["--period", period, "--output", output, *more]
    return run_job("archive", data, [*places, *topic_arguments(topics), *options])
