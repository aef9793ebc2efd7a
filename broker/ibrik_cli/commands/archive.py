"""`ibrik archive status`: how far the tables are that topics are archived to."""

from typing import Annotated

import typer

from ibrik_cli.options import DEFAULT_SERVER, Output, OutputOption, Server, examples

app = typer.Typer(help="Topics in tables: how far the archive is.", no_args_is_help=True)


@app.callback()
def archive() -> None:
    """Keeps `status` a command of its own, while it is the only one."""


@app.command(epilog=examples("ibrik archive status", "ibrik archive status flights -o json"))
def status(
    topic: Annotated[str | None, typer.Argument(metavar="[TOPIC]", help="Only this topic.")] = None,
    output: OutputOption = Output.TABLE,
    server: Server = DEFAULT_SERVER,
) -> None:
    """Show how far each partition is archived, and what the last run came to."""
    from ibrik_cli.archives import look_up
    from ibrik_cli.session import run_with_client
    from ibrik_cli.showing import print_listing

    print_listing(
        run_with_client(server, lambda c: look_up(c, topic)), output, is_single=topic is not None
    )
