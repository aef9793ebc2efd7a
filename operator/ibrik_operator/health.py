"""Whether the operator lives and is ready, and its metrics: a small server on a port of its own."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from aiohttp import web
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from ibrik_operator.metrics import REGISTRY
from ibrik_operator.settings import HttpSettings

PERIOD_S = 1.0
MAX_LAG_S = 10.0


class Health:
    def __init__(self, is_ready: Callable[[], bool], is_lease_known: Callable[[], bool]) -> None:
        self._is_ready = is_ready
        self._is_lease_known = is_lease_known
        self._lag_s = 0.0

    async def live(self, _request: web.Request) -> web.Response:
        """The event loop turns, and the Lease has been seen lately."""
        if self._lag_s > MAX_LAG_S:
            return _said(f"the event loop was late by {self._lag_s:.0f} s")
        if not self._is_lease_known():
            return _said("the API server has not answered about the Lease for long")
        return web.Response(text="alive\n")

    async def ready(self, _request: web.Request) -> web.Response:
        """It reconciles, or stands by for the replica that does."""
        return web.Response(text="ready\n") if self._is_ready() else _said("starting")

    async def scrape(self, _request: web.Request) -> web.Response:
        return web.Response(
            body=generate_latest(REGISTRY), headers={"Content-Type": CONTENT_TYPE_LATEST}
        )

    async def watch_loop(self) -> None:
        """Measure how late the event loop is; ends with its task."""
        loop = asyncio.get_running_loop()
        while True:
            before = loop.time()
            await asyncio.sleep(PERIOD_S)
            self._lag_s = loop.time() - before - PERIOD_S


async def serve(settings: HttpSettings, health: Health) -> Callable[[], Coroutine[Any, Any, None]]:
    """Open the port; what closes it again."""
    app = web.Application()
    app.add_routes(
        [
            web.get("/healthz", health.live),
            web.get("/readyz", health.ready),
            web.get("/metrics", health.scrape),
        ]
    )
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, settings.host, settings.port).start()
    return runner.cleanup


def _said(text: str) -> web.Response:
    return web.Response(status=503, text=f"{text}\n")
