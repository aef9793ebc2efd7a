"""`ibrik apply | get | describe | delete`: kubectl's grammar and YAML, without a cluster."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ibrik_cli.failures import REFUSED, WRONG_USAGE, Failure
from ibrik_cli.options import (
    DEFAULT_ADMIN,
    DEFAULT_SERVER,
    AdminAddress,
    AdminTokenFile,
    Files,
    Output,
    OutputOption,
    Server,
    examples,
)

if TYPE_CHECKING:
    from ibrik_client import Client

KINDS = ("topic", "topics", "topic.ibrik.dev", "topics.ibrik.dev", "ibt")
Kind = Annotated[str, typer.Argument(metavar="KIND", help="topic, or message (describe only).")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name; topic/partition/offset.")]
OptionalFiles = Annotated[list[str] | None, Files.__metadata__[0]]


def register(app: typer.Typer) -> None:
    app.command(epilog=examples("ibrik apply -f topic.yaml", "cat *.yaml | ibrik apply -f -"))(
        apply
    )
    app.command(epilog=examples("ibrik get topics", "ibrik get topic flights -o yaml"))(get)
    app.command(
        epilog=examples("ibrik describe topic flights", "ibrik describe message orders/0/17")
    )(describe)
    app.command(epilog=examples("ibrik delete topic flights", "ibrik delete -f topic.yaml"))(delete)


def apply(
    filename: Files,
    output: OutputOption = Output.TABLE,
    admin: AdminAddress = DEFAULT_ADMIN,
    admin_token_file: AdminTokenFile = None,
    server: Server = DEFAULT_SERVER,
) -> int:
    """Make the broker's resources as these files say. What they do not name stays untouched."""
    from ibrik_cli.manifests import load_resources
    from ibrik_cli.session import run_with_client

    resources = load_resources(filename)
    results = run_with_client(
        server, lambda c: c.admin.apply(resources), admin=admin, admin_token_file=admin_token_file
    )
    return report(results, output)


def get(
    kind: Annotated[str, typer.Argument(metavar="[KIND]", help="topics")] = "topics",
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="One of them.")] = "",
    filename: OptionalFiles = None,
    output: OutputOption = Output.TABLE,
    server: Server = DEFAULT_SERVER,
) -> None:
    """List resources, or show those that files name."""
    from ibrik_cli.manifests import load_resources, topic_name_of
    from ibrik_cli.session import run_with_client
    from ibrik_cli.topics import list_topics, print_topics

    names = [topic_name_of(r) for r in load_resources(filename)] if filename else [name or ""]
    if not filename:
        check_kind(kind)
    found = run_with_client(server, lambda c: list_topics(c, [n for n in names if n]))
    print_topics(found, output, is_single=bool(name) and not filename)


def describe(
    kind: Kind = "",
    name: Name = "",
    filename: OptionalFiles = None,
    output: OutputOption = Output.TABLE,
    server: Server = DEFAULT_SERVER,
) -> None:
    """Everything that is known of one resource, or where one message is."""
    from ibrik_cli.manifests import load_resources, topic_name_of
    from ibrik_cli.session import run_with_client
    from ibrik_cli.topics import describe_message, describe_topic

    if kind == "message":
        run_with_client(server, lambda c: describe_message(c, name, output))
        return
    names = [topic_name_of(r) for r in load_resources(filename)] if filename else [name]
    if not filename:
        check_kind(kind)
        check_name(name)

    async def work(client: "Client") -> None:
        for each in names:
            await describe_topic(client, each, output)

    run_with_client(server, work)


def delete(
    kind: Kind = "",
    name: Name = "",
    *,
    filename: OptionalFiles = None,
    output: OutputOption = Output.TABLE,
    admin: AdminAddress = DEFAULT_ADMIN,
    admin_token_file: AdminTokenFile = None,
    server: Server = DEFAULT_SERVER,
) -> int:
    """Delete resources by their deletionPolicy: Retain, the default, keeps the data."""
    from ibrik_cli.manifests import load_resources
    from ibrik_cli.session import run_with_client
    from ibrik_cli.topics import deletion_of

    given = load_resources(filename) if filename else []
    if not filename:
        check_kind(kind)
        check_name(name)

    async def work(client: "Client") -> list[dict[str, Any]]:
        resources = given or [await client.admin.topic(name)]
        return await client.admin.apply([deletion_of(r) for r in resources])

    results = run_with_client(server, work, admin=admin, admin_token_file=admin_token_file)
    return report(results, output)


def check_kind(kind: str) -> None:
    if kind not in KINDS:
        raise Failure(f"unknown kind {kind!r}: this broker serves topics", WRONG_USAGE)


def check_name(name: str) -> None:
    if not name:
        raise Failure("name the resource, or a file with -f", WRONG_USAGE)


def report(results: list[dict[str, Any]], output: Output) -> int:
    """Print what became of each resource; 1 when one was refused."""
    from ibrik_cli.manifests import display_name
    from ibrik_cli.output import print_json, print_yaml

    refused = [r for r in results if r["result"] in ("refused", "conflict")]
    if output is Output.JSON:
        print_json(results)
    elif output is Output.YAML:
        print_yaml(results)
    else:
        for result in results:
            name = display_name({"kind": result["kind"], "metadata": result})
            if result in refused:
                detail = result.get("detail") or result.get("code") or ""
                sys.stderr.write(f"error: {name} {result['result']}: {detail}\n")
            else:
                sys.stdout.write(f"{name} {result['result']}\n")
    return REFUSED if refused else 0
