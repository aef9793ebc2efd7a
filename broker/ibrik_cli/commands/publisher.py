"""`ibrik publisher register | ls | rotate | delete`: who may publish to a topic."""

import sys
from typing import Annotated, Any

import typer

from ibrik_cli.options import (
    DEFAULT_SERVER,
    Output,
    OutputOption,
    Server,
    TokenFile,
    TopicName,
    examples,
)

app = typer.Typer(
    help="Register publishers of topics that take messages only from those.", no_args_is_help=True
)
PublisherName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the publisher.")]
COLUMNS = ("TOPIC", "PUBLISHER", "REGISTERED", "ID")


@app.command(
    epilog=examples(
        "ibrik publisher register orders shop",
        "ibrik publisher register orders shop -o json | jq -r .token > shop.token",
    )
)
def register(
    topic: TopicName,
    name: PublisherName,
    *,
    output: OutputOption = Output.TABLE,
    token_file: TokenFile = None,
    server: Server = DEFAULT_SERVER,
) -> None:
    """Register a publisher. Its token is shown this once: `produce --token-file` takes it."""
    from ibrik_cli.session import run_with_client

    registered = run_with_client(
        server, lambda c: c.admin.register_publisher(topic, name), token_file=token_file
    )
    state = "registered" if registered.get("created") else "was registered before"
    _print_once(registered, state, output)


@app.command("ls", epilog=examples("ibrik publisher ls", "ibrik publisher ls orders -o json"))
def list_(
    topic: Annotated[str, typer.Argument(metavar="[TOPIC]", help="Only those of it.")] = "",
    *,
    output: OutputOption = Output.TABLE,
    server: Server = DEFAULT_SERVER,
) -> None:
    """List the publishers of a topic, or of all."""
    from ibrik_cli.session import run_with_client
    from ibrik_cli.showing import Listing, print_listing

    found = run_with_client(server, lambda c: c.admin.publishers(topic or None))
    rows = [[p["topic"], p["name"], p["registered"], p["id"]] for p in found]
    empty = "no publishers yet; register one with: ibrik publisher register TOPIC NAME"
    print_listing(Listing(found, COLUMNS, rows, empty), output)


@app.command(
    epilog=examples(
        "ibrik publisher rotate orders shop",
        "ibrik publisher rotate orders shop -o json | jq -r .token > shop.token",
    )
)
def rotate(
    topic: TopicName,
    name: PublisherName,
    *,
    output: OutputOption = Output.TABLE,
    token_file: TokenFile = None,
    server: Server = DEFAULT_SERVER,
) -> None:
    """Give a publisher another token; the old one counts no more from then on."""
    from ibrik_cli.session import run_with_client

    rotated = run_with_client(
        server, lambda c: c.admin.rotate_publisher(topic, name), token_file=token_file
    )
    _print_once(rotated, "has a new token", output)


@app.command(
    epilog=examples(
        "ibrik publisher delete orders shop",
        "ibrik publisher delete orders shop --token-file admin.token",
    )
)
def delete(
    topic: TopicName,
    name: PublisherName,
    *,
    token_file: TokenFile = None,
    server: Server = DEFAULT_SERVER,
) -> None:
    """Remove a publisher; its token counts no more."""
    from ibrik_cli.session import run_with_client

    run_with_client(server, lambda c: c.admin.remove_publisher(topic, name), token_file=token_file)
    sys.stdout.write(f"publisher {name} of {topic} deleted\n")


def _print_once(publisher: dict[str, Any], state: str, output: Output) -> None:
    """The publisher and its token, and that nobody will see it again."""
    from ibrik_cli.output import say
    from ibrik_cli.showing import print_document

    topic, name = publisher["topic"], publisher["name"]
    lines = [f"publisher {name} of {topic} {state}"]
    if "token" in publisher:
        lines.append(f"token: {publisher['token']}")
    print_document(publisher, output, lines)
    if "token" in publisher:
        say("The token is shown this once and never again: keep it in a file that only you read.")
    else:
        say(f"Its token cannot be shown again. Another one: ibrik publisher rotate {topic} {name}")
