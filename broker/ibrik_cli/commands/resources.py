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
    Namespace,
    Output,
    OutputOption,
    Server,
    examples,
)

if TYPE_CHECKING:
    from ibrik_cli.kinds import Kind
    from ibrik_cli.manifests import Place
    from ibrik_cli.showing import Listing
    from ibrik_client import Client

KindWord = Annotated[
    str,
    typer.Argument(
        metavar="KIND", help="topic, channel, subscription, or message (describe only)."
    ),
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name; topic/partition/offset.")]
OptionalFiles = Annotated[list[str] | None, Files.__metadata__[0]]


def register(app: typer.Typer) -> None:
    app.command(epilog=examples("ibrik apply -f topic.yaml", "cat *.yaml | ibrik apply -f -"))(
        apply
    )
    app.command(epilog=examples("ibrik get subscriptions", "ibrik get topic flights -o yaml"))(get)
    app.command(
        epilog=examples("ibrik describe topic flights", "ibrik describe message orders/0/17")
    )(describe)
    app.command(epilog=examples("ibrik delete channel billing", "ibrik delete -f topic.yaml"))(
        delete
    )


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
    kind: Annotated[
        str, typer.Argument(metavar="[KIND]", help="topics, channels or subscriptions.")
    ] = "topics",
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="One of them.")] = "",
    *,
    filename: OptionalFiles = None,
    namespace: Namespace = None,
    output: OutputOption = Output.TABLE,
    server: Server = DEFAULT_SERVER,
) -> None:
    """List resources, or show those that files name."""
    from ibrik_cli.session import run_with_client
    from ibrik_cli.showing import print_listing, print_listings

    wanted = chosen(kind, name, filename, namespace)

    async def work(client: "Client") -> "list[Listing]":
        return [await each.look_up(client, places) for each, places in wanted]

    listings = run_with_client(server, work)
    if name and not filename:
        print_listing(listings[0], output, is_single=True)
    else:
        print_listings(listings, output)


def describe(
    kind: KindWord = "",
    name: Name = "",
    *,
    filename: OptionalFiles = None,
    namespace: Namespace = None,
    output: OutputOption = Output.TABLE,
    server: Server = DEFAULT_SERVER,
) -> None:
    """Everything that is known of one resource, or of one message: where it is, who got it."""
    from ibrik_cli.messages import describe_message
    from ibrik_cli.session import run_with_client

    if kind == "message":
        run_with_client(server, lambda c: describe_message(c, name, output))
        return
    wanted = chosen(kind, check_name(kind, name, filename), filename, namespace)

    async def work(client: "Client") -> None:
        several = [(each, place) for each, places in wanted for place in places]
        for index, (each, place) in enumerate(several):
            sys.stdout.write("\n" if index and output is Output.TABLE else "")
            await each.describe(client, place, output)

    run_with_client(server, work)


def delete(
    kind: KindWord = "",
    name: Name = "",
    *,
    filename: OptionalFiles = None,
    namespace: Namespace = None,
    output: OutputOption = Output.TABLE,
    admin: AdminAddress = DEFAULT_ADMIN,
    admin_token_file: AdminTokenFile = None,
    server: Server = DEFAULT_SERVER,
) -> int:
    """Delete resources by their deletionPolicy: Retain, the default, keeps data and cursors."""
    from ibrik_cli.manifests import deletion_of, load_resources
    from ibrik_cli.session import run_with_client

    given = load_resources(filename) if filename else []
    wanted = [] if given else chosen(kind, check_name(kind, name, filename), None, namespace)

    async def work(client: "Client") -> list[dict[str, Any]]:
        found = [await each.read(client, place) for each, places in wanted for place in places]
        return await client.admin.apply([deletion_of(r) for r in given or found])

    results = run_with_client(server, work, admin=admin, admin_token_file=admin_token_file)
    return report(results, output)


def chosen(
    kind: str, name: str, files: list[str] | None, namespace: str | None
) -> "list[tuple[Kind, list[Place]]]":
    """Which resources a command is about: those of the files, the one named, or all of a kind."""
    from ibrik_cli.kinds import by_kind, find_kind
    from ibrik_cli.manifests import Place, load_resources

    if files:
        return by_kind(load_resources(files))
    return [(find_kind(kind), [Place(name, namespace)] if name else [])]


def check_name(kind: str, name: str, files: list[str] | None) -> str:
    from ibrik_cli.kinds import find_kind

    if not files:
        find_kind(kind)
        if not name:
            raise Failure("name the resource, or a file with -f", WRONG_USAGE)
    return name


def report(results: list[dict[str, Any]], output: Output) -> int:
    """Print what became of each resource; 1 when one was refused."""
    from ibrik_cli.manifests import display_name
    from ibrik_cli.showing import print_document

    refused = [r for r in results if r["result"] in ("refused", "conflict")]
    if output is not Output.TABLE:
        print_document(results, output, ())
    else:
        for result in results:
            name = display_name({"kind": result["kind"], "metadata": result})
            if result in refused:
                detail = result.get("detail") or result.get("code") or ""
                sys.stderr.write(f"error: {name} {result['result']}: {detail}\n")
            else:
                sys.stdout.write(f"{name} {outcome_word(result)}\n")
    return REFUSED if refused else 0


def outcome_word(result: dict[str, Any]) -> str:
    """What became of it; a deletion that keeps the data or the cursor is `detached`."""
    state = (result.get("observed") or {}).get("state")
    is_kept = result["result"] == "deleted" and state == "detached"
    return "detached" if is_kept else str(result["result"])
