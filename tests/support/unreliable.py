"""A proxy in front of the API server that fails some requests, as a busy or dying one would.

Faults come by chance from a seed and end after a number of them, so that everything has to become
well in the end. The worst one carries a write out and loses the answer.
"""

import asyncio
import random
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import aiohttp
from aiohttp import web

from tests.support.apiserver import ApiServer

WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_HOP = frozenset({"transfer-encoding", "connection", "content-length", "host", "content-encoding"})
_REASONS = {
    409: "Conflict",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
}


@dataclass
class Proxy:
    server: ApiServer
    chance: random.Random
    faults: int
    """Faults that are left to come."""
    of_writes: float = 0.3
    of_reads: float = 0.05
    """The share that fails, as long as there are faults left."""
    url: str = ""
    told: list[str] = field(default_factory=list)
    """What was done to whom."""

    def verdict(self, method: str) -> str:
        share = self.of_writes if method in WRITES else self.of_reads
        if self.faults <= 0 or self.chance.random() > share:
            return "pass"
        self.faults -= 1
        if method in WRITES:
            return self.chance.choice(["409", "429", "500", "503", "cut", "lose the answer"])
        return self.chance.choice(["429", "500", "503", "cut"])

    async def handle(self, request: web.Request) -> web.StreamResponse:
        fate = self.verdict(request.method)
        if fate != "pass":
            self.told.append(f"{fate}: {request.method} {request.path}")
        if fate.isdecimal():
            return _refusal(int(fate))
        if fate == "cut":
            return _cut(request)
        kept = {name: value for name, value in request.headers.items() if name.lower() not in _HOP}
        async with self._session.request(
            request.method,
            f"{self.server.url}{request.raw_path}",
            headers=kept,
            data=await request.read() or None,
            allow_redirects=False,
        ) as answer:
            if fate == "lose the answer":
                await answer.read()
                return _cut(request)
            headers = {n: v for n, v in answer.headers.items() if n.lower() not in _HOP}
            response = web.StreamResponse(status=answer.status, headers=headers)
            await response.prepare(request)
            async for piece in answer.content.iter_any():
                await response.write(piece)
            return response

    async def serve(self, stopped: asyncio.Event, ready: threading.Event) -> None:
        context = ssl.create_default_context(cafile=str(self.server.ca_file))
        connector = aiohttp.TCPConnector(ssl=context, limit=0)
        timeout = aiohttp.ClientTimeout(total=None)
        session = aiohttp.ClientSession(
            connector=connector, timeout=timeout, skip_auto_headers=["Content-Type"]
        )
        async with session as self._session:
            app = web.Application()
            app.router.add_route("*", "/{path:.*}", self.handle)
            runner = web.AppRunner(app, shutdown_timeout=0.1)
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            ready.set()
            await stopped.wait()
            await runner.cleanup()


def _refusal(status: int) -> web.Response:
    document = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": "made up by a test",
        "reason": _REASONS[status],
        "code": status,
    }
    headers = {"Retry-After": "1"} if status == 429 else {}
    return web.json_response(document, status=status, headers=headers)


def _cut(request: web.Request) -> web.StreamResponse:
    """The connection ends without an answer."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


@contextmanager
def unreliable(server: ApiServer, seed: int, faults: int) -> Iterator[Proxy]:
    proxy, ready = Proxy(server, random.Random(seed), faults), threading.Event()
    loop, stopped = asyncio.new_event_loop(), asyncio.Event()

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(proxy.serve(stopped, ready))

    thread = threading.Thread(target=run, name="proxy")
    thread.start()
    assert ready.wait(30)
    try:
        yield proxy
    finally:
        loop.call_soon_threadsafe(stopped.set)
        thread.join()
