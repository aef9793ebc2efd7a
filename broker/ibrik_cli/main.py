"""The `ibrik` command: assembles the commands and turns every failure into one line.

Entry points of the distribution: `ibrik`, and `kubectl-ibrik` as kubectl looks for plug-ins.
"""

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from ibrik_api.kubernetes import DEFAULT_POOL
from ibrik_cli.cluster import check_command, choose, take_options
from ibrik_cli.commands import (
    archive,
    bench,
    channel,
    consume,
    deadletter,
    doctor,
    listen,
    log,
    metadata,
    produce,
    publisher,
    quality,
    replay,
    resources,
    serve,
    subscription,
    topic,
    traffic,
)
from ibrik_cli.failures import run_guarded
from ibrik_cli.options import examples

app = typer.Typer(
    name="ibrik",
    help="A durable message broker: serve, publish, read, manage topics.",
    epilog="Begin with: ibrik serve --dev",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def root(
    _debug: Annotated[
        bool, typer.Option("--debug", help="Show the trace of a failure. Works at any place.")
    ] = False,
    _context: Annotated[
        str, typer.Option("--context", help="Cluster of your kubeconfig. Works at any place.")
    ] = "",
    _namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="Namespace of the pool on a cluster.")
    ] = "",
    _pool: Annotated[
        str, typer.Option("--pool", help="Pool on a cluster. Works at any place.")
    ] = DEFAULT_POOL,
    _kubeconfig: Annotated[
        str, typer.Option("--kubeconfig", help="Another kubeconfig. Works at any place.")
    ] = "",
) -> None:
    """Only declares them; `run` takes them before typer reads the rest."""


@app.command(epilog=examples("ibrik version", "ibrik version --short"))
def version(
    short: Annotated[bool, typer.Option("--short", help="The number alone.")] = False,
) -> None:
    """Print the version."""
    from ibrik_api import __version__

    sys.stdout.write(f"{__version__}\n" if short else f"ibrik {__version__}\n")


for module in (serve, resources, produce, consume, listen, bench, doctor):
    module.register(app)
NOUNS = {
    "topic": topic,
    "channel": channel,
    "subscription": subscription,
    "publisher": publisher,
    "deadletter": deadletter,
    "replay": replay,
    "archive": archive,
    "quality": quality,
    "traffic": traffic,
    "log": log,
    "metadata": metadata,
}
for noun, module in NOUNS.items():
    app.add_typer(module.app, name=noun)


def run(arguments: Sequence[str], *, is_plugin: bool = False) -> int:
    """The exit code: 0 done, 1 refused or failed, 2 wrong usage."""
    given = list(arguments)
    end = given.index("--") if "--" in given else len(given)
    debug = "--debug" in given[:end] or bool(os.environ.get("IBRIK_DEBUG"))
    given = [a for i, a in enumerate(given) if a != "--debug" or i > end]
    return run_guarded(lambda: _call(given, is_plugin=is_plugin), debug=debug)


def _call(arguments: Sequence[str], *, is_plugin: bool) -> object:
    choose(None)
    cluster, rest = take_options(arguments, is_plugin=is_plugin)
    if cluster is not None:
        check_command(rest)
    name = "kubectl ibrik" if is_plugin else "ibrik"
    choose(cluster)
    return app(args=rest, prog_name=name, standalone_mode=False)


def main() -> None:
    sys.exit(run(sys.argv[1:]))


def plugin() -> None:
    """`kubectl ibrik`: the same, for the cluster of the current context."""
    sys.exit(run(sys.argv[1:], is_plugin=True))
