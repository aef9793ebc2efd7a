"""`python -m ibrik_spark JOB`: the data jobs, for pods and for `ibrik`; nothing is decided here."""

import asyncio
import json
import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ibrik_api.durations import parse_duration
from ibrik_api.quantities import parse_quantity

from .errors import ExitCode
from .jobs import archive as archiving
from .reports import Report, exit_code

TERMINATION_LOG = "IBRIK_SPARK_TERMINATION_LOG"

app = typer.Typer(
    name="ibrik_spark",
    help="Jobs over the write-ahead log of a broker. Exit codes: 0 done, 2 nothing to do, "
    "3 superseded by another run, 64 somebody has to look, 75 try again.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Output(StrEnum):
    TABLE = "table"
    JSON = "json"


class Damage(StrEnum):
    FAIL = "fail"
    RECORD_GAP = "record-gap"


def _duration(text: str) -> str:
    try:
        parse_duration(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    return text


def _size(text: str) -> str:
    try:
        parse_quantity(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    return text


Data = Annotated[Path, typer.Option(help="The broker's data folder; it is only read.")]
Target = Annotated[str, typer.Option(help="The folder of the tables, or s3://bucket/path.")]
Plan = Annotated[bool, typer.Option("--plan", help="Only say what a run would do.")]
Topics = Annotated[list[str] | None, typer.Option(help="Only this topic; may repeat.")]
TokenFile = Annotated[
    Path | None, typer.Option(envvar="IBRIK_TOKEN_FILE", help="File whose first line is the token.")
]
Admin = Annotated[
    str | None,
    typer.Option(
        envvar="IBRIK_ADMIN_URL",
        help="The broker's admin door. Without: what is sealed, and nobody is asked or told.",
    ),
]
AdminTokenFile = Annotated[
    Path | None,
    typer.Option(envvar="IBRIK_ADMIN_TOKEN_FILE", help="File whose first line is the admin token."),
]
Cores = Annotated[int | None, typer.Option(min=1, help="Tasks of Spark at once.")]
OutputOption = Annotated[Output, typer.Option("--output", "-o")]
SparkFrom = Annotated[str, typer.Option(callback=_size, help="Start Spark for at least this much.")]


@app.command()
def archive(
    *,
    data: Data,
    target: Target,
    admin: Admin = None,
    token_file: AdminTokenFile = None,
    topic: Topics = None,
    period: Annotated[
        str, typer.Option(callback=_duration, help="Seal first what is older than this.")
    ] = "1h",
    damage: Annotated[
        Damage, typer.Option(help="What offsets that cannot be read do: end the run, or a gap.")
    ] = Damage.FAIL,
    new_table: Annotated[
        bool, typer.Option("--new-table", help="Begin a table although the broker knows another.")
    ] = False,
    plan: Plan = False,
    spark_from: SparkFrom = "1Gi",
    cores: Cores = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Bring every sealed record of the topics that wish it into their tables, exactly once."""
    options = archiving.Options(
        data=data,
        target=target,
        topics=tuple(topic or ()),
        period=period,
        admin_url=admin,
        token=_first_line(token_file),
        records_gaps=damage is Damage.RECORD_GAP,
        is_new_table=new_table,
        is_plan=plan,
        spark_bytes=parse_quantity(spark_from),
        cores=cores,
    )
    _end(asyncio.run(archiving.run(options)), output)


@app.command()
def optimize(
    *,
    target: Target,
    topic: Topics = None,
    file_size: Annotated[
        str, typer.Option(callback=_size, help="How large a file shall be; half of it is enough.")
    ] = "256Mi",
    plan: Plan = False,
    spark_from: SparkFrom = "1Gi",
    cores: Cores = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Make large files of the small ones of tables; no row changes, and archive runs go on."""
    from .jobs import optimize as merging

    options = merging.Options(
        target=target,
        topics=tuple(topic or ()),
        file_bytes=parse_quantity(file_size),
        is_plan=plan,
        spark_bytes=parse_quantity(spark_from),
        cores=cores,
    )
    _end(merging.run(options), output)


@app.command()
def audit(
    *,
    data: Data,
    target: Target,
    admin: Admin = None,
    token_file: AdminTokenFile = None,
    topic: Topics = None,
    rows: Annotated[
        bool, typer.Option("--rows/--no-rows", help="Compare every row that log and table hold.")
    ] = True,
    spark_from: SparkFrom = "4Gi",
    cores: Cores = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Compare tables with the logs they come from, and with what the broker was told."""
    from .jobs import audit as comparing

    options = comparing.Options(
        data=data,
        target=target,
        topics=tuple(topic or ()),
        admin_url=admin,
        token=_first_line(token_file),
        is_comparing=rows,
        spark_bytes=parse_quantity(spark_from),
        cores=cores,
    )
    _end(asyncio.run(comparing.run(options)), output)


@app.command()
def vacuum(
    *,
    target: Target,
    topic: Topics = None,
    keep: Annotated[
        str, typer.Option(callback=_duration, help="Keep what versions of the last time need.")
    ] = "7d",
    plan: Plan = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Delete files of tables that no version of the last days needs, and only those of jobs."""
    from .jobs import vacuum as sweeping

    options = sweeping.Options(target, tuple(topic or ()), keep, plan)
    _end(sweeping.run(options), output)


@app.command()
def quality(
    *,
    data: Data,
    topic: Topics = None,
    server: Annotated[
        str | None, typer.Option(help="Address of a broker that is asked for dead letters.")
    ] = None,
    token_file: TokenFile = None,
    spark_from: SparkFrom = "4Gi",
    cores: Cores = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Look for damage, gaps and times that go back in what is sealed; count nulls and sizes."""
    # Not above: what reads rows takes a second to load, and an archive often has nothing to do.
    from .jobs import quality as judging
    from .spread import Options

    options = Options(data, tuple(topic or ()), parse_quantity(spark_from), cores)
    _end(judging.run(options, server, _first_line(token_file)), output)


@app.command()
def traffic(
    *,
    data: Annotated[Path | None, typer.Option(help="The broker's data folder.")] = None,
    target: Annotated[
        str | None, typer.Option(help="Count the tables there instead: a folder, or s3://…")
    ] = None,
    topic: Topics = None,
    spark_from: SparkFrom = "4Gi",
    cores: Cores = None,
    page: Annotated[
        Path | None, typer.Option(help="Write the report as an HTML page to this file as well.")
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Count the messages that are sealed, or archived, by minute, topic, partition and key."""
    from .jobs import traffic as counting
    from .page import traffic_page
    from .spread import Options

    topics, size_bytes = tuple(topic or ()), parse_quantity(spark_from)
    if target is not None and data is None:
        tables = counting.TableOptions(target, topics, size_bytes, cores)
        report = counting.run_on_tables(tables)
    elif data is not None and target is None:
        report = counting.run(Options(data, topics, size_bytes, cores))
    else:
        raise typer.BadParameter("write one of --data and --target")
    if page is not None:
        page.write_text(traffic_page(report), encoding="utf-8")
    _end(report, output)


@app.command()
def replay(
    *,
    target: Annotated[str, typer.Option(help="The folder of the tables.")],
    topic: Annotated[str, typer.Option(help="The archived topic: its name, or its id.")],
    server: Annotated[
        str, typer.Option(envvar="IBRIK_SERVER", help="Address of the broker's HTTP door.")
    ] = "http://127.0.0.1:8080",
    token_file: TokenFile = None,
    from_: Annotated[
        str, typer.Option("--from", help="earliest, an offset, or a time in RFC 3339.")
    ] = "earliest",
    to: Annotated[str | None, typer.Option("--to", help="End before this offset or time.")] = None,
    partition: Annotated[
        list[int] | None, typer.Option(min=0, help="Only this partition; may repeat.")
    ] = None,
    into: Annotated[
        str | None, typer.Option(metavar="TOPIC", help="Publish to this topic, not to a new one.")
    ] = None,
    channel: Annotated[
        str | None, typer.Option(help="Have the new topic delivered to this channel.")
    ] = None,
    rate: Annotated[int | None, typer.Option(min=1, help="Records a second at most.")] = None,
    name: Annotated[
        str, typer.Option("--run", help="Name of the run: another one begins anew.")
    ] = "",
    force: Annotated[
        bool, typer.Option("--force", help="Even into the topic that was archived.")
    ] = False,
    plan: Annotated[bool, typer.Option("--plan", help="Only say what a run would do.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Publish records of a table once more, to a topic or a channel, each once."""
    from .jobs import replay as replaying

    if into is not None and channel is not None:
        raise typer.BadParameter("write one of --into and --channel")
    options = replaying.Options(
        target=target,
        topic=topic,
        server=server,
        token=_first_line(token_file),
        start=from_,
        end=to,
        partitions=tuple(partition or ()),
        into=into,
        channel=channel,
        rate=rate,
        name=name,
        is_forced=force,
        is_plan=plan,
    )
    _end(asyncio.run(replaying.run(options)), output)


def _first_line(path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        return path.read_text().partition("\n")[0].strip()
    except OSError as error:
        sys.stderr.write(f"error: cannot read the token in {path}: {error.strerror}\n")
        raise typer.Exit(ExitCode.CONFIGURATION) from error


def _end(report: Report, output: Output) -> None:
    """Print the report, leave the last words of a pod, and end with the job's code."""
    if output is Output.JSON:
        sys.stdout.write(json.dumps(report.document(), indent=2) + "\n")
    else:
        sys.stdout.write(report.table())
    log = os.environ.get(TERMINATION_LOG)
    raise typer.Exit(exit_code(report, Path(log) if log else None))


if __name__ == "__main__":
    app()
