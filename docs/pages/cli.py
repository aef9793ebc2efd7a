"""The page of the `ibrik` command, from the program's own definitions: a section per command.

Walks the commands instead of printing their help, so that the width of a terminal changes nothing.
"""

from collections.abc import Iterator

import click
import typer
from ibrik_cli.main import app

from pages.markdown import cell, one_line, page, table


def pages() -> dict[str, str]:
    root = typer.main.get_command(app)
    sections = [section for command in _commands(root, "ibrik") for section in _one(*command)]
    return {
        "reference/cli.md": page(
            "Command line",
            "`ibrik <verb>` for work, `ibrik <noun> <verb>` for things. Exit codes: 0 done,\n"
            "1 refused or failed, 2 used wrongly.",
            *sections,
        )
    }


def _commands(command: click.Command, path: str) -> Iterator[tuple[click.Command, str]]:
    if command.hidden:
        return
    yield command, path
    if isinstance(command, click.Group):
        for name in sorted(command.commands):
            yield from _commands(command.commands[name], f"{path} {name}")


def _one(command: click.Command, path: str) -> Iterator[str]:
    yield f"## `{path}`"
    yield _prose(command.help or command.short_help or "")
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    usage = " ".join((path, *map(_argument, arguments), "[OPTIONS]"))
    if isinstance(command, click.Group):
        names = sorted(n for n, c in command.commands.items() if not c.hidden)
        yield "Commands: " + ", ".join(
            f"[`{n}`](#{f'{path} {n}'.replace(' ', '-')})" for n in names
        )
    else:
        yield f"```\n{usage}\n```"
    options = [p for p in command.params if isinstance(p, click.Option) and not p.hidden]
    if options:
        yield table(("option", "default", "meaning"), map(_option, options))


def _argument(argument: click.Parameter) -> str:
    name = (argument.metavar or argument.name or "").upper() + ("..." if argument.nargs < 0 else "")
    return name if argument.required else f"[{name}]"


def _option(option: click.Option) -> tuple[str, str, str]:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    environment = f" (`{option.envvar}`)" if isinstance(option.envvar, str) else ""
    return names, _default(option), one_line(option.help or "") + environment


def _default(option: click.Option) -> str:
    if option.default is None or option.default is False or callable(option.default):
        return ""
    return f"`{cell(str(getattr(option.default, 'value', option.default)))}`"


def _prose(text: str) -> str:
    return "\n\n".join(part.replace("\b\n", "").strip("\n") for part in text.split("\n\n"))
