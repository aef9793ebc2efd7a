"""`ibrik subscription create | ls | describe | delete | pause | resume | seek | lag`."""

import sys
from typing import Annotated

import typer

from ibrik_cli.failures import WRONG_USAGE, Failure
from ibrik_cli.options import (
    DEFAULT_SERVER,
    DryRun,
    Namespace,
    Output,
    OutputOption,
    Server,
    SubscriptionName,
    TokenFile,
    examples,
)

app = typer.Typer(
    help="Create, pause, move and watch subscriptions: who gets a topic, and how.",
    no_args_is_help=True,
)


@app.command(
    epilog=examples(
        "ibrik subscription create billing --topic orders --push http://127.0.0.1:9000/hook",
        "ibrik subscription create workers --topic orders --pull --type shared --from latest",
    )
)
def create(
    subscription: SubscriptionName,
    *,
    topic: Annotated[str, typer.Option("--topic", help="The topic; fixed from then on.")],
    push: Annotated[
        str | None, typer.Option("--push", metavar="URL", help="Deliver to this endpoint.")
    ] = None,
    channel: Annotated[
        str | None, typer.Option("--channel", help="Deliver to this channel.")
    ] = None,
    pull: Annotated[bool, typer.Option("--pull", help="Consumers lease messages.")] = False,
    stream: Annotated[bool, typer.Option("--stream", help="Consumers listen, live.")] = False,
    type: Annotated[  # noqa: A002 - the option's name
        str | None, typer.Option(help="exclusive, or shared: each message to one of several.")
    ] = None,
    filter: Annotated[  # noqa: A002 - the option's name
        str | None, typer.Option(help="CEL: only messages that fit are delivered.")
    ] = None,
    from_: Annotated[
        str, typer.Option("--from", help="earliest, latest, an offset, or a time in RFC 3339.")
    ] = "earliest",
    ordering: Annotated[str | None, typer.Option(help="none, key or strict.")] = None,
    retry: Annotated[
        str | None, typer.Option(help="in-cluster, webhook, or how many attempts.")
    ] = None,
    ack_deadline: Annotated[
        str | None, typer.Option(help="Time to acknowledge a leased message: 30s")
    ] = None,
    output: OutputOption = Output.TABLE,
    token_file: TokenFile = None,
    server: Server = DEFAULT_SERVER,
) -> None:
    """Create a subscription: pushed to an endpoint or a channel, pulled, or streamed."""
    from ibrik_cli.session import run_with_client
    from ibrik_cli.showing import print_change
    from ibrik_cli.specs import given, only_one, parse_retry, parse_start

    way = only_one("the way", push=push, channel=channel, pull=pull, stream=stream)
    spec = given(
        topicRef={"name": topic},
        mode=way if way in ("pull", "stream") else "push",
        push={"http": {"url": push}} if push else None,
        channelRef={"name": channel} if channel else None,
        type=type,
        filter=filter,
        start=parse_start(from_),
        ordering=ordering,
        retry=parse_retry(retry) if retry else None,
        ack=given(deadline=ack_deadline),
    )
    created = run_with_client(
        server, lambda c: c.admin.create_subscription(subscription, spec), token_file=token_file
    )
    print_change(created, "created", output)


@app.command(
    "ls", epilog=examples("ibrik subscription ls", "ibrik subscription ls --topic orders -o json")
)
def list_(
    *,
    topic: Annotated[str | None, typer.Option("--topic", help="Only those of this topic.")] = None,
    namespace: Namespace = None,
    output: OutputOption = Output.TABLE,
    server: Server = DEFAULT_SERVER,
) -> None:
    """List the subscriptions with what they are behind."""
    from ibrik_cli.session import run_with_client
    from ibrik_cli.showing import print_listing
    from ibrik_cli.subscriptions import subscription_listing

    found = run_with_client(
        server, lambda c: c.admin.subscriptions(topic=topic, namespace=namespace)
    )
    print_listing(subscription_listing(found), output)


@app.command(
    epilog=examples(
        "ibrik subscription describe billing", "ibrik subscription describe billing -o yaml"
    )
)
def describe(
    subscription: SubscriptionName,
    *,
    namespace: Namespace = None,
    output: OutputOption = Output.TABLE,
    server: Server = DEFAULT_SERVER,
) -> None:
    """Show one subscription: what it shall be, and what the broker observes."""
    from ibrik_cli.manifests import Place
    from ibrik_cli.session import run_with_client
    from ibrik_cli.subscriptions import describe as describe_subscription

    place = Place(subscription, namespace)
    run_with_client(server, lambda c: describe_subscription(c, place, output))


@app.command(
    epilog=examples(
        "ibrik subscription delete billing", "ibrik subscription delete billing --policy Delete"
    )
)
def delete(
    subscription: SubscriptionName,
    *,
    policy: Annotated[
        str | None, typer.Option("--policy", help="Retain or Delete, this once.")
    ] = None,
    namespace: Namespace = None,
    token_file: TokenFile = None,
    server: Server = DEFAULT_SERVER,
) -> None:
    """Delete a subscription by its deletionPolicy: Retain, the default, keeps the cursor."""
    from ibrik_cli.session import run_with_client

    state = run_with_client(
        server,
        lambda c: c.admin.delete_subscription(subscription, policy=policy, namespace=namespace),
        token_file=token_file,
    )
    kept = "; its cursor stays, one of the same name goes on there" if state == "detached" else ""
    sys.stdout.write(f"subscription.ibrik.dev/{subscription} {state}{kept}\n")


@app.command(
    epilog=examples("ibrik subscription pause billing", "ibrik subscription pause billing -n shop")
)
def pause(
    subscription: SubscriptionName,
    *,
    namespace: Namespace = None,
    output: OutputOption = Output.TABLE,
    token_file: TokenFile = None,
    server: Server = DEFAULT_SERVER,
) -> None:
    """Hold deliveries back; the backlog stays."""
    from ibrik_cli.session import run_with_client
    from ibrik_cli.showing import print_change

    changed = run_with_client(
        server,
        lambda c: c.admin.pause_subscription(subscription, namespace=namespace),
        token_file=token_file,
    )
    print_change(changed, "paused", output)


@app.command(
    epilog=examples(
        "ibrik subscription resume billing", "ibrik subscription resume billing -n shop"
    )
)
def resume(
    subscription: SubscriptionName,
    *,
    namespace: Namespace = None,
    output: OutputOption = Output.TABLE,
    token_file: TokenFile = None,
    server: Server = DEFAULT_SERVER,
) -> None:
    """Go on, whatever stopped it; what is blocked is tried again."""
    from ibrik_cli.session import run_with_client
    from ibrik_cli.showing import print_change

    changed = run_with_client(
        server,
        lambda c: c.admin.resume_subscription(subscription, namespace=namespace),
        token_file=token_file,
    )
    print_change(changed, "resumed", output)


@app.command(
    epilog=examples(
        "ibrik subscription seek billing --to earliest --dry-run",
        "ibrik subscription seek billing --to 2026-11-27T10:00:00Z --partition 2",
    )
)
def seek(
    subscription: SubscriptionName,
    *,
    to: Annotated[
        str, typer.Option("--to", help="earliest, latest, an offset, or a time in RFC 3339.")
    ],
    partition: Annotated[
        list[int] | None, typer.Option("--partition", min=0, help="Only this one; may repeat.")
    ] = None,
    dry_run: DryRun = False,
    output: OutputOption = Output.TABLE,
    token_file: TokenFile = None,
    server: Server = DEFAULT_SERVER,
) -> None:
    """Move a subscription back or forth. Leases in hand and waiting retries are dropped."""
    from ibrik_cli.output import say
    from ibrik_cli.session import run_with_client
    from ibrik_cli.showing import print_listing
    from ibrik_cli.specs import parse_place
    from ibrik_cli.subscriptions import seek_listing

    place = parse_place(to)
    if partition is not None and len(set(partition)) < len(partition):
        raise Failure("--partition names one more than once", WRONG_USAGE)
    result = run_with_client(
        server,
        lambda c: c.admin.seek(subscription, place, partitions=partition, dry_run=dry_run),
        token_file=token_file,
    )
    print_listing(seek_listing(result), output, is_single=True)
    say("dry run: nothing was moved" if dry_run else f"{subscription} goes on there")


@app.command(
    epilog=examples("ibrik subscription lag billing", "ibrik subscription lag billing -o json")
)
def lag(
    subscription: SubscriptionName,
    *,
    output: OutputOption = Output.TABLE,
    server: Server = DEFAULT_SERVER,
) -> None:
    """Show how far a subscription is behind, partition by partition."""
    from ibrik_cli.session import run_with_client
    from ibrik_cli.showing import print_listing
    from ibrik_cli.subscriptions import lag_listing

    found = run_with_client(server, lambda c: c.admin.lag(subscription))
    print_listing(lag_listing(found), output, is_single=True)
