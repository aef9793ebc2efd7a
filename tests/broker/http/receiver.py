"""An HTTP endpoint of a test: notes what it is sent and answers as it is told.

async with receiving() as receiver:
    receiver.status = 503
    ...
    await receiver.until(lambda: len(receiver.bodies) == 3)
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web
from multidict import CIMultiDict

PATIENCE_S = 20.0


@dataclass
class Received:
    method: str
    path: str
    headers: CIMultiDict[str]
    body: bytes


@dataclass
class Receiver:
    port: int = 0
    status: int = 204
    answer: bytes = b""
    requests: list[Received] = field(default_factory=list)
    news: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    @property
    def bodies(self) -> list[bytes]:
        return [request.body for request in self.requests]

    async def handle(self, request: web.Request) -> web.Response:
        headers = CIMultiDict(request.headers)
        received = Received(request.method, request.path_qs, headers, await request.read())
        self.requests.append(received)
        self.news.set()
        return web.Response(status=self.status, body=self.answer)

    async def until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not is_so():
                self.news.clear()
                await self.news.wait()


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", receiver.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    receiver.port = runner.addresses[0][1]
    try:
        yield receiver
    finally:
        await runner.cleanup()
