"""From a command to the client: one event loop, one connection, then the end.

On a cluster the connection goes through a forwarded port, and the admin token comes from the pool's
Secret, but only for commands that need it.
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from enum import Enum
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, TypeVar

from ibrik_cli.cluster import Cluster, chosen
from ibrik_cli.failures import Failure

if TYPE_CHECKING:
    from ibrik_client import Client

T = TypeVar("T")
ANSWER_WITHIN_S = 10.0
"""A person waits; a program that embeds the client has its own deadlines."""


class Token(Enum):
    """What stands for the token of commands that only read."""

    NOT_NEEDED = "not needed"


@asynccontextmanager
async def open_client(
    server: str,
    *,
    token_file: Path | None = None,
    admin: str | None = None,
    admin_token_file: Path | None = None,
    registers: bool = False,
    pod: str | None = None,
    deadline_s: float = ANSWER_WITHIN_S,
) -> AsyncIterator["Client"]:
    """A client; `registers` says that it will change what only an admin token may.

    `pod` is the one whose admin door is meant; None: the first.
    """
    from ibrik_client import RetryPolicy, connect

    token = read_token(token_file) if token_file else os.environ.get("IBRIK_TOKEN")
    admin_token = read_token(admin_token_file) if admin_token_file else None
    async with AsyncExitStack() as stack:
        cluster = chosen()
        if cluster is not None:
            server, admin = await _forward(stack, cluster, pod, needs_admin=admin is not None)
            if registers and token is None:
                token = await _admin_token(cluster)
            if admin is not None and admin_token is None:
                admin_token = await _admin_token(cluster)
        yield await stack.enter_async_context(
            connect(
                server,
                token=token,
                admin_url=admin,
                admin_token=admin_token,
                retry=RetryPolicy(deadline_s=deadline_s),
            )
        )


async def _forward(
    stack: AsyncExitStack, cluster: Cluster, pod: str | None, *, needs_admin: bool
) -> tuple[str, str | None]:
    """Addresses of both doors; the admin door of one broker, where its service has none."""
    from ibrik_api.kubernetes import ADMIN_PORT, pod_name
    from ibrik_cli.kubectl import forwarded

    # The forward is a process of its own: asked to end, we end it first.
    signal.signal(signal.SIGTERM, _leave)
    server = await stack.enter_async_context(forwarded(cluster))
    if not needs_admin:
        return server, None
    target = f"pod/{pod or pod_name(cluster.pool, 0)}"
    return server, await stack.enter_async_context(forwarded(cluster, target, ADMIN_PORT))


async def _admin_token(cluster: Cluster) -> str:
    from ibrik_cli.kubectl import admin_token

    return await admin_token(cluster)


def _leave(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


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
    token_file: Path | Token | None = Token.NOT_NEEDED,
    admin: str | None = None,
    admin_token_file: Path | None = None,
    pod: str | None = None,
    deadline_s: float = ANSWER_WITHIN_S,
) -> T:
    """What `work` returns when it is given a client.

    Commands that change registrations pass their `--token-file`, also when it is None.
    """

    async def run() -> T:
        async with open_client(
            server,
            token_file=None if isinstance(token_file, Token) else token_file,
            admin=admin,
            admin_token_file=admin_token_file,
            registers=token_file is not Token.NOT_NEEDED,
            pod=pod,
            deadline_s=deadline_s,
        ) as client:
            return await work(client)

    return asyncio.run(run())


def run_with_owner(
    server: str,
    work: "Callable[[Client], Awaitable[T]]",
    *,
    admin: str,
    admin_token_file: Path | None = None,
) -> T:
    """The same over the admin door of the broker that owns a topic, which another one names."""
    from ibrik_client import IbrikError

    run = partial(run_with_client, server, work, admin=admin, admin_token_file=admin_token_file)
    try:
        return run()
    except IbrikError as error:
        owner = error.problem.get("owner")
        if error.code != "owner-elsewhere" or chosen() is None or not isinstance(owner, str):
            raise
        return run(pod=owner)
