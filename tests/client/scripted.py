"""A real HTTP server that answers as told, one answer a request; for what a broker rarely does."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web


@dataclass
class Reply:
    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    is_cut: bool = False
    """Close the connection after the body, as if more had to come."""
    is_silent: bool = False
    """Take the request and never answer."""


@dataclass
class Script:
    url: str = ""
    requests: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)
    """Method, path with query, headers and body of each request."""


@asynccontextmanager
async def scripted_server(replies: Sequence[Reply]) -> AsyncIterator[Script]:
    """Answer with each reply in turn; the last one stands for all that follow."""
    script = Script()

    async def handle(request: web.Request) -> web.StreamResponse:
        reply = replies[min(len(script.requests), len(replies) - 1)]
        script.requests.append(
            (request.method, request.path_qs, dict(request.headers), await request.read())
        )
        if reply.is_silent:
            await asyncio.Event().wait()
        response = web.StreamResponse(status=reply.status, headers=reply.headers)
        await response.prepare(request)
        await response.write(reply.body)
        if reply.is_cut and request.transport is not None:
            request.transport.close()
        else:
            await response.write_eof()
        return response

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app, shutdown_timeout=0.01)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        script.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield script
    finally:
        await runner.cleanup()
