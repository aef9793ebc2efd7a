"""`ibrik topic create | ls | describe | delete | purge`."""

import sys
from typing import Annotated, Any

import typer

from ibrik_cli.failures import WRONG_USAGE, Failure
from ibrik_cli.options import (
    DEFAULT_SERVER,
    Output,
    OutputOption,
    Server,
    TokenFile,
    TopicName,
    Yes,
    examples,
)

app = typer.Typer(help="Create, list, describe, delete and purge topics.", no_args_is_help=True)
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


def parse_partitioner(name: str | None) -> str | None:
    if name is None:
        return None
    if name not in PARTITIONERS:
        raise Failure(f"unknown partitioner {name!r}: key, round_robin or sticky", WRONG_USAGE)
    return PARTITIONERS[name]
