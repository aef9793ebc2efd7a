"""`ibrik log ls | dump | verify`: a data folder, read without its broker; and `adopt`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ibrik_cli.failures import REFUSED
from ibrik_cli.options import (
    DEFAULT_ADMIN,
    DEFAULT_SERVER,
    AdminAddress,
    AdminTokenFile,
    Output,
    OutputOption,
    Server,
    examples,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ibrik_cli.volumes import PartitionLog

app = typer.Typer(help="Look into a data folder without a broker.", no_args_is_help=True)
Data = Annotated[Path, typer.Argument(metavar="[DATA]", help="The data folder.")]
HERE = Path("data")
COLUMNS = ("TOPIC", "PARTITION", "EARLIEST", "NEXT", "RECORDS", "SEGMENTS", "BYTES", "EPOCH")


@app.command("ls", epilog=examples("ibrik log ls ./data", "ibrik log ls ./data --output json"))
def list_(data: Data = HERE, output: OutputOption = Output.TABLE) -> None:
    """List the partitions' logs with their offsets and sizes."""
    from ibrik_cli.output import emit, say
    from ibrik_cli.volumes import open_logs, open_volume

    volume = open_volume(data)
    documents = [describe_log(part) for part in open_logs(volume)]
    emit(
        documents,
        output,
        columns=COLUMNS,
        rows=[log_row(document) for document in documents],
        empty=f"no topics in {data}",
    )
    for topic_id in volume.unreadable:
        say(f"warning: topics/{topic_id} is kept and not served: its topic.json is unreadable")


def describe_log(part: "PartitionLog") -> dict[str, str | int]:
    log = part.log
    return {
        "topic": part.topic.name,
        "topic_id": part.topic.topic_id,
        "partition": part.partition,
        "earliest": log.start_offset,
        "latest": log.end_offset,
        "segments": len(log.segments),
        "size_bytes": log.size_bytes,
        "leader_epoch": log.leader_epoch,
    }


def log_row(document: dict[str, str | int]) -> list[str]:
    from ibrik_cli.output import count_text, size_text

    earliest, latest = int(document["earliest"]), int(document["latest"])
    return [
        str(document["topic"]),
        str(document["partition"]),
        count_text(earliest),
        count_text(latest),
        count_text(latest - earliest),
        count_text(int(document["segments"])),
        size_text(int(document["size_bytes"])),
        str(document["leader_epoch"]),
    ]


@app.command(
    epilog=examples(
        "ibrik log dump flights/2 --data ./data --from 70000 --max 10",
        "ibrik log dump flights --data ./data --batches",
    )
)
def dump(
    log: Annotated[str, typer.Argument(metavar="TOPIC[/PARTITION]", help="Name or id.")],
    *,
    data: Annotated[Path, typer.Option("--data", help="The data folder.")] = HERE,
    from_: Annotated[int, typer.Option("--from", min=0, help="First offset.")] = 0,
    max_lines: Annotated[int, typer.Option("--max", min=1, help="Lines at most.")] = 1_000,
    batches: Annotated[
        bool, typer.Option("--batches", help="The headers of batches, not the records.")
    ] = False,
) -> None:
    """Print records, or batches, as they are stored."""
    from itertools import islice

    from ibrik_cli.volumes import open_logs, open_volume

    for part in open_logs(open_volume(data), log):
        lines = batch_lines(part, from_) if batches else record_lines(part, from_)
        for line in islice(lines, max_lines):
            sys.stdout.write(line + "\n")


@app.command(
    epilog=examples("ibrik log verify ./data", "ibrik log verify ./data --topic flights/2")
)
def verify(
    data: Data = HERE,
    topic: Annotated[str, typer.Option("--topic", help="This topic or topic/partition.")] = "",
) -> int:
    """Read every byte and check it against its checksum. Exit 1 when something is damaged."""
    from ibrik_cli.output import count_text, size_text
    from ibrik_cli.volumes import open_logs, open_volume, problem_line

    volume = open_volume(data)
    size_bytes = records = problems = 0
    for part in open_logs(volume, topic):
        size_bytes += part.log.size_bytes
        records += part.log.end_offset - part.log.start_offset
        for problem in part.log.verify():
            problems += 1
            sys.stdout.write(problem_line(part, problem) + "\n")
    for topic_id in volume.unreadable:
        problems += 1
        sys.stdout.write(f"topics/{topic_id}  topic.json is unreadable; the topic is not served\n")
    found = f"{problems} problem{'' if problems == 1 else 's'}" if problems else "no problem"
    advice = " Next: restore what is named above from a backup; the rest is served." * (
        problems > 0
    )
    sys.stdout.write(
        f"verified {size_text(size_bytes)}, {count_text(records)} records: {found}.{advice}\n"
    )
    return REFUSED if problems else 0


@app.command(
    epilog=examples(
        "ibrik log ls ./data --output json   # shows the ids",
        "ibrik log adopt 3f0c9a52-6d3e-4c1f-9b7e-2a4d8c5e1f60",
    )
)
def adopt(
    topic_id: Annotated[str, typer.Argument(metavar="TOPIC-ID", help="Name of its folder.")],
    admin: AdminAddress = DEFAULT_ADMIN,
    admin_token_file: AdminTokenFile = None,
    server: Server = DEFAULT_SERVER,
) -> None:
    """Let the running broker serve a folder again whose row in the metadata database is lost."""
    from ibrik_cli.manifests import display_name
    from ibrik_cli.session import run_with_client

    adopted = run_with_client(
        server, lambda c: c.admin.adopt(topic_id), admin=admin, admin_token_file=admin_token_file
    )
    sys.stdout.write(
        f"{display_name(adopted)} adopted; all of it stays until its resource is applied\n"
    )


def record_lines(part: "PartitionLog", from_offset: int) -> "Iterator[str]":
    from ibrik_api.timestamps import format_timestamp
    from ibrik_cli.records import readable
    from ibrik_cli.volumes import records

    return (
        f"{part.name}  {r.offset}  {format_timestamp(r.timestamp_ms)}  "
        + (f"key={readable(r.key)}  " if r.key is not None else "")
        + readable(r.value)
        for r in records(part.log, from_offset)
    )


def batch_lines(part: "PartitionLog", from_offset: int) -> "Iterator[str]":
    from ibrik_cli.volumes import batches

    return (
        f"{part.name}  {h.base_offset}..{h.last_offset}  {h.record_count} records  "
        f"{h.length_bytes} bytes  epoch {h.leader_epoch}  "
        f"producer {h.producer.id}/{h.producer.epoch}/{h.producer.sequence}"
        for h, _ in batches(part.log, from_offset)
    )
