"""`ibrik topic create | ls | describe | delete | purge | roll`."""

import sys
from typing import Annotated, Any

import typer

from ibrik_cli.failures import WRONG_USAGE, Failure
from ibrik_cli.options import (
    DEFAULT_ADMIN,
    DEFAULT_SERVER,
    AdminAddress,
    AdminTokenFile,
    Output,
    OutputOption,
    Server,
    TokenFile,
    TopicName,
    Yes,
    examples,
)

app = typer.Typer(
    help="Create, list, describe, delete, purge and roll topics.", no_args_is_help=True
)
PARTITIONERS = {
    "key": "keyHash",
    "keyHash": "keyHash",
    "round_robin": "roundRobin",
    "roundRobin": "roundRobin",
    "sticky": "sticky",
}


@app.command(
    epilog=examples(
        "ibrik topic create orders", "ibrik topic create flights --partitions 4 --retention 30d"
    )
)
def create(
    topic: TopicName,
    *,
    partitions: Annotated[int | None, typer.Option(help="How many; it can only grow.")] = None,
    partitioner: Annotated[
        str | None, typer.Option(help="key, round_robin or sticky: how a message finds its place.")
    ] = None,
    retention: Annotated[str | None, typer.Option(help="How long messages stay: 7d")] = None,
    retention_bytes: Annotated[
        str | None, typer.Option(help="Size per partition at which old messages go: 10Gi")
    ] = None,
    durability: Annotated[
        str | None, typer.Option(help="flushed (safe) or written (faster).")
    ] = None,
    deletion_policy: Annotated[
        str | None, typer.Option(help="What delete does: Retain, Delete or DeleteIfEmpty.")
    ] = None,
    archive: Annotated[
        bool, typer.Option("--archive", help="Keep messages until they are in a table.")
    ] = False,
    output: OutputOption = Output.TABLE,
    token_file: TokenFile = None,
    server: Server = DEFAULT_SERVER,
) -> None:
    """Create a topic."""
    from ibrik_cli.session import run_with_client
    from ibrik_cli.showing import print_change

    kept = {"time": retention, "bytes": retention_bytes}
    wishes: dict[str, Any] = {
        "partitions": partitions,
        "partitioner": parse_partitioner(partitioner),
        "retention": {k: v for k, v in kept.items() if v is not None} or None,
        "durability": durability,
        "deletionPolicy": deletion_policy,
        "archive": {"enabled": True} if archive else None,
    }
    spec = {name: value for name, value in wishes.items() if value is not None}
    created = run_with_client(
        server, lambda c: c.admin.create_topic(topic, spec), token_file=token_file
    )
    print_change(created, "created", output)


@app.command("ls", epilog=examples("ibrik topic ls", "ibrik topic ls --output json"))
def list_(output: OutputOption = Output.TABLE, server: Server = DEFAULT_SERVER) -> None:
    """List the topics with what they hold."""
    from ibrik_cli.session import run_with_client
    from ibrik_cli.topics import list_topics, print_topics

    found = run_with_client(server, lambda c: list_topics(c, []))
    print_topics(found, output)


@app.command(epilog=examples("ibrik topic describe orders", "ibrik topic describe orders -o yaml"))
def describe(
    topic: TopicName, output: OutputOption = Output.TABLE, server: Server = DEFAULT_SERVER
) -> None:
    """Show one topic: what it shall be, what it is, offsets per partition."""
    from ibrik_cli.manifests import Place
    from ibrik_cli.session import run_with_client
    from ibrik_cli.topics import describe as describe_topic

    run_with_client(server, lambda c: describe_topic(c, Place(topic), output))


@app.command(
    epilog=examples("ibrik topic delete orders", "ibrik topic delete orders --policy Delete")
)
def delete(
    topic: TopicName,
    policy: Annotated[
        str | None, typer.Option("--policy", help="Retain, Delete or DeleteIfEmpty, this once.")
    ] = None,
    token_file: TokenFile = None,
    server: Server = DEFAULT_SERVER,
) -> None:
    """Delete a topic by its deletionPolicy: Retain, the default, keeps the data."""
    from ibrik_cli.session import run_with_client

    state = run_with_client(
        server, lambda c: c.admin.delete_topic(topic, policy=policy), token_file=token_file
    )
    kept = "; its data stays, a topic of the same name adopts it" if state == "detached" else ""
    sys.stdout.write(f"topic.ibrik.dev/{topic} {state}{kept}\n")


@app.command(
    epilog=examples(
        "ibrik topic purge orders --yes", "ibrik topic purge test --yes && ibrik topic ls"
    )
)
def purge(
    topic: TopicName,
    yes: Yes = False,
    token_file: TokenFile = None,
    server: Server = DEFAULT_SERVER,
) -> None:
    """Delete every message of a topic. Offsets go on where they were."""
    from ibrik_cli.session import run_with_client

    if not yes:
        raise Failure(
            f"this deletes every message of {topic} for good; say so with --yes", WRONG_USAGE
        )
    run_with_client(server, lambda c: c.admin.purge_topic(topic), token_file=token_file)
    sys.stdout.write(f"topic.ibrik.dev/{topic} purged\n")


@app.command(
    epilog=examples("ibrik topic roll orders", "ibrik topic roll orders --min-age 1h -o json")
)
def roll(
    topic: TopicName,
    *,
    min_age: Annotated[
        str, typer.Option(help="Only where the oldest message is at least that old: 1h")
    ] = "0s",
    output: OutputOption = Output.TABLE,
    admin: AdminAddress = DEFAULT_ADMIN,
    admin_token_file: AdminTokenFile = None,
    server: Server = DEFAULT_SERVER,
) -> None:
    """Seal the active segments of a topic, so that an archive job can read them."""
    from ibrik_cli.output import count_text
    from ibrik_cli.session import run_with_owner
    from ibrik_cli.showing import Listing, print_listing

    sealed = run_with_owner(
        server,
        lambda c: c.admin.roll_topic(topic, min_age=min_age),
        admin=admin,
        admin_token_file=admin_token_file,
    )
    rows = [[topic, str(p["partition"]), count_text(p["sealedUpTo"])] for p in sealed]
    print_listing(Listing(sealed, ("TOPIC", "PARTITION", "SEALED UP TO"), rows), output)


def parse_partitioner(name: str | None) -> str | None:
    if name is None:
        return None
    if name not in PARTITIONERS:
        raise Failure(f"unknown partitioner {name!r}: key, round_robin or sticky", WRONG_USAGE)
    return PARTITIONERS[name]
