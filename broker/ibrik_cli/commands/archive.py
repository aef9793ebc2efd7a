"""`ibrik archive status | plan | run | audit | optimize | vacuum`: topics in tables."""

from pathlib import Path
from typing import Annotated

import typer

from ibrik_cli.options import (
    DEFAULT_ADMIN,
    DEFAULT_SERVER,
    AdminAddress,
    AdminTokenFile,
    DataFolder,
    DryRun,
    JobOutput,
    OnlyTopics,
    Output,
    OutputOption,
    ReportOutput,
    Server,
    examples,
)

app = typer.Typer(
    help="Topics in tables: how far they are, bring them on, look after them.",
    no_args_is_help=True,
)
Target = Annotated[str, typer.Option(help="Folder of the tables, or s3://bucket/path.")]
Tables = Annotated[
    str, typer.Argument(metavar="TARGET", help="Folder of the tables, or s3://bucket/path.")
]
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
    "run",
    help="Bring every sealed message of the topics that wish it into their tables, exactly once."
    "\n\nThe broker of the folder runs meanwhile, and is told how far the tables are.",
    epilog=examples(
        "ibrik archive run ./data --target ./lake",
        "ibrik archive run ./data --target ./lake --topic orders --period 5m",
    ),
)
@app.command(
    "plan",
    help="Say what a run would do; nothing is sealed or written.",
    epilog=examples(
        "ibrik archive plan ./data --target ./lake",
        "ibrik archive plan ./data --target ./lake --output json",
    ),
)
def run_or_plan(
    context: typer.Context,
    data: DataFolder,
    *,
    target: Target,
    topic: OnlyTopics = None,
    period: Period = "1h",
    admin: AdminAddress = DEFAULT_ADMIN,
    admin_token_file: AdminTokenFile = None,
    output: ReportOutput = JobOutput.TABLE,
) -> int:
    """Two commands with the same parameters; which one was called says its name."""
    told = [*_told(target, admin, admin_token_file), "--period", period]
    plan = ["--plan"] if context.info_name == "plan" else []
    return _beside(data, "archive", [*told, *plan], topic, output)


@app.command(
    epilog=examples(
        "ibrik archive audit ./data --target ./lake",
        "ibrik archive audit ./data --target ./lake --topic orders --no-rows",
    )
)
def audit(
    data: DataFolder,
    *,
    target: Target,
    topic: OnlyTopics = None,
    rows: Annotated[
        bool, typer.Option("--rows/--no-rows", help="Compare every row that log and table hold.")
    ] = True,
    admin: AdminAddress = DEFAULT_ADMIN,
    admin_token_file: AdminTokenFile = None,
    output: ReportOutput = JobOutput.TABLE,
) -> int:
    """Compare tables with the logs they come from, and with what the broker was told."""
    told = _told(target, admin, admin_token_file)
    return _beside(data, "audit", [*told, "--rows" if rows else "--no-rows"], topic, output)


@app.command(
    epilog=examples("ibrik archive optimize ./lake", "ibrik archive optimize ./lake --dry-run")
)
def optimize(
    target: Tables,
    *,
    topic: OnlyTopics = None,
    file_size: Annotated[
        str, typer.Option(help="How large a file shall be; half of it is enough.")
    ] = "256Mi",
    dry_run: DryRun = False,
    output: ReportOutput = JobOutput.TABLE,
) -> int:
    """Make large files of the small ones of tables; no row changes, and archive runs go on."""
    return _over(target, "optimize", ["--file-size", file_size], topic, output, is_plan=dry_run)


@app.command(
    epilog=examples("ibrik archive vacuum ./lake --dry-run", "ibrik archive vacuum ./lake")
)
def vacuum(
    target: Tables,
    *,
    topic: OnlyTopics = None,
    keep: Annotated[str, typer.Option(help="Keep what versions of the last time need.")] = "7d",
    dry_run: DryRun = False,
    output: ReportOutput = JobOutput.TABLE,
) -> int:
    """Delete files of tables that no version of the last days needs, and only those of jobs."""
    return _over(target, "vacuum", ["--keep", keep], topic, output, is_plan=dry_run)


def _told(target: str, admin: str, token_file: Path | None) -> list[str]:
    """Where the tables are, and whom a job asks and tells."""
    token = [] if token_file is None else ["--token-file", str(token_file)]
    return ["--target", target, "--admin", admin, *token]


def _beside(
    data: Path, job: str, arguments: list[str], topics: list[str] | None, output: JobOutput
) -> int:
    """A job over a data folder and its tables."""
    from ibrik_cli.jobs import run_on_data, topic_arguments

    return run_on_data(job, data, [*arguments, *topic_arguments(topics), "--output", output])


def _over(
    target: str,
    job: str,
    arguments: list[str],
    topics: list[str] | None,
    output: JobOutput,
    *,
    is_plan: bool,
) -> int:
    """A job over tables alone."""
    from ibrik_cli.jobs import run_job, topic_arguments

    plan = ["--plan"] if is_plan else []
    places = ["--target", target, *topic_arguments(topics), "--output", output]
    return run_job(job, [*places, *arguments, *plan])
