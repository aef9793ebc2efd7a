"""Four endpoints that receive webhooks: one is well, one fails, one hangs, one is gone.

Each verifies signatures as any receiver can (Standard Webhooks), answers as it is told to, and
counts.
"""

import asyncio
import hashlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from ibrik_api import signatures

HOST, PORT = "127.0.0.1", 18_600
"""As in channels.yaml."""
OK, UNAUTHORIZED, GONE, UNAVAILABLE = 200, 401, 410, 503

Behaviour = Callable[[int], Awaitable[int]]
"""The status that the attempt of this number is answered with."""


async def takes(_attempt: int) -> int:
    return OK


async def fails_half_of_the_time(attempt: int) -> int:
    return UNAVAILABLE if attempt % 2 else OK


async def is_gone(_attempt: int) -> int:
    return GONE


class Sink:
    """One endpoint, and what it saw."""

    def __init__(self, behaviour: Behaviour, secrets: list[bytes]) -> None:
        self.behaviour = behaviour
        self.attempts: Counter[str] = Counter()
        """Signed requests, by the id of the event."""
        self.taken: list[str] = []
        """Ids of the events that were answered with 200, in that order."""
        self.digests: dict[str, bytes] = {}
        self.types: dict[str, tuple[str, str | None]] = {}
        self.unsigned = 0
        self._secrets = secrets

    async def receive(self, request: web.Request) -> web.Response:
        body, headers = await request.read(), request.headers
        is_signed = signatures.verify(
            self._secrets,
            message_id=headers.get("webhook-id", ""),
            timestamp=headers.get("webhook-timestamp", ""),
            signature=headers.get("webhook-signature", ""),
            body=body,
            now_s=time.time(),
        )
        if not is_signed:
            self.unsigned += 1
            return web.Response(status=UNAUTHORIZED)
        event_id = headers["ce-id"]
        self.attempts[event_id] += 1
        status = await self.behaviour(int(headers["Ibrik-Attempt"]))
        if status == OK:
            self.taken.append(event_id)
            self.digests[event_id] = hashlib.sha256(body).digest()
            self.types[event_id] = headers["ce-type"], headers.get("ce-action")
        return web.Response(status=status)


class Sinks:
    """The four of them."""

    def __init__(self, secret: str) -> None:
        self.is_over = asyncio.Event()
        secrets = signatures.parse_secrets(secret)
        self.pulls = Sink(takes, secrets)
        self.issues = Sink(fails_half_of_the_time, secrets)
        self.hanging = Sink(self._hang, secrets)
        self.gone = Sink(is_gone, secrets)

    @property
    def by_name(self) -> dict[str, Sink]:
        return {
            "pulls": self.pulls,
            "issues": self.issues,
            "hanging": self.hanging,
            "gone": self.gone,
        }

    async def _hang(self, _attempt: int) -> int:
        await self.is_over.wait()
        return UNAVAILABLE


@asynccontextmanager
async def listening(secret: str) -> AsyncIterator[Sinks]:
    """The sinks, listening at the addresses that channels.yaml names."""
    sinks = Sinks(secret)
    app = web.Application()
    for name, sink in sinks.by_name.items():
        app.router.add_post(f"/{name}", sink.receive)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, HOST, PORT).start()
        yield sinks
    finally:
        sinks.is_over.set()
        await runner.cleanup()
