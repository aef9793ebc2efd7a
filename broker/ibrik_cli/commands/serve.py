"""`ibrik serve`: flags become settings, then the broker runs in this process."""

import gc
from pathlib import Path
from typing import Annotated, Any

import typer

from ibrik_cli.failures import WRONG_USAGE, Failure
from ibrik_cli.options import examples


def register(app: typer.Typer) -> None:
    app.command(
        epilog=examples("ibrik serve --dev", "ibrik serve --data /var/lib/ibrik --port 9000")
    )(serve)


def serve(
    *,
    data: Annotated[
        Path | None, typer.Option("--data", help="Folder of the log; one broker at a time.")
    ] = None,
    dev: Annotated[
        bool, typer.Option("--dev", help="For a laptop: topics are created on first use.")
    ] = False,
    config: Annotated[
        Path | None, typer.Option("--config", help="Settings in a JSON, YAML or TOML file.")
    ] = None,
    host: Annotated[
        str | None, typer.Option("--host", help="Address to bind all doors to.")
    ] = None,
    port: Annotated[
        int | None, typer.Option("--port", help="Port of the HTTP door; 0 takes a free one.")
    ] = None,
    tcp_port: Annotated[
        int | None, typer.Option("--tcp-port", help="Port of the TCP door; 0 takes a free one.")
    ] = None,
    admin_port: Annotated[
        int | None, typer.Option("--admin-port", help="Port of the admin door; 0 takes a free one.")
    ] = None,
    admin_token_file: Annotated[
        Path | None,
        typer.Option("--admin-token-file", help="Token of the admin door, for hosts not loopback."),
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Any setting: log.segment_bytes=1Mi"),
    ] = None,
) -> int:
    """Run a broker here until it is told to stop (SIGTERM or Ctrl-C)."""
    flags: dict[str, Any] = {
        "data": data,
        "dev": dev or None,
        "config": config,
        "http.host": host,
        "tcp.host": host,
        "admin.host": host,
        "http.port": port,
        "tcp.port": tcp_port,
        "admin.port": admin_port,
        "admin.token_file": admin_token_file,
    }
    given = {name: value for name, value in flags.items() if value is not None}
    return _start(given | parse_settings(setting or []))


def parse_settings(pairs: list[str]) -> dict[str, str]:
    settings = {}
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not name or not separator:
            raise Failure(f"--set {pair}: expected NAME=VALUE", WRONG_USAGE)
        settings[name] = value
    return settings


def _start(flags: dict[str, Any]) -> int:
    gc.disable()  # loading makes a hundred thousand objects and no garbage; `run` turns it on
    try:
        from ibrik_broker.app import run
        from ibrik_broker.settings import SettingsError, load_settings
    except ModuleNotFoundError as error:
        raise Failure(
            f"the broker is not installed ({error.name} is missing): pip install 'ibrik[broker]'"
        ) from error
    try:
        settings = load_settings(flags)
    except SettingsError as error:
        raise Failure(str(error), WRONG_USAGE) from error
    return run(settings)
