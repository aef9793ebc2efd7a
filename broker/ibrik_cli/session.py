"""From a command to the client: one event loop, one connection, then the end."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ibrik_cli.failures import Failure

if TYPE_CHECKING:
    from ibrik_client import Client

T = TypeVar("T")
ANSWER_WITHIN_S = 10.0
"""A person waits; a program that embeds the client has its own deadlines."""


@asynccontextmanager
async def open_client(
    server: str,
    *,
    token_file: Path | None = None,
    admin: str | None = None,
    admin_token_file: Path | None = None,
    deadline_s: float = ANSWER_WITHIN_S,
) -> AsyncIterator["Client"]:
    from ibrik_client import RetryPolicy, connect

    async with connect(
        server,
        token=read_token(token_file) if token_file else os.environ.get("IBRIK_TOKEN"),
        admin_url=admin,
        admin_token=read_token(admin_token_file) if admin_token_file else None,
        retry=RetryPolicy(deadline_s=deadline_s),
    ) as client:
        yield client


def read_token(file: Path) -> str:
    """The current token: the first line. The second may be the one that it replaces."""
    lines = file.read_text(encoding="utf-8").split()
    if not lines:
        raise Failure(f"{file} holds no token")
    return lines[0]


def run_with_client(
    server: str,
    work: "Callable[[Client], Awaitable[T]]",
    *,
    token_file: Path | None = None,
    admin: str | None = None,
    admin_token_file: Path | None = None,
    deadline_s: float = ANSWER_WITHIN_S,
) -> T:
    """What `work` returns when it is given a client."""

    async def run() -> T:
        async with open_client(
            server,
            token_file=token_file,
            admin=admin,
            admin_token_file=admin_token_file,
            deadline_s=deadline_s,
        ) as client:
            return await work(client)

    return asyncio.run(run())
