"""`ibrik deadletter ls | redrive | purge`: messages that had all their attempts."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ibrik_cli.failures import WRONG_USAGE, Failure
from ibrik_cli.options import (
    DEFAULT_SERVER,
    DryRun,
    Output,
    OutputOption,
    Server,
    SubscriptionName,
    TokenFile,
    Yes,
    examples,
)

if TYPE_CHECKING:
    from ibrik_client import Client

app = typer.Typer(
    help="Messages of a subscription that could not be delivered: see them, deliver them again.",
    no_args_is_help=True,
)
Reason = Annotated[str | None, typer.Option("--reason", help="Only those that ended so: timeout")]
Status = Annotated[int | None, typer.Option("--status", help="Only those answered with it: 500")]
Filter = Annotated[str | None, typer.Option("--filter", help="CEL: only those that fit.")]


@app.command(
    "ls",
    epilog=examples(
        "ibrik deadletter ls billing", "ibrik deadletter ls billing --status 500 --state dead"
    ),
)
def list_(
    subscription: SubscriptionName,
    *,
    reason: Reason = None,
    status: Status = None,
    state: Annotated[str | None, typer.Option("--state", help="dead or redriven.")] = None,
    filter: Filter = None,  # noqa: A002 - the option's name
    max_rows: Annotated[int, typer.Option("--max", min=1, help="So many at most.")] = 50,
    output: OutputOption = Output.TABLE,
    server: Server = DEFAULT_SERVER,
) -> None:
    """List dead letters: which message, why, after how many attempts."""
    from ibrik_cli.deadletters import letter_listing
    from ibrik_cli.session import run_with_client
    from ibrik_cli.showing import print_listing

    async def work(client: "Client") -> Any:
        return await client.admin.dead_letters(
            subscription, limit=max_rows, reason=reason, status=status, state=state, filter=filter
        )

    print_listing(letter_listing(run_with_client(server, work), subscription), output)


@app.command(
    epilog=examples(
        "ibrik deadletter redrive billing --dry-run",
        "ibrik deadletter redrive billing --reason timeout --rate 50",
    )
)
def redrive(
    subscription: SubscriptionName,
    *,
    reason: Reason = None,
    status: Status = None,
    filter: Filter = None,  # noqa: A002 - the option's name
    rate: Annotated[int | None, typer.Option(min=1, help="Messages a second at most.")] = None,
    dry_run: DryRun = False,
    output: OutputOption = Output.TABLE,
    token_file: TokenFile = None,
    server: Server = DEFAULT_SERVER,
) -> None:
    """Deliver their messages again, to this subscription only, with all attempts anew."""
    from ibrik_cli.deadletters import added, redrive_lines
    from ibrik_cli.output import say
    from ibrik_cli.session import run_with_client
    from ibrik_cli.showing import print_document
    from ibrik_cli.specs import letter_filter

    chosen = letter_filter(reason, status, filter)

    async def work(client: "Client") -> dict[str, Any]:
        total = None
        while total is None or not (total["complete"] or dry_run):
            result = await client.admin.redrive(
                subscription, filter=chosen, rate=rate, dry_run=dry_run
            )
            total = added(total, result)
        return total

    result = run_with_client(server, work, token_file=token_file)
    print_document(result, output, redrive_lines(result, is_dry=dry_run))
    if result.get("advice"):
        say(result["advice"])


@app.command(
    epilog=examples(
        "ibrik deadletter purge billing --dry-run", "ibrik deadletter purge billing --yes"
    )
)
def purge(
    subscription: SubscriptionName,
    *,
    dry_run: DryRun = False,
    yes: Yes = False,
    token_file: TokenFile = None,
    server: Server = DEFAULT_SERVER,
) -> None:
    """Delete the dead letters of a subscription; their messages stay where they are."""
    from ibrik_cli.output import count_text
    from ibrik_cli.session import run_with_client

    if not (yes or dry_run):
        raise Failure(
            f"this deletes the dead letters of {subscription} for good; say so with --yes",
            WRONG_USAGE,
        )
    result = run_with_client(
        server,
        lambda c: c.admin.purge_dead_letters(subscription, dry_run=dry_run),
        token_file=token_file,
    )
    verb = "would be deleted" if dry_run else "deleted"
    sys.stdout.write(f"{count_text(result['purged'])} dead letters in {result['topic']} {verb}\n")
