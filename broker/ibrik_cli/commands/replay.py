"""`ibrik replay create | ls | describe | cancel | attempts`: a range once more to one place."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ibrik_cli.failures import REFUSED
from ibrik_cli.options import (
    DEFAULT_SERVER,
    DryRun,
    JobOutput,
    Output,
    OutputOption,
    ReportOutput,
    Server,
    TokenFile,
    TopicName,
    examples,
)

if TYPE_CHECKING:
    from ibrik_client import Client

app = typer.Typer(
    help="Deliver a range of a topic once more to one channel or topic; moves nobody's cursor.",
    no_args_is_help=True,
)
Partitions = Annotated[
    list[int] | None, typer.Option("--partition", min=0, help="Only this one; may repeat.")
]
Rate = Annotated[int | None, typer.Option(min=1, help="Messages a second at most.")]
ReplayId = Annotated[str, typer.Argument(metavar="ID", help="As create and ls print it.")]


@app.command(
    epilog=examples(
        "ibrik replay create orders --from 2026-11-27T10:00:00Z --channel audit --watch",
        "ibrik replay create orders --from earliest --to 1200 --into copies --dry-run",
    )
)
def create(
    topic: TopicName,
    *,
    from_: Annotated[
        str,
        typer.Option(
            "--from", help="earliest, an offset, a time in RFC 3339, or behind a message's id."
        ),
    ],
    to: Annotated[
        str | None,
        typer.Option("--to", help="End before this offset or time; left out, where it ends now."),
    ] = None,
    channel: Annotated[
        str | None, typer.Option("--channel", help="Deliver to this channel.")
    ] = None,
    into: Annotated[
        str | None, typer.Option("--into", metavar="TOPIC", help="Copy into this topic.")
    ] = None,
    partition: Partitions = None,
    filter: Annotated[  # noqa: A002 - the option's name
        str | None, typer.Option(help="CEL: only messages that fit.")
    ] = None,
    rate: Rate = None,
    dry_run: DryRun = False,
    watch: Annotated[bool, typer.Option("--watch", help="Show progress until it ends.")] = False,
    output: OutputOption = Output.TABLE,
    token_file: TokenFile = None,
    server: Server = DEFAULT_SERVER,
) -> int:
    """Begin a replay; it goes on after a restart of the broker. With --watch, see it end."""
    from ibrik_cli.session import run_with_client
    from ibrik_cli.specs import given, only_one, parse_replay_place

    only_one("the target", channel=channel, into=into)
    source = given(
        topic=topic,
        to=parse_replay_place(to) if to else None,
        partitions=partition,
        filter=filter,
    )
    wish = {
        "source": source | {"from": parse_replay_place(from_)},
        "target": given(channel=channel, topic=into),
        "rate": rate,
        "dry_run": dry_run,
    }

    async def work(client: "Client") -> dict[str, Any]:
        replay = await client.admin.create_replay(wish)
        return await _watched(client, replay) if watch and not dry_run else replay

    replay = run_with_client(server, work, token_file=token_file)
    if dry_run:
        _report_plan(replay, output)
        return 0
    _report(replay, output)
    return _exit_code(replay)


@app.command(
    "from-archive",
    epilog=examples(
        "ibrik replay from-archive orders --target ./lake --dry-run",
        "ibrik replay from-archive orders --target ./lake --from 1200 --to 1300 --into copies",
    ),
)
def from_archive(
    topic: Annotated[
        str, typer.Argument(metavar="TOPIC", help="Name of the archived topic, or its id.")
    ],
    *,
    target: Annotated[str, typer.Option(help="Folder of the tables.")],
    from_: Annotated[
        str, typer.Option("--from", help="earliest, an offset, or a time in RFC 3339.")
    ] = "earliest",
    to: Annotated[str | None, typer.Option("--to", help="End before this offset or time.")] = None,
    channel: Annotated[
        str | None, typer.Option("--channel", help="Deliver to this channel.")
    ] = None,
    into: Annotated[
        str | None,
        typer.Option("--into", metavar="TOPIC", help="Publish to this topic, not to a new one."),
    ] = None,
    partition: Partitions = None,
    rate: Rate = None,
    run: Annotated[
        str | None, typer.Option(help="Name of the run; another name begins anew.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Even into the topic that was archived.")
    ] = False,
    dry_run: DryRun = False,
    output: ReportOutput = JobOutput.TABLE,
    token_file: TokenFile = None,
    server: Server = DEFAULT_SERVER,
) -> int:
    """Publish a range of a topic's table once more, each message once.

    The same command again, as after a kill, goes on where it ended.
    """
    from ibrik_cli.jobs import run_job

    values: dict[str, Any] = {
        "--topic": topic,
        "--target": target,
        "--server": server,
        "--token-file": token_file,
        "--from": from_,
        "--to": to,
        "--channel": channel,
        "--into": into,
        "--rate": rate,
        "--run": run,
        "--output": output,
    }
    arguments = [text for name, value in values.items() if value for text in (name, str(value))]
    arguments += [text for number in partition or () for text in ("--partition", str(number))]
    flags = {"--force": force, "--plan": dry_run}
    return run_job("replay", [*arguments, *(name for name, is_set in flags.items() if is_set)])


@app.command("ls", epilog=examples("ibrik replay ls", "ibrik replay ls --output json"))
def list_(output: OutputOption = Output.TABLE, server: Server = DEFAULT_SERVER) -> None:
    """List the replays, the newest first; those that ended are kept for some days."""
    from ibrik_cli.replays import replay_listing
    from ibrik_cli.session import run_with_client
    from ibrik_cli.showing import print_listing

    found = run_with_client(server, lambda c: c.admin.replays())
    print_listing(replay_listing(found), output)


@app.command(
    epilog=examples("ibrik replay describe 5f0c9a52-…", "ibrik replay describe 5f0c9a52-… --watch")
)
def describe(
    replay_id: ReplayId,
    *,
    watch: Annotated[bool, typer.Option("--watch", help="Show progress until it ends.")] = False,
    output: OutputOption = Output.TABLE,
    server: Server = DEFAULT_SERVER,
) -> int:
    """Show one replay: what it delivers where, and how far it is."""
    from ibrik_cli.replays import replay_lines
    from ibrik_cli.session import run_with_client
    from ibrik_cli.showing import print_document

    async def work(client: "Client") -> dict[str, Any]:
        replay = await client.admin.replay(replay_id)
        return await _watched(client, replay) if watch else replay

    replay = run_with_client(server, work)
    print_document(replay, output, replay_lines(replay))
    return _exit_code(replay)


@app.command(
    epilog=examples("ibrik replay cancel 5f0c9a52-…", "ibrik replay cancel 5f0c9a52-… -o json")
)
def cancel(
    replay_id: ReplayId,
    *,
    output: OutputOption = Output.TABLE,
    token_file: TokenFile = None,
    server: Server = DEFAULT_SERVER,
) -> None:
    """Send nothing more; what is on its way ends. One that has ended stays as it is."""
    from ibrik_cli.session import run_with_client

    replay = run_with_client(
        server, lambda c: c.admin.cancel_replay(replay_id), token_file=token_file
    )
    _report(replay, output)


@app.command(
    epilog=examples(
        "ibrik replay attempts 5f0c9a52-…", "ibrik replay attempts 5f0c9a52-… --max 10 -o json"
    )
)
def attempts(
    replay_id: ReplayId,
    *,
    max_rows: Annotated[int, typer.Option("--max", min=1, help="The newest so many.")] = 50,
    output: OutputOption = Output.TABLE,
    server: Server = DEFAULT_SERVER,
) -> None:
    """List attempts of a replay that failed, the newest first."""
    from ibrik_cli.channels import attempt_listing
    from ibrik_cli.session import run_with_client
    from ibrik_cli.showing import print_listing

    rows = run_with_client(server, lambda c: c.admin.replay_attempts(replay_id, limit=max_rows))
    print_listing(attempt_listing(rows), output)


async def _watched(client: "Client", replay: dict[str, Any]) -> dict[str, Any]:
    from ibrik_cli.progress import open_progress
    from ibrik_cli.replays import watch

    with open_progress(f"replay {replay['id']}") as progress:
        return await watch(client, replay, progress)


def _report_plan(plan: dict[str, Any], output: Output) -> None:
    from ibrik_cli.output import messages_text, say
    from ibrik_cli.replays import plan_listing
    from ibrik_cli.showing import print_listing

    print_listing(plan_listing(plan), output, is_single=True)
    say(f"dry run: {messages_text(plan['total'])} before the filter; nothing was sent")


def _report(replay: dict[str, Any], output: Output) -> None:
    from ibrik_cli.replays import end_text
    from ibrik_cli.showing import print_document

    print_document(replay, output, [f"replay {replay['id']} {end_text(replay)}"])


def _exit_code(replay: dict[str, Any]) -> int:
    return REFUSED if replay["state"] == "failed" else 0
