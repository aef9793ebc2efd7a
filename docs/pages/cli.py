"""The page of the `ibrik` command, from the program's own definitions: a section per command.

Walks the commands instead of printing their help, so that the width of a terminal changes nothing.
"""

from collections.abc import Iterator
from typing import Any

import typer
from typer.core import TyperArgument, TyperGroup, TyperOption

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


def _commands(command: Any, path: str) -> Iterator[tuple[Any, str]]:
    if command.hidden:
        return
    yield command, path
    if isinstance(command, TyperGroup):
        for name in sorted(command.commands):
            yield from _commands(command.commands[name], f"{path} {name}")


def _one(command: Any, path: str) -> Iterator[str]:
    yield f"## `{path}`"
    yield command.help or ""
    if isinstance(command, TyperGroup):
        names = sorted(n for n, c in command.commands.items() if not c.hidden)
        links = (f"[`{n}`](#{f'{path} {n}'.replace(' ', '-')})" for n in names)
        yield "Commands: " + ", ".join(links)
    else:
        arguments = (_argument(p) for p in command.params if isinstance(p, TyperArgument))
        yield f"```\n{' '.join((path, *arguments, '[OPTIONS]'))}\n```"
    yield _examples(command.epilog or "")
    options = [p for p in command.params if isinstance(p, TyperOption) and not p.hidden]
    if options:
        yield table(("option", "default", "meaning"), map(_option, options))


def _argument(argument: TyperArgument) -> str:
    name = (argument.metavar or argument.name or "").strip("[]").upper()
    name += "..." if argument.nargs < 0 else ""
    return name if argument.required else f"[{name}]"


def _examples(epilog: str) -> str:
    """The lines of an epilog that are commands, as a block."""
    lines = [line.strip() for line in epilog.splitlines() if line.startswith("  ")]
    return "Examples:\n\n```sh\n" + "\n".join(lines) + "\n```" if lines else ""


def _option(option: TyperOption) -> tuple[str, str, str]:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    environment = f" (`{option.envvar}`)" if isinstance(option.envvar, str) else ""
    return names, _default(option), one_line(option.help or "") + environment


def _default(option: TyperOption) -> str:
    if option.default in (None, False) or callable(option.default):
        return ""
    return f"`{cell(str(getattr(option.default, 'value', option.default)))}`"
