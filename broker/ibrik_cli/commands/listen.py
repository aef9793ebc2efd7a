"""`ibrik listen`: a small endpoint on this machine that shows what a channel delivers."""

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from ibrik_cli.failures import WRONG_USAGE, Failure
from ibrik_cli.options import Output, OutputOption, examples

DEFAULT_BODY = "16Mi"


def register(app: typer.Typer) -> None:
    app.command(
        epilog=examples(
            "ibrik listen 9000",
            "ibrik listen 9000 --verify --secret-file billing.secret --fail-every 3",
        )
    )(listen)


def listen(
    port: Annotated[
        int, typer.Argument(metavar="PORT", min=0, max=65_535, help="0 takes a free one.")
    ],
    *,
    verify: Annotated[
        bool, typer.Option("--verify", help="Check signatures; answer 401 to wrong ones.")
    ] = False,
    secret_file: Annotated[
        Path | None, typer.Option("--secret-file", help="File with whsec_… secrets, one a line.")
    ] = None,
    secret_env: Annotated[
        str | None, typer.Option("--secret-env", help="Name of a variable that holds them.")
    ] = None,
    status: Annotated[
        int, typer.Option("--status", min=200, max=599, help="What to answer.")
    ] = 200,
    fail_every: Annotated[
        int, typer.Option("--fail-every", min=0, help="Answer each n-th request with 503.")
    ] = 0,
    delay: Annotated[str, typer.Option("--delay", help="Wait before each answer: 500ms")] = "0ms",
    max_body: Annotated[
        str, typer.Option("--max-body", help="Larger bodies are answered with 413.")
    ] = DEFAULT_BODY,
    output: OutputOption = Output.TABLE,
) -> None:
    """Print what arrives on 127.0.0.1:PORT: time, answer, message, attempt, type, key, body."""
    import asyncio

    from ibrik_api.durations import parse_duration
    from ibrik_api.quantities import parse_quantity
    from ibrik_cli.listening import Endpoint, Manners, serve
    from ibrik_cli.output import say

    try:
        delay_s, max_body_bytes = parse_duration(delay) / 1000, parse_quantity(max_body)
    except ValueError as error:
        raise Failure(str(error), WRONG_USAGE) from error
    manners = Manners(
        secrets=read_secrets(secret_file, secret_env, is_needed=verify),
        status=status,
        fail_every=fail_every,
        delay_s=delay_s,
        max_body_bytes=max_body_bytes,
    )
    endpoint = Endpoint(manners, lambda document: show(document, output))
    with suppress(KeyboardInterrupt):  # The usual end.
        asyncio.run(serve(endpoint, port, lambda url: announce(url, output)))
    say(endpoint.counts.text())


def read_secrets(file: Path | None, variable: str | None, *, is_needed: bool) -> list[bytes]:
    """The secrets to check signatures with; never from an argument, which others could read."""
    from ibrik_api.signatures import InvalidSecret, parse_secrets

    if file and variable:
        raise Failure("--secret-file or --secret-env, not both", WRONG_USAGE)
    if file:
        where, text = str(file), file.read_text(encoding="utf-8")
    elif variable:
        where, text = variable, os.environ.get(variable, "")
    elif is_needed:
        raise Failure(
            "--verify needs the secret: --secret-file FILE or --secret-env NAME", WRONG_USAGE
        )
    else:
        return []
    try:
        return parse_secrets(text)
    except InvalidSecret as error:
        raise Failure(f"{where}: {error}") from error


def announce(url: str, output: Output) -> None:
    """The address, where no program reads what follows as data."""
    stream = sys.stdout if output is Output.TABLE else sys.stderr
    stream.write(f"listening on {url}\n")
    stream.flush()


def show(document: dict[str, Any], output: Output) -> None:
    """A line each: text, JSON, or an item of a YAML list."""
    import json

    from ibrik_cli.listening import arrival_line
    from ibrik_cli.output import print_yaml

    match output:
        case Output.JSON:
            sys.stdout.write(json.dumps(document, ensure_ascii=False) + "\n")
        case Output.YAML:
            print_yaml([document])
        case Output.TABLE:
            sys.stdout.write(arrival_line(document) + "\n")
    sys.stdout.flush()
